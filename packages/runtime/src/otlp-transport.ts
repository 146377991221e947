/**
 * Sends batches of spans to a collector over HTTP, as the SDK's own transport does, but with undici. The SDK uses the
 * client of node:http, which slows down the code that it shares with the server of the same process (docs/decisions,
 * 62).
 */
import type { Agent } from 'node:http';
import type { AgentOptions, Agent as HttpsAgent } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ExportResponse, IExporterTransport } from '@opentelemetry/otlp-exporter-base';
import { Client, type Dispatcher } from 'undici';

export interface TransportOptions {
  url: string;
  /** Called for each request. */
  headers: () => Promise<Record<string, string>>;
  compression: 'gzip' | 'none';
  /** Makes an agent with the certificates that the SDK has read. */
  agentFactory: (protocol: string) => Agent | Promise<Agent>;
}

/** Collectors answer with a few bytes. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
/**
 * Longer than the usual time between two batches. A collector that closes sooner says so, or the batch is sent again.
 */
const MAX_IDLE_MS = 10_000;
/** As the SDK retries. */
const MAX_RETRIES = 5;
const [FIRST_BACKOFF_MS, MAX_BACKOFF_MS, BACKOFF_FACTOR, JITTER] = [1_000, 5_000, 1.5, 0.2];
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);
/** Errors of the network, and undici's of a connection that was closed. */
const RETRYABLE_ERRORS = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENOTFOUND',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Returns the transport. It has one connection, which stays open between batches. */
export function createTransport({ url, headers, compression, agentFactory }: TransportOptions): IExporterTransport {
  const { origin, protocol, pathname, search, username, password } = new URL(url);
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  const own = {
    ...(username !== '' && { Authorization: `Basic ${credentials.toString('base64')}` }),
    ...(compression === 'gzip' && { 'Content-Encoding': 'gzip' }),
  };
  let opening: Promise<Client> | undefined;
  const open = async () => {
    const { ca, cert, key }: AgentOptions =
      protocol === 'https:' ? ((await agentFactory(protocol)) as HttpsAgent).options : {};
    return new Client(origin, {
      connect: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
      allowH2: false,
      keepAliveTimeout: MAX_IDLE_MS,
      // The time limit is the one of the export.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  };
  const sendOnce = async (body: Uint8Array, limitMs: number): Promise<ExportResponse> => {
    opening ??= open();
    const client = await opening;
    const request = {
      path: pathname + search,
      method: 'POST',
      headers: inLowerCase({ ...own, ...(await headers()) }),
      body,
    };
    return await new Promise((resolve) => client.dispatch(request, new Exchange(limitMs, resolve)));
  };
  return {
    async send(data, limitMs) {
      const endsAt = performance.now() + limitMs;
      const body = compression === 'gzip' ? await promisify(gzip)(data) : data;
      for (let retries = 0, backoffMs = FIRST_BACKOFF_MS; ; retries++, backoffMs *= BACKOFF_FACTOR) {
        const response = await sendOnce(body, endsAt - performance.now());
        if (response.status !== 'retryable' || retries === MAX_RETRIES) return response;
        const delayMs =
          response.retryInMillis ?? Math.min(backoffMs * (1 + JITTER * (2 * Math.random() - 1)), MAX_BACKOFF_MS);
        if (performance.now() + delayMs > endsAt) return response;
        await pause(delayMs);
      }
    },
    shutdown() {
      // If it could not be opened, each export has failed with that error.
      opening?.then(
        (client) => client.destroy(),
        () => undefined,
      );
    },
  };
}

/** The last of several headers counts, however their names are written; undici would send all. */
function inLowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** What undici calls for a request. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (response: ExportResponse) => void;
  readonly #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | undefined;
  #expired: Error | undefined;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #status = 0;
  #retryAfter: string | undefined;

  constructor(limitMs: number, resolve: (response: ExportResponse) => void) {
    this.#resolve = resolve;
    this.#timer = setTimeout(
      () => {
        this.#expired = new Error('The collector did not answer in time.');
        // A request that waits for the connection can't be aborted: `onRequestStart` then does it when its turn comes.
        if (this.#controller) this.#controller.abort(this.#expired);
        else this.#end({ status: 'failure', error: this.#expired });
      },
      Math.max(0, limitMs),
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#expired) controller.abort(this.#expired);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#retryAfter = headers['retry-after']?.toString();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes > MAX_RESPONSE_BYTES) controller.abort(new Error('The response of the collector is too large.'));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#status >= 200 && this.#status <= 299) this.#end({ status: 'success', data: Buffer.concat(this.#chunks) });
    else if (RETRYABLE_STATUSES.has(this.#status))
      this.#end({ status: 'retryable', error: this.#refusal(), ...retryIn(this.#retryAfter) });
    else this.#end({ status: 'failure', error: this.#refusal() });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error & { code?: string }): void {
    const isRetryable = error.code !== undefined && RETRYABLE_ERRORS.has(error.code);
    this.#end({ status: isRetryable ? 'retryable' : 'failure', error });
  }

  #refusal(): Error {
    return new Error(`The collector answered with status ${this.#status}.`);
  }

  #end(response: ExportResponse): void {
    clearTimeout(this.#timer);
    this.#resolve(response);
  }
}

/** Reads `Retry-After`, in seconds or as a time. */
function retryIn(header: string | undefined): { retryInMillis?: number } {
  if (header === undefined) return {};
  const ms = /^\d+$/.test(header) ? 1_000 * Number(header) : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? {} : { retryInMillis: Math.max(0, ms) };
}
