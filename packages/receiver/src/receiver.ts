/**
 * A receiver as specification 4.1 recommends it: verify, respond at once, then process each event once, and never an
 * outdated one.
 */
import { parseEvent, type WebhookEvent } from './events.ts';
import { verifySignature } from './signature.ts';
import { memoryStore, type ReceiverStore } from './stores.ts';

/** The largest body that is read, unless the receiver says otherwise. */
const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;
const DEFAULT_MAX_IN_PROGRESS = 1_000;
/** The body of the request that validates an address. It has no signature. */
const PROBE = '{}';

type Secrets = string | readonly string[];

export interface ReceiverOptions {
  /**
   * The signing secret, several during a rotation, or a function that returns them. If it throws, deliveries get 503.
   */
  secrets: Secrets | (() => Secrets | Promise<Secrets>);
  /**
   * Processes an event. The response has been sent; nothing waits for it, so it may take its time. If it throws,
   * `onError` is called, and another delivery of the event is processed; Posthorn sends none by itself, since this one
   * has succeeded.
   */
  onEvent: (event: WebhookEvent, delivery: DeliveryInfo) => void | Promise<void>;
  /**
   * Is called with what `onEvent`, `secrets` or the store threw; the event is undefined if it is not known yet. By
   * default, writes to the console, as is done with what it throws itself.
   */
  onError?: ((error: unknown, event: WebhookEvent | undefined) => void | Promise<void>) | undefined;
  /** Remembers events and sessions. By default in memory, which is enough for one process. */
  store?: ReceiverStore | undefined;
  /**
   * What to do with an event that is older than another one of the same session whose turn has come, even if `onEvent`
   * threw for that. `skip` (the default) never processes it: the newest state of a session wins. `process` processes
   * events as they come.
   */
  outdated?: 'skip' | 'process' | undefined;
  /** How far the time of a signature may be from now, in seconds. */
  toleranceS?: number | undefined;
  maxBodyBytes?: number | undefined;
  /** Events in progress at once; beyond that, deliveries get 503 and are repeated later. */
  maxInProgress?: number | undefined;
  /** Milliseconds since 1970. */
  now?: (() => number) | undefined;
}

export interface DeliveryInfo {
  /** The delivery, for questions to Posthorn's operators. */
  deliveryId: string;
  /** The value of a header; names are lowercase. */
  header: ReceivedRequest['header'];
  /** The body as it was received. */
  body: Uint8Array<ArrayBuffer>;
}

/** A request as the adapters hand it over. */
export interface ReceivedRequest {
  method: string;
  /** The value of a header; names are lowercase. */
  header: (name: string) => string | null | undefined;
  body: Uint8Array<ArrayBuffer>;
}

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** Processes the event, if there is one. To be called once the response has been sent. Never rejects. */
  process: () => Promise<void>;
}

export interface Receiver {
  receive(request: ReceivedRequest): Promise<Reply>;
  /** The reply to a body that is too large; adapters stop reading there. */
  tooLarge(): Reply;
  /** The reply if the raw body is lost because something has parsed it; `onError` is told. */
  bodyLost(): Reply;
  /** Resolves once nothing is in progress: call it after the server has been closed, so that no event is cut off. */
  idle(): Promise<void>;
  maxBodyBytes: number;
}

