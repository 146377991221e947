/** A real OTLP/HTTP collector on a free port, for tests: it takes traces as protobuf or JSON and keeps their spans. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeTraces } from './otlp.ts';

/** A span as it was exported. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  /** Those of its trace in the lowest byte; 0x100: whether its parent is of another process is known; 0x200: it is. */
  flags: number;
  links: { traceId: string; spanId: string; flags: number }[];
  /** 0 unset, 1 ok, 2 error. */
  status: number;
  /** The attributes of the process. */
  resource: Record<string, unknown>;
}

export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  url: string;
  spans: CollectedSpan[];
  requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[];
  /** Replaces the response 200. A function that does nothing hangs. */
  answerWith(answer: (response: ServerResponse) => void): void;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  let respond: (response: ServerResponse) => void = (response) => response.writeHead(200).end();
  const spans: CollectedSpan[] = [];
  const requests: Collector['requests'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => response.destroy());
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      spans.push(...decodeTraces(body, String(request.headers['content-type'])));
      respond(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    answerWith(answer) {
      respond = answer;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
