/** Ports of 127.0.0.1 that nothing listens on. */
import { createServer } from 'node:net';

/**
 * Below the ports that systems use for outgoing connections: one of those could take a port while its server restarts.
 */
const FIRST_PORT = 20_000;
const RANGES = 12;
const PORTS_IN_RANGE = 1_000;
const MAX_TRIES = 100;

/** Ports that were returned before: the caller may not listen on them yet. */
const given = new Set<number>();

/**
 * Resolves with a port that nothing listens on now, and that this process has not got before. Processes of tests that
 * run side by side get theirs from different ranges.
 */
export async function freePort(): Promise<number> {
  const first = FIRST_PORT + (Number(process.env.JEST_WORKER_ID ?? 0) % RANGES) * PORTS_IN_RANGE;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = first + Math.floor(Math.random() * PORTS_IN_RANGE);
    if (given.has(port)) continue;
    given.add(port);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`No free port from ${first} to ${first + PORTS_IN_RANGE} on 127.0.0.1`);
}

/** Whether this process can listen on `port` of 127.0.0.1 now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