/**
 * Returns a receiver; an adapter connects it to a server. Throws `TypeError` without `onEvent`, without a secret,
 * unless `secrets` is a function, and for a limit that is no number.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { onEvent, store = memoryStore(), outdated = 'skip', toleranceS, now = Date.now } = options;
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES, maxInProgress = DEFAULT_MAX_IN_PROGRESS } = options;
  if (typeof onEvent !== 'function') throw new TypeError('A receiver needs a function onEvent.');
  for (const [name, limit] of Object.entries({ toleranceS, maxBodyBytes, maxInProgress }))
    if (Number.isNaN(Number(limit ?? 0))) throw new TypeError(`The option ${name} of a receiver must be a number.`);
  const onError = errorReporter(options.onError);
  const readSecrets = secretsReader(options.secrets);
  const inTurn = createTurns();
  let inProgress = 0;
  /** Events that this process has claimed. */
  const claimedHere = new Set<string>();
  const whenIdle: (() => void)[] = [];
  const ended = () => {
    inProgress -= 1;
    if (inProgress === 0) for (const resolve of whenIdle.splice(0)) resolve();
  };

  /**
   * Whether the event is the newest of its session so far. If the store fails, nobody knows, and the event is
   * processed: its response has been sent, so it would be lost.
   */
  const isNewest = async (event: WebhookEvent, session: string): Promise<boolean> => {
    try {
      return await store.advance(session, event.created_at);
    } catch (error) {
      onError(error, event);
      return true;
    }
  };

  const process = async (event: WebhookEvent, delivery: DeliveryInfo, key: string): Promise<void> => {
    let isProcessed = false;
    try {
      const session = `${event.environment}:${event.data.id}`;
      const guarded = outdated === 'skip' && event.type !== 'webhook.test';
      await inTurn(session, async () => {
        if (!guarded || (await isNewest(event, session))) await onEvent(event, delivery);
        isProcessed = true;
        await store.finish(key);
      });
    } catch (error) {
      onError(error, event);
      try {
        // Where this fails too, or `finish` has failed, the claim ends with its lease.
        if (!isProcessed) await store.release(key);
      } catch (failure) {
        onError(failure, event);
      }
    } finally {
      claimedHere.delete(key);
      ended();
    }
  };

  const accept = async (event: WebhookEvent, delivery: DeliveryInfo): Promise<Reply> => {
    if (inProgress >= maxInProgress) return reply(503, 'Too many events are in progress.', { 'retry-after': '1' });
    inProgress += 1;
    const key = `${event.environment}:${event.id}`;
    let claimed: Awaited<ReturnType<ReceiverStore['claim']>>;
    try {
      claimed = await store.claim(key);
    } catch (error) {
      ended();
      onError(error, event);
      return reply(503, 'The store of the receiver is not available.', { 'retry-after': '1' });
    }
    if (claimed === true) {
      claimedHere.add(key);
      return { ...reply(200, 'Accepted.'), process: () => process(event, delivery, key) };
    }
    ended();
    // The process that claimed it may have died before it responded: with 200, nobody would process the event.
    if (claimed === 'in_progress' && !claimedHere.has(key))
      return reply(503, 'This event is in progress.', { 'retry-after': '1' });
    return reply(200, 'This event is known.');
  };

  return {
    maxBodyBytes,
    idle: () => (inProgress === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
    tooLarge: () => reply(413, `The body has more than ${maxBodyBytes} bytes.`, { connection: 'close' }),
    bodyLost() {
      onError(new TypeError('The body was parsed before the receiver: signatures cover the raw body.'), undefined);
      return reply(500, 'The receiver did not get the raw body.');
    },
    async receive({ method, header, body }) {
      if (method !== 'POST') return reply(405, 'Only POST is allowed.', { allow: 'POST' });
      if (body.byteLength > maxBodyBytes) return this.tooLarge();
      const signature = header('service-signature');
      if (!signature) {
        if (new TextDecoder().decode(body.subarray(0, PROBE.length + 1)) === PROBE) return reply(200, 'Ready.');
        return reply(400, 'The Service-Signature header is missing.');
      }
      let isSigned: boolean;
      try {
        const check = { header: signature, secrets: await readSecrets(), body, nowS: now() / 1000, toleranceS };
        isSigned = await verifySignature(check);
      } catch (error) {
        onError(error, undefined);
        return reply(503, 'The secrets of the receiver are not available.', { 'retry-after': '1' });
      }
      if (!isSigned) return reply(400, 'The signature is not valid.');
      const event = parseEvent(body);
      if (!event) return reply(400, 'The body is not an event.');
      return await accept(event, { deliveryId: header('service-delivery-id') ?? '', header, body });
    },
  };
}

function reply(status: number, text: string, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: `${text}\n`,
    process: async () => undefined,
  };
}

/**
 * Returns a function that reports an error, and neither throws nor leaves a rejection: events in progress would be
 * lost.
 */
function errorReporter(onError: ReceiverOptions['onError']): (error: unknown, event: WebhookEvent | undefined) => void {
  // biome-ignore lint/suspicious/noConsole: a receiver that was given no place for errors must not hide them
  const say = (...what: unknown[]) => console.error('Posthorn receiver:', ...what);
  return (error, event) => {
    if (!onError) return say(error);
    void (async () => await onError(error, event))().catch((failure: unknown) => say(error, 'onError threw', failure));
  };
}

function secretsReader(secrets: ReceiverOptions['secrets']): () => readonly string[] | Promise<readonly string[]> {
  if (typeof secrets === 'function') return async () => listOf(await secrets());
  const list = listOf(secrets);
  return () => list;
}

/** No secret ends with a line break, but the file that one is read from often does. */
function listOf(secrets: Secrets): readonly string[] {
  const list = [secrets].flat().map((secret) => (secret ?? '').replace(/[\r\n]+$/, ''));
  if (list.length === 0 || list.some((secret) => !secret)) throw new TypeError('A receiver needs a secret.');
  return list;
}

/** Returns a function that runs the work of one name in order, one at a time. */
function createTurns() {
  const last = new Map<string, Promise<void>>();
  return (name: string, work: () => Promise<void>): Promise<void> => {
    const result = (last.get(name) ?? Promise.resolve()).then(work);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    last.set(name, ended);
    void ended.then(() => {
      if (last.get(name) === ended) last.delete(name);
    });
    return result;
  };
}
