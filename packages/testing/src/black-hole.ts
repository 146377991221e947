/** An address that neither accepts nor refuses connections, like a host behind a firewall that drops packets. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/** A connection to loopback that takes longer than this will not be accepted. */
const FULL_AFTER_MS = 500;

/**
 * Listens on `host` and `port` without ever accepting, and fills the queue of connections. Resolves once it is full.
 */
export async function startBlackHole(host: string, port: number): Promise<{ close(): Promise<void> }> {
  const thread = new Worker(
    `const { workerData: at, parentPort } = require('node:worker_threads');
    require('node:net').createServer().listen({ ...at, backlog: 1 }, () => {
      parentPort.postMessage('listening');
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    });`,
    { eval: true, workerData: { host, port } },
  );
  await once(thread, 'message');
  const sockets: Socket[] = [];
  for (let isFull = false; !isFull; ) {
    const socket = connect({ host, port }).on('error', () => undefined);
    sockets.push(socket);
    isFull = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(false));
      // Not at once: if this event loop stood still, a connection that was accepted long ago is read only now.
      setTimeout(() => setImmediate(resolve, true), FULL_AFTER_MS);
    });
  }
  return {
    async close() {
      for (const socket of sockets) socket.destroy();
      await thread.terminate();
    },
  };
}
