/**
 * The publisher: a bounded queue of events, sent in batches that form by themselves, and repeated until they are
 * confirmed.
 */
import { NotConfirmed, type PublishError, PublisherClosed, QueueFull } from './errors.ts';
import type { Accepted, PublishedEvent } from './event.ts';
import { MAX_TIMER_MS, type PublisherOptions, type Settings, settingsOf } from './options.ts';
import { type Outcome, sendEvents } from './send.ts';
import { UrlTurns } from './url-turns.ts';

export interface Publisher {
  /**
   * Resolves once the event is stored. Rejects with `EventRefused`, `QueueFull`, `PublisherClosed` or `NotConfirmed`.
   * Until then the event is repeated, always under the same id, not before the time that `Retry-After` asks for (at
   * most ten minutes). `traceparent` (W3C Trace Context) names the span to which the event belongs; an invalid one is
   * left out.
   */
  publish(event: PublishedEvent, options?: { traceparent?: string | undefined }): Promise<Accepted>;
  /**
   * Resolves when the queue has room. Of several callers that wait, as many resolve, in order, as there is room for.
   */
  ready(): Promise<void>;
  /** Events that are not confirmed. */
  readonly pending: number;
  /**
   * Takes no more events, and resolves when all have been settled: after `withinMs`, those that are left reject with
   * `NotConfirmed`.
   */
  close(withinMs?: number): Promise<void>;
}

interface Entry {
  id: string;
  /** Counts the events in the order in which they were published. */
  place: number;
  /** Undefined if the event has none, and will be refused. */
  session: string | undefined;
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

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Far below what ingest takes in one call (at least 8 MiB). */
const MAX_BATCH_BYTES = 1024 * 1024;
const CLOSED = 'The publisher was closed.';

/** Returns a publisher. Nothing is sent before the first event. Throws `TypeError` for an option that is not valid. */
export function createPublisher(options: PublisherOptions): Publisher {
  return new QueuedPublisher(settingsOf(options));
}

class QueuedPublisher implements Publisher {
  readonly #settings: Settings;
  #queue: Entry[] = [];
  /** Events that `takeBatch` took out of the queue, their session being in flight: back in it once a call has ended. */
  #passedOver: Entry[] = [];
  /** The one that has waited longest first. */
  readonly #waitingForRoom: (() => void)[] = [];
  #isLettingIn = false;
  readonly #waitingForEnd: (() => void)[] = [];
  /** Sessions with events in flight, all of them in one call: what is published later of a session is sent later. */
  readonly #sessionsInFlight = new Set<string | undefined>();
  /**
   * The newest time that an event of each session was given, while it is not past: receivers tell by it which event is
   * newer.
   */
  readonly #newestMs = new Map<string | undefined, number>();
  #prunedAtMs = 0;
  #pending = 0;
  /** Events that were published so far. */
  #published = 0;
  /** Of the events that are not confirmed. */
  #bytes = 0;
  readonly #calls = new Set<AbortController>();
  readonly #urls: UrlTurns;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  /** The time that `close` gave has passed. */
  #isOver = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#urls = new UrlTurns(settings.urls);
  }

  get pending(): number {
    return this.#pending;
  }

