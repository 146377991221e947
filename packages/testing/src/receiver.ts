/** A real HTTP receiver on a free port. It records its requests and responds as the test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { HUNG_MS } from './eventually.ts';

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  receivedAtMs: number;
}

/** The status of the response, or a function that writes it. */
export type Answer = number | ((request: ReceivedRequest, response: ServerResponse) => void);

export interface Receiver {
  url: string;
  port: number;
  requests: ReceivedRequest[];
  /** Connections accepted so far. */
  connections(): number;
  answerWith(answer: Answer): void;
  /** Resolves with all requests that `wanted` accepts once there are `count` of them. Rejects after `HUNG_MS`. */
  received(count: number, wanted?: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest[]>;
  close(): Promise<void>;
}

export async function startReceiver(answer: Answer = 200, tls?: { key: string; cert: string }): Promise<Receiver> {
  let current = answer;
  let connections = 0;
  const requests: ReceivedRequest[] = [];
  const waiting = new Set<() => void>();
  const server = (tls ? createTlsServer(tls) : createServer()).on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => response.destroy());
    request.on('end', () => {
      const received: ReceivedRequest = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
        receivedAtMs: Date.now(),
      };
      requests.push(received);
      if (typeof current === 'number') response.writeHead(current).end('ok');
      else current(received, response);
      for (const check of waiting) check();
    });
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook`,
    port,
    requests,
    connections: () => connections,
    answerWith(next) {
      current = next;
    },
    received(count, wanted = () => true) {
      return new Promise((resolve, reject) => {
        const check = () => {
          const found = requests.filter(wanted);
          if (found.length < count) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`Got ${requests.filter(wanted).length} of ${count} requests in ${HUNG_MS} ms`));
        }, HUNG_MS);
        // An abandoned wait must not keep the test run alive.
        timer.unref();
        waiting.add(check);
        check();
      });
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Responds to deliveries with `status`, and to validations with 200. */
export function deliveriesWith(status: number): Answer {
  return (request, response) => void response.writeHead(isDelivery(request) ? status : 200).end();
}

/** Returns whether a request is a delivery. Otherwise it is a validation. */
export function isDelivery(request: ReceivedRequest): boolean {
  return request.headers['service-delivery-id'] !== undefined;
}
