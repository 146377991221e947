/**
 * What a receiver remembers: the events it has, and how new its sessions are. In memory, or in Redis for several
 * processes.
 */

/** Deliveries can be replayed for 30 days. */
const DEFAULT_KEEP_MS = 31 * 86_400_000;
/** An event that is claimed for this long without being finished may be processed again: its process has died. */
const DEFAULT_LEASE_MS = 300_000;
const DEFAULT_MAX_ENTRIES = 100_000;

export interface ReceiverStore {
  /**
   * Claims an event for processing. Resolves with false if it was processed, and with `in_progress` if it is claimed
   * but not finished: whether it will be processed is not known then, since the process that claimed it may have died.
   */
  claim(event: string): Promise<boolean | 'in_progress'>;
  /** The event was processed: no claim of it succeeds any more. */
  finish(event: string): Promise<void>;
  /** The event was not processed: the next claim succeeds, unless another process has claimed or finished it since. */
  release(event: string): Promise<void>;
  /** Resolves with whether a session has had no event that is newer than `createdAt`, and stores `createdAt` if so. */
  advance(session: string, createdAt: string): Promise<boolean>;
}

/**
 * Remembers the newest `maxEntries` events and sessions in this process. A restart forgets them: then a repeated
 * delivery is processed again. For several processes, use `redisStore`. Throws `TypeError` if `maxEntries` is not at
 * least 1.
 */
export function memoryStore({
  maxEntries = DEFAULT_MAX_ENTRIES,
}: {
  maxEntries?: number | undefined;
} = {}): ReceiverStore {
  // With NaN, it would remember nothing.
  if (!(maxEntries >= 1)) throw new TypeError(`maxEntries of a memory store must be at least 1, not ${maxEntries}.`);
  /** Whether each has been processed. */
  const events = new Map<string, boolean>();
  const sessions = new Map<string, string>();
  const limit = (entries: Map<string, unknown>) => {
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries) break;
      entries.delete(oldest);
    }
  };
  return {
    async claim(event) {
      const isFinished = events.get(event);
      if (isFinished !== undefined) return isFinished ? false : 'in_progress';
      events.set(event, false);
      limit(events);
      return true;
    },
    async finish(event) {
      if (events.has(event)) events.set(event, true);
    },
    async release(event) {
      events.delete(event);
    },
    async advance(session, createdAt) {
      const newest = sessions.get(session);
      if (newest !== undefined && newest > createdAt) return false;
      // The session that had an event last goes to the end.
      sessions.delete(session);
      sessions.set(session, createdAt);
      limit(sessions);
      return true;
    },
  };
}

export interface RedisStoreOptions {
  /**
   * The beginning of all keys. Receivers with the same one process an event once together: give one to each that has
   * work of its own.
   */
  prefix?: string | undefined;
  /** How long events and sessions are remembered; at least as long as deliveries can be replayed. */
  keepMs?: number | undefined;
  /**
   * How long an event may take to process, its wait for earlier events of the session included. After that, another
   * delivery of it is processed too.
   */
  leaseMs?: number | undefined;
}

const ADVANCE = `local newest = redis.call('GET', KEYS[1])
if newest and newest > ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

/** Leaves what another process has claimed or finished after the lease. */
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`;

/**
 * Remembers events and sessions in Redis, for any number of processes. `send` sends one command: `(...command) =>
 * redis.call(...command)` for ioredis, `(...command) => redis.sendCommand(command)` for node-redis.
 */
export function redisStore(
  send: (name: string, ...args: string[]) => Promise<unknown>,
  { prefix = 'posthorn-receiver', keepMs = DEFAULT_KEEP_MS, leaseMs = DEFAULT_LEASE_MS }: RedisStoreOptions = {},
): ReceiverStore {
  const eventKey = (event: string) => `${prefix}:event:${event}`;
  let ownClaim: string | undefined;
  // Not made before it is needed: outside of a request, Cloudflare Workers have no random values.
  const claimed = () => (ownClaim ??= `claimed ${crypto.randomUUID()}`);
  return {
    async claim(event) {
      const key = eventKey(event);
      if ((await send('SET', key, claimed(), 'NX', 'PX', String(leaseMs))) !== null) return true;
      return (await send('GET', key)) === 'finished' ? false : 'in_progress';
    },
    async finish(event) {
      await send('SET', eventKey(event), 'finished', 'PX', String(keepMs));
    },
    async release(event) {
      await send('EVAL', RELEASE, '1', eventKey(event), claimed());
    },
    async advance(session, createdAt) {
      const advanced = await send('EVAL', ADVANCE, '1', `${prefix}:session:${session}`, createdAt, String(keepMs));
      return Number(advanced) === 1;
    },
  };
}
