/** A proxy before Redis whose connections can be cut, restored, delayed, silenced and broken. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export interface WayToRedis {
  port: number;
  /** The number of open connections. */
  connections(): number;
  /** Breaks every connection and accepts no new one until `restore`. */
  cut(): void;
  restore(): void;
  /** Breaks every connection in the middle of its next reply of at least this many bytes. */
  cutWithin(leastBytes?: number): void;
  /** How many replies have been broken off. */
  brokenOff(): number;
  /** Forwards nothing any more over the existing connections, without closing them; new ones work. */
  swallow(): void;
  /** From now on, everything is forwarded with this delay, in each direction. */
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
  let brokenOff = 0;
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
          brokenOff += 1;
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
    brokenOff: () => brokenOff,
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
