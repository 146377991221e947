/** The publisher: a bounded queue of events, sent in batches that form by themselves, and repeated until they are confirmed. */
import { NotConfirmed, type PublishError, PublisherClosed, QueueFull } from './errors.ts';
import type { Accepted, PublishedEvent } from './event.ts';
import { type Outcome, type SendOptions, sendEvents } from './send.ts';

export interface PublisherOptions {
  /** Where ingest is, such as `https://ingest.example`, or with a path before `/v1`. Several are used in turn when one fails. */
  url: string | readonly string[];
  /** The publisher key. */
  key: string;
  /** How long an event is repeated before `publish` rejects with `NotConfirmed`, in milliseconds. */
  giveUpAfterMs?: number;
  /** Time limit of one call, in milliseconds. */
  timeoutMs?: number;
  /** Events and bytes in memory at once; beyond them `publish` rejects with `QueueFull`. */
  maxEvents?: number;
  maxBytes?: number;
  /** Calls in flight at once. */
  concurrency?: number;
  /** Events of one call, at most 500. */
  maxBatch?: number;
}

export interface Publisher {
  /**
   * Resolves once the event is stored. Rejects with `EventRefused`, `QueueFull`, `PublisherClosed` or `NotConfirmed`. Until then the event
   * is repeated, always under the same id, after the time that `Retry-After` asks for. `traceparent` (W3C Trace Context) names the span to
   * which the event belongs; an invalid one is left out.
   */
  publish(event: PublishedEvent, options?: { traceparent?: string | undefined }): Promise<Accepted>;
  /** Resolves when there is room for another event. */
  ready(): Promise<void>;
  /** Events that are not confirmed. */
  readonly pending: number;
  /**
   * Takes no more events, and resolves when all have been settled. After `withinMs`, those that wait reject with `NotConfirmed`, those in
   * flight when their call ends.
   */
  close(withinMs?: number): Promise<void>;
}

interface Entry {
  id: string;
  /** The JSON text of the event. */
  text: string;
  traceparent: string | undefined;
  bytes: number;
  endsAtMs: number;
  /** It was in a batch that was refused as a whole: whether because of it is unknown. */
  alone?: boolean;
  /** Why its last call failed. */
  failure?: Error | undefined;
  settle: (outcome: Accepted | PublishError) => void;
}

const MAX_BATCH = 500;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Far below what ingest takes in one call (32 times `MAX_EVENT_BYTES`). */
const MAX_BATCH_BYTES = 1024 * 1024;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;
/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const CLOSED = 'The publisher was closed.';

