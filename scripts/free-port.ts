/** Ports of 127.0.0.1 that nothing listens on. */
import { createServer } from 'node:net';

/** Below the ports that systems use for outgoing connections: one of those could take a port while its server restarts. */
const [FIRST_PORT, LAST_PORT] = [20_000, 32_000];
const MAX_TRIES = 100;

/** Resolves with a port that nothing listens on now. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (await isPortFree(port)) return port;
  }
  throw new Error(`No free port from ${FIRST_PORT} to ${LAST_PORT} on 127.0.0.1`);
}

/** Whether this process can listen on `port` of 127.0.0.1 now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
