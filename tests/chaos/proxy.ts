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
  /** From now on, new connections lead to another server, as after a change of a name. Existing ones stay. */
  leadTo(port: number): void;
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

export async function startProxy(firstPort: number): Promise<WayToRedis> {
  let targetPort = firstPort;
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
      const forward = inOrder((chunk) => to.write(chunk));
      from.on('data', (chunk) => {
        if (swallowed.has(from)) return;
        if (from === target && cutWithin.has(from) && chunk.length >= leastBytes) {
          brokenOff += 1;
          to.write(chunk.subarray(0, chunk.length >> 1));
          from.destroy();
          return;
        }
        forward(chunk, delayMs);
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
    leadTo(port) {
      targetPort = port;
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

/** Writes chunks after their delays, each after those before it: a late timer lets no chunk pass another one. */
function inOrder(write: (chunk: Buffer) => void): (chunk: Buffer, delayMs: number) => void {
  const waiting: { chunk: Buffer; atMs: number }[] = [];
  const flush = () => {
    for (let [first] = waiting; first && first.atMs <= performance.now(); [first] = waiting) {
      waiting.shift();
      write(first.chunk);
    }
    const [next] = waiting;
    if (next) setTimeout(flush, Math.max(1, next.atMs - performance.now())).unref();
  };
  return (chunk, delayMs) => {
    waiting.push({ chunk, atMs: performance.now() + delayMs });
    if (waiting.length === 1) flush();
  };
}