/** Returns a publisher. Nothing is sent before the first event. Throws `TypeError` without a valid url or a key. */
export function createPublisher(options: PublisherOptions): Publisher {
  const { giveUpAfterMs = 600_000, maxEvents = 10_000, maxBytes = 64 * 1024 * 1024, concurrency = 4 } = options;
  const maxBatch = Math.min(options.maxBatch ?? MAX_BATCH, MAX_BATCH);
  const urls = [options.url].flat().map(baseUrl);
  if (urls.length === 0) throw new TypeError('A publisher needs a url.');
  if (!options.key) throw new TypeError('A publisher needs a key.');
  if (!/^[\x20-\x7e]*$/.test(options.key.trim()))
    throw new TypeError('The key has characters that no publisher key has.');
  const queue: Entry[] = [];
  const waitingForRoom: (() => void)[] = [];
  const waitingForEnd: (() => void)[] = [];
  let [pending, bytes, inFlight, failures, turn] = [0, 0, 0, 0, 0];
  let pause: ReturnType<typeof setTimeout> | undefined;
  let expiry: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  /** The time that `close` gave has passed. */
  let isOver = false;

  const hasRoom = () => pending < maxEvents && bytes < maxBytes;
  const end = (entry: Entry, outcome: Accepted | PublishError) => {
    pending -= 1;
    bytes -= entry.bytes;
    entry.settle(outcome);
    if (hasRoom()) for (const resolve of waitingForRoom.splice(0)) resolve();
    if (pending > 0) return;
    clearTimeout(expiry);
    expiry = undefined;
    for (const resolve of waitingForEnd.splice(0)) resolve();
  };
  const giveUp = (entry: Entry, why: string) =>
    end(
      entry,
      new NotConfirmed(`${why} It may have been accepted.`, JSON.parse(entry.text), entry.id, { cause: entry.failure }),
    );

  const pump = (): void => {
    while (pause === undefined && inFlight < concurrency && queue.length > 0) void send(takeBatch(queue, maxBatch));
  };
  const waitBefore = (retryAfterMs: number | undefined): void => {
    failures += 1;
    turn += 1;
    clearTimeout(pause);
    const resume = () => {
      pause = undefined;
      expire();
      pump();
    };
    pause = setTimeout(resume, Math.min(retryAfterMs ?? backoffMs(failures), MAX_TIMER_MS));
    watchExpiry();
  };
  /** While sending pauses, gives events up in time, the next one with a timer. */
  const watchExpiry = (): void => {
    clearTimeout(expiry);
    expiry = undefined;
    if (queue.length === 0) return;
    const nextMs = queue.reduce((first, { endsAtMs }) => Math.min(first, endsAtMs), Number.POSITIVE_INFINITY);
    const waitMs = Math.min(Math.max(0, nextMs - performance.now()), MAX_TIMER_MS);
    expiry = setTimeout(() => {
      expire();
      watchExpiry();
    }, waitMs);
  };
  const expire = (): void => {
    const now = performance.now();
    const late = queue.filter(({ endsAtMs }) => endsAtMs <= now);
    if (late.length === 0) return;
    queue.splice(0, queue.length, ...queue.filter(({ endsAtMs }) => endsAtMs > now));
    for (const entry of late) giveUp(entry, `Posthorn did not confirm the event within ${giveUpAfterMs} ms.`);
  };

  const send = async (batch: Entry[]): Promise<void> => {
    inFlight += 1;
    const to: SendOptions = {
      url: urls[turn % urls.length] ?? '',
      key: options.key,
      timeoutMs: options.timeoutMs ?? 30_000,
    };
    const { outcomes, failure, retryAfterMs } = await sendEvents(to, batch);
    inFlight -= 1;
    const left = batch.filter((entry, i) => !settled(entry, outcomes[i]));
    for (const entry of left) entry.failure = failure;
    if (isOver) for (const entry of left) giveUp(entry, CLOSED);
    else queue.unshift(...left);
    if (left.some(({ alone }) => !alone)) waitBefore(retryAfterMs);
    else failures = 0;
    pump();
  };
  const settled = (entry: Entry, outcome: Outcome | undefined): boolean => {
    entry.alone = outcome === 'alone';
    if (outcome === undefined || typeof outcome === 'string') return false;
    end(entry, outcome);
    return true;
  };

  return {
    get pending() {
      return pending;
    },
    async publish(event, options) {
      const id = event.id ?? `evt_${crypto.randomUUID()}`;
      const text = JSON.stringify({ created_at: new Date().toISOString(), ...event, id });
      if (isClosed) throw new PublisherClosed(CLOSED, id);
      if (!hasRoom()) throw new QueueFull(`${pending} events are not confirmed yet.`, id);
      const size = new TextEncoder().encode(text).length;
      // A header with other characters could not be sent.
      const traceparent = TRACEPARENT.exec(options?.traceparent ?? '')?.[0];
      pending += 1;
      bytes += size;
      return await new Promise((resolve, reject) => {
        const settle = (outcome: Accepted | PublishError) =>
          outcome instanceof Error ? reject(outcome) : resolve(outcome);
        queue.push({ id, text, traceparent, bytes: size, endsAtMs: performance.now() + giveUpAfterMs, settle });
        // In the next turn, so that events published together form a batch.
        queueMicrotask(pump);
        // What is published later ends later, so a timer that is set will do.
        if (pause !== undefined && expiry === undefined) watchExpiry();
      });
    },
    ready: () => (hasRoom() ? Promise.resolve() : new Promise((resolve) => waitingForRoom.push(resolve))),
    async close(withinMs = 30_000) {
      isClosed = true;
      if (pending > 0) {
        const allEnded = new Promise<void>((resolve) => waitingForEnd.push(resolve));
        const timer = setTimeout(() => {
          isOver = true;
          clearTimeout(pause);
          for (const entry of queue.splice(0)) giveUp(entry, CLOSED);
        }, withinMs);
        await allEnded;
        clearTimeout(timer);
      }
      clearTimeout(pause);
    },
  };
}

/** Removes the events of the next call from the queue, and returns them. */
function takeBatch(queue: Entry[], maxBatch: number): Entry[] {
  let size = 0;
  let count = 0;
  for (const entry of queue) {
    size += entry.bytes;
    if (count > 0 && (count >= maxBatch || size > MAX_BATCH_BYTES || entry.alone)) break;
    count += 1;
    if (entry.alone) break;
  }
  return queue.splice(0, count);
}

/** The pause after so many failures in a row. Half of it by chance, so that many publishers do not come back at the same moment. */
function backoffMs(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20), MAX_PAUSE_MS) * (0.5 + Math.random() / 2);
}

/** Returns a url without a slash at its end. Throws `TypeError` if it is none of http or https. */
function baseUrl(url: string): string {
  if (!/^https?:\/\/[^/]/i.test(url))
    throw new TypeError(`The url of a publisher begins with http:// or https://, not ${JSON.stringify(url)}.`);
  return new URL(url).href.replace(/\/+$/, '');
}
