/** One call of the publisher API, and what it says about each event. */
import { EventRefused, type PublishError } from './errors.ts';
import type { Accepted } from './event.ts';

export interface SendOptions {
  /** The base URL of ingest, without a slash at its end. */
  url: string;
  key: string;
  /** Ends the call. */
  signal: AbortSignal;
}

/**
 * `again`: the event is not known to be accepted; a repetition may help. `alone`: its batch was refused; send it by
 * itself.
 */
export type Outcome = Accepted | PublishError | 'again' | 'alone';

export interface Sent {
  outcomes: Outcome[];
  /** Why the call has outcomes `again`; undefined if it has none. */
  failure: Error | undefined;
  /** What `Retry-After` asks for. */
  retryAfterMs: number | undefined;
}

/** Statuses that refuse an event, or a batch for one of its events or their number. Firewalls refuse with 403 too. */
const REFUSES_EVENT = new Set([400, 403, 409, 413, 422]);

interface Result {
  status: number;
  error?: unknown;
}

/**
 * Sends events in one call and resolves with an outcome for each. Never rejects: an error of the network is an outcome
 * too.
 */
export async function sendEvents(
  { url, key, signal }: SendOptions,
  events: readonly { id: string; text: string; traceparent?: string | undefined }[],
): Promise<Sent> {
  const [first] = events;
  const isBatch = events.length > 1;
  const callUrl = `${url}${isBatch ? '/v1/events/batch' : '/v1/events'}`;
  try {
    const response = await fetch(callUrl, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(!isBatch && first?.traceparent !== undefined && { traceparent: first.traceparent }),
      },
      body: isBatch ? batchOf(events) : (first?.text ?? ''),
      signal,
      redirect: 'error',
    });
    const content = parseJson(await readText(response, signal));
    const retryAfterMs = retryAfter(response.headers.get('retry-after'));
    const results = isBatch && response.status === 200 ? resultsOf(content) : undefined;
    const outcomes = events.map(({ id }, i): Outcome => {
      if (isBatch && REFUSES_EVENT.has(response.status)) return 'alone';
      if (results === undefined) return outcomeOf(response.status, content, id);
      const result = results[i];
      return result === undefined ? 'again' : outcomeOf(result.status, result.error ?? result, id);
    });
    const failed = outcomes.indexOf('again');
    const failure = failed === -1 ? undefined : failureOf(results?.[failed]?.status ?? response.status, callUrl);
    return { outcomes, failure, retryAfterMs };
  } catch (error) {
    // No response, or not all of it: whether the events were accepted is unknown, so they are sent again under the same
    // ids.
    const failure = new Error(`The call of ${callUrl} failed: ${reasonOf(error as Error)}`, { cause: error });
    return { outcomes: events.map(() => 'again'), failure, retryAfterMs: undefined };
  }
}

/**
 * Reads a body until its end or the signal. Up to Node 22, fetch may forget its signal once the response has begun:
 * what connects them is garbage then.
 */
async function readText({ body }: Response, signal: AbortSignal): Promise<string> {
  const reader = body?.getReader();
  const cancel = () => reader?.cancel().catch(() => undefined);
  signal.addEventListener('abort', cancel);
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const part = await reader?.read();
    signal.throwIfAborted();
    if (!part || part.done) return text + decoder.decode();
    text += decoder.decode(part.value, { stream: true });
  }
}

function batchOf(events: readonly { text: string; traceparent?: string | undefined }[]): string {
  const texts = events.map(({ text }) => text).join(',');
  if (events.every(({ traceparent }) => traceparent === undefined)) return `{"events":[${texts}]}`;
  const traceparents = events.map(({ traceparent }) => traceparent ?? null);
  return `{"traceparents":${JSON.stringify(traceparents)},"events":[${texts}]}`;
}

function outcomeOf(status: number, content: unknown, id: string): Outcome {
  if (isAccepted(content) && (status === 200 || status === 202)) {
    return { id: content.id, duplicate: content.duplicate, deliveries: content.deliveries };
  }
  // 401: ingest does not know the key. Any other status, such as the 404 of a proxy, says nothing about the event.
  const isFinal = status === 401 || REFUSES_EVENT.has(status);
  return isFinal ? new EventRefused(status, content, id) : 'again';
}

function failureOf(status: number, url: string): Error {
  return new Error(`${url} returned ${status}${status < 300 ? ', but no result for the event' : ''}.`);
}

/** Node's fetch says only "fetch failed", and the error of several addresses only its code; why, their cause says. */
function reasonOf({ message, cause }: Error): string {
  const { message: why, code } = (cause ?? {}) as { message?: string; code?: string };
  return why || code || message;
}

function isAccepted(content: unknown): content is Accepted {
  return typeof content === 'object' && content !== null && 'deliveries' in content && 'duplicate' in content;
}

function resultsOf(content: unknown): Result[] {
  const { results } = (content ?? {}) as { results?: unknown };
  return Array.isArray(results) ? results : [];
}

/** Seconds, or a date. Undefined if that is not in the future: the pauses of the publisher must go on growing. */
function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return ms > 0 ? ms : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
