/**
 * Publishers that cost little CPU themselves: they send single events over connections that stay open, each event as
 * soon as the response to the one before has arrived.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { PublishedEvent } from '@posthorn/client';
import { PUBLISHER_KEY } from './harness.ts';

interface RawPublishers {
  /** Opens the connections, and replaces those that ingest has closed because they were idle. */
  connect(): Promise<void>;
  /**
   * Publishes so many events; resolves with the time until each response, in milliseconds. Throws if one is not
   * accepted.
   */
  publish(count: number): Promise<number[]>;
  close(): void;
}

/**
 * Returns publishers, one for each connection, who send these events in turns; each with an id of its own, if
 * `withIds`.
 */
export function createRawPublishers(
  ingestUrl: string,
  connections: number,
  events: readonly PublishedEvent[],
  withIds = false,
): RawPublishers {
  const { hostname, port } = new URL(ingestUrl);
  const requests = events.map((event) => {
    const request = publishRequest(hostname, event);
    return () => (withIds ? publishRequest(hostname, { ...event, id: `evt_${randomUUID()}` }) : request);
  });
  let sockets: Socket[] = [];
  let next = 0;
  return {
    async connect() {
      sockets = sockets.filter((socket) => !socket.destroyed);
      while (sockets.length < connections) {
        const socket = connect({ host: hostname, port: Number(port), noDelay: true });
        await once(socket, 'connect');
        sockets.push(socket);
      }
    },
    async publish(count) {
      let unsent = count;
      const nextRequest = () => {
        unsent -= 1;
        return requests[next++ % requests.length]?.();
      };
      const all = sockets.map((socket) => publishOn(socket, () => (unsent > 0 ? nextRequest() : undefined)));
      return (await Promise.all(all)).flat();
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Sends one request after the other until there is no next one; resolves with the time until each response. */
function publishOn(socket: Socket, nextRequest: () => Buffer | undefined): Promise<number[]> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>();
  const times: number[] = [];
  let answer = '';
  let sentAt = 0;
  const send = () => {
    const request = nextRequest();
    sentAt = performance.now();
    if (request) socket.write(request);
    else resolve(times);
  };
  const onData = (data: Buffer) => {
    answer += data.toString('latin1');
    const headEnd = answer.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const bodyBytes = Number(/content-length: (\d+)/i.exec(answer)?.[1]);
    if (!answer.startsWith('HTTP/1.1 202 ') || Number.isNaN(bodyBytes)) return reject(new Error(answer));
    if (answer.length < headEnd + 4 + bodyBytes) return;
    answer = '';
    times.push(performance.now() - sentAt);
    send();
  };
  const onClose = () => reject(new Error('Ingest has closed a connection.'));
  socket.on('data', onData).on('error', reject).on('close', onClose);
  send();
  return promise.finally(() => socket.off('data', onData).off('error', reject).off('close', onClose));
}

/** The bytes of a request that publishes an event. */
export function publishRequest(host: string, event: PublishedEvent): Buffer {
  const body = JSON.stringify(event);
  const head = [
    'POST /v1/events HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${PUBLISHER_KEY}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}