  async publish(event: PublishedEvent, options?: { traceparent?: string | undefined }): Promise<Accepted> {
    const id = event.id ?? `evt_${crypto.randomUUID()}`;
    const text = JSON.stringify({ ...event, id, created_at: event.created_at ?? this.#newTime(event.data?.id) });
    if (this.#isClosed) throw new PublisherClosed(CLOSED, id);
    if (!this.#hasRoom()) throw new QueueFull(`${this.#pending} events are not confirmed yet.`, id);
    const bytes = new TextEncoder().encode(text).length;
    // A header with other characters could not be sent.
    const traceparent = TRACEPARENT.exec(options?.traceparent ?? '')?.[0];
    this.#pending += 1;
    this.#bytes += bytes;
    return await new Promise((resolve, reject) => {
      const settle = (outcome: Accepted | PublishError) =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome);
      const endsAtMs = performance.now() + this.#settings.giveUpAfterMs;
      const session = event.data?.id;
      this.#queue.push({ id, place: this.#published++, session, text, traceparent, bytes, endsAtMs, settle });
      // In the next turn, so that events published together form a batch.
      queueMicrotask(() => this.#pump());
      // What is published later ends later, so a timer that is set will do.
      if (this.#expiry === undefined) this.#watchExpiry();
    });
  }

  /** Returns the present time or, if an event of the session has that or a later one, the next millisecond. */
  #newTime(session: string | undefined): string {
    const nowMs = Date.now();
    if (nowMs !== this.#prunedAtMs) {
      this.#prunedAtMs = nowMs;
      for (const [other, ms] of this.#newestMs) if (ms < nowMs) this.#newestMs.delete(other);
    }
    const ms = Math.max(nowMs, (this.#newestMs.get(session) ?? 0) + 1);
    this.#newestMs.set(session, ms);
    return new Date(ms).toISOString();
  }

  ready(): Promise<void> {
    return new Promise((resolve) => {
      this.#waitingForRoom.push(resolve);
      this.#letIn();
    });
  }

  /**
   * Lets those in that wait for room while there is some, one after the other: each has published its event before the
   * next one.
   */
  #letIn(): void {
    if (this.#isLettingIn) return;
    this.#isLettingIn = true;
    const letOneIn = () => {
      const next = this.#hasRoom() ? this.#waitingForRoom.shift() : undefined;
      next?.();
      if (next) queueMicrotask(letOneIn);
      else this.#isLettingIn = false;
    };
    // Not at once: who waits has to await the promise first.
    queueMicrotask(letOneIn);
  }

  async close(withinMs = 30_000): Promise<void> {
    this.#isClosed = true;
    if (this.#pending > 0) {
      const allEnded = new Promise<void>((resolve) => this.#waitingForEnd.push(resolve));
      const limitMs = Math.min(withinMs, MAX_TIMER_MS);
      const timer = setTimeout(() => {
        this.#isOver = true;
        clearTimeout(this.#pause);
        this.#putBack([]);
        for (const entry of this.#queue.splice(0)) this.#giveUp(entry, CLOSED);
        for (const call of this.#calls) call.abort(new Error('The publisher was closed before the call ended.'));
      }, limitMs);
      await allEnded;
      clearTimeout(timer);
    }
    clearTimeout(this.#pause);
  }

  #hasRoom(): boolean {
    return this.#pending < this.#settings.maxEvents && this.#bytes < this.#settings.maxBytes;
  }

  /** Sends what waits, unless sending pauses. */
  #pump(): void {
    const { concurrency, maxBatch } = this.#settings;
    while (this.#pause === undefined && this.#calls.size < concurrency) {
      const batch = takeBatch(this.#queue, this.#passedOver, maxBatch, this.#sessionsInFlight);
      if (batch.length === 0) return;
      void this.#send(batch);
    }
  }

  async #send(batch: Entry[]): Promise<void> {
    const { key, timeoutMs } = this.#settings;
    const call = new AbortController();
    this.#calls.add(call);
    for (const { session } of batch) if (session !== undefined) this.#sessionsInFlight.add(session);
    const { turn, url } = this.#urls.current();
    const limit = AbortSignal.timeout(timeoutMs);
    // Not AbortSignal.any: in some releases of Node its limit may be collected as garbage and never come.
    const onLimit = () => call.abort(limit.reason);
    limit.addEventListener('abort', onLimit);
    const { outcomes, failure, retryAfterMs } = await sendEvents({ url, key, signal: call.signal }, batch);
    limit.removeEventListener('abort', onLimit);
    this.#calls.delete(call);
    for (const { session } of batch) this.#sessionsInFlight.delete(session);
    const left = batch.filter((entry, i) => !this.#settle(entry, outcomes[i]));
    for (const entry of left) entry.failure = failure;
    if (this.#isOver) {
      for (const entry of left) this.#giveUp(entry, CLOSED);
      return;
    }
    this.#putBack(left);
    if (failure) this.#pauseAfter(failure, turn, retryAfterMs);
    else this.#urls.succeeded();
    this.#pump();
  }

  /** Puts events, and those that were passed over, back into the queue where they were: calls fail in any order. */
  #putBack(entries: Entry[]): void {
    if (entries.length + this.#passedOver.length === 0) return;
    this.#queue = [...entries, ...this.#passedOver, ...this.#queue].sort((a, b) => a.place - b.place);
    this.#passedOver = [];
  }

  /** Ends an event that has an outcome. Returns whether it has one. */
  #settle(entry: Entry, outcome: Outcome | undefined): boolean {
    entry.alone = outcome === 'alone';
    if (outcome === undefined || typeof outcome === 'string') return false;
    this.#end(entry, outcome);
    return true;
  }

  #end(entry: Entry, outcome: Accepted | PublishError): void {
    this.#pending -= 1;
    this.#bytes -= entry.bytes;
    entry.settle(outcome);
    if (this.#waitingForRoom.length > 0) this.#letIn();
    if (this.#pending > 0) return;
    clearTimeout(this.#expiry);
    this.#expiry = undefined;
    for (const resolve of this.#waitingForEnd.splice(0)) resolve();
  }

  #giveUp(entry: Entry, why: string): void {
    const { text, id, failure } = entry;
    this.#end(entry, new NotConfirmed(`${why} It may have been accepted.`, JSON.parse(text), id, { cause: failure }));
  }

  /** Sends nothing until the next url may be called. */
  #pauseAfter(failure: Error, turn: number, retryAfterMs: number | undefined): void {
    const retryInMs = this.#urls.failed(turn, retryAfterMs);
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#urls.resume();
      this.#expire();
      this.#pump();
    }, retryInMs);
    this.#watchExpiry();
    // In a microtask: what `onFailure` throws is an uncaught exception, and does not stop sending.
    queueMicrotask(() => this.#settings.onFailure(failure, retryInMs));
  }

  /** Gives events that wait up in time, the next one with a timer. */
  #watchExpiry(): void {
    clearTimeout(this.#expiry);
    this.#expiry = undefined;
    this.#putBack([]);
    if (this.#queue.length === 0) return;
    const nextMs = this.#queue.reduce((first, { endsAtMs }) => Math.min(first, endsAtMs), Number.POSITIVE_INFINITY);
    const waitMs = Math.min(Math.max(0, nextMs - performance.now()), MAX_TIMER_MS);
    this.#expiry = setTimeout(() => {
      this.#expire();
      this.#watchExpiry();
    }, waitMs);
  }

  #expire(): void {
    const now = performance.now();
    this.#putBack([]);
    const late = this.#queue.filter(({ endsAtMs }) => endsAtMs <= now);
    if (late.length === 0) return;
    this.#queue = this.#queue.filter(({ endsAtMs }) => endsAtMs > now);
    const why = `Posthorn did not confirm the event within ${this.#settings.giveUpAfterMs} ms.`;
    for (const entry of late) this.#giveUp(entry, why);
  }
}

/**
 * Removes the events of the next call from the queue, and returns them: those of sessions that are not in flight. Moves
 * others before them to `passedOver`, so that no later batch has to look at them.
 */
function takeBatch(
  queue: Entry[],
  passedOver: Entry[],
  maxBatch: number,
  sessionsInFlight: ReadonlySet<string | undefined>,
): Entry[] {
  let size = 0;
  let lookedAt = 0;
  const batch: Entry[] = [];
  for (const entry of queue) {
    const isPassedOver = sessionsInFlight.has(entry.session);
    if (!isPassedOver) size += entry.bytes;
    const isFull = batch.length >= maxBatch || size > MAX_BATCH_BYTES || entry.alone;
    if (batch.length > 0 && isFull) break;
    lookedAt += 1;
    (isPassedOver ? passedOver : batch).push(entry);
    if (entry.alone && !isPassedOver) break;
  }
  queue.splice(0, lookedAt);
  return batch;
}
