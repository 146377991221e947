/** A way to Redis that can be cut, restored, made slow, and lead nowhere. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export interface WayToRedis {
  port: number;
  /** Open at the moment. */
  connections(): number;
  /** Breaks every connection and takes no new one until `restore`. */
  cut(): void;
  restore(): void;
  /** Breaks every connection in the middle of the next answer of at least so many bytes that comes over it. */
  cutWithin(leastBytes?: number): void;
  /** Nothing passes any more over the connections there are, and nobody is told; new ones are well. */
  swallow(): void;
  /** What passes from now on takes this long, in each direction. */
  delay(ms: number): void;
  close(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<WayToRedis> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let delayMs = 0;
  let swallowed = new Set<Socket>();
  let cutWithin = new Set<Socket>();
  let leastBytes = 0;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const target = connect(targetPort, '127.0.0.1');
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      let arrivesAt = 0;
      from.on('data', (chunk) => {
        if (swallowed.has(from)) return;
        if (from === target && cutWithin.has(from) && chunk.length >= leastBytes) {
          to.write(chunk.subarray(0, chunk.length >> 1));
          from.destroy();
          return;
        }
        arrivesAt = Math.max(arrivesAt, performance.now() + delayMs);
        const waitMs = arrivesAt - performance.now();
        if (waitMs <= 0) to.write(chunk);
        else setTimeout(() => to.write(chunk), waitMs).unref();
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroySoon();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.size / 2,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore() {
      isCut = false;
    },
    cutWithin(least = 2) {
      leastBytes = least;
      cutWithin = new Set(sockets);
    },
    swallow() {
      swallowed = new Set(sockets);
    },
    delay(ms) {
      delayMs = ms;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
