/** The handle that every function of this package takes: the connection, the key prefix, and the settings of the installation. */
import { setTimeout as wait } from 'node:timers/promises';
import {
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_PAUSE_AFTER,
  StartError,
  StorageUnavailable,
  withTimeLimit,
} from '@posthorn/core';
import { Cluster, Redis } from 'ioredis';
import { checkKeys } from './check-keys.ts';
import { checkServer } from './check-server.ts';
import { failFast } from './fail-fast.ts';
import { type FormatRange, READABLE } from './formats.ts';
import { joinWrites } from './join-writes.ts';
import { allPrefixes, installationKey } from './keys.ts';
import { createOutageReport } from './outage-report.ts';
import { defineScripts } from './scripts.ts';
import { sentinelConnector } from './sentinel-connector.ts';
import { typeErrors } from './storage-errors.ts';
import { KnownFormat, type ProcessIdentity, type StoredFormat } from './stored-format.ts';
import { checkAnyPartition } from './unavailable-partitions.ts';

/** Pause between two attempts to open the store while Redis is unavailable. */
const START_RETRY_MS = 500;
/** A process that can't deregister in this time stops without. */
const LEAVE_TIMEOUT_MS = 1_000;

export interface RedisSettings {
  REDIS_URL: string;
  /** Some nodes of a Redis Cluster; wins over `REDIS_URL`, which then only gives user, password and TLS. */
  REDIS_CLUSTER_NODES?: readonly HostAndPort[] | undefined;
  /** Some sentinels, which say where the master is; `REDIS_URL` then only gives user, password, database and TLS. */
  REDIS_SENTINELS?: readonly HostAndPort[] | undefined;
  /** The name under which the sentinels watch the master. */
  REDIS_SENTINEL_NAME?: string | undefined;
  REDIS_SENTINEL_PASSWORD?: string | undefined;
}

export interface HostAndPort {
  host: string;
  port: number;
}

export interface Store {
  redis: Redis | Cluster;
  prefix: string;
  partitions: number;
  /** Whether one script may use keys of several partitions: in Redis Cluster they are in different slots. */
  spansPartitions: boolean;
  /** How long what has failed is kept. */
  retentionMs: number;
  /** How long what has succeeded is kept: at most `retentionMs`. */
  succeededRetentionMs: number;
  /** The format in which this process writes. */
  format: StoredFormat;
}

/**
 * A connection on which a command waits for this long is dead although it was not closed: the machine or the network is
 * gone. Longer than workers wait for a marker (5 s), shorter than a job's lock (30 s).
 */
const SILENCE_MS = 20_000;
const SENTINEL_TIMEOUT_MS = 2_000;
/** Longest pause between two attempts to reconnect, so that work resumes within a second of the return of Redis. */
const MAX_RECONNECT_DELAY_MS = 1_000;

/**
 * A connection to Redis or Redis Cluster that never stops reconnecting. Its commands, and those of its duplicates,
 * reject with `StorageUnavailable` while Redis is unavailable. With `failFastAfterMs`, a command without a reply in
 * that time fails, for apps that have a caller waiting; without it, commands wait until Redis is back.
 */
export function connectRedis(settings: RedisSettings, options: ConnectOptions = {}): Redis | Cluster {
  const redis = typeErrors(connect(settings, options));
  if (options.joinWrites) joinWrites(redis);
  if (options.failFastAfterMs !== undefined) failFast(redis, options.failFastAfterMs);
  return redis;
}

interface ConnectOptions {
  failFastAfterMs?: number;
  /** Sends the commands of one turn of the event loop in one write. Not for connections that block. */
  joinWrites?: boolean;
}

function connect(settings: RedisSettings, options: ConnectOptions): Redis | Cluster {
  const { REDIS_CLUSTER_NODES: nodes = [], REDIS_SENTINELS: sentinels = [] } = settings;
  const common = {
    maxRetriesPerRequest: options.failFastAfterMs === undefined ? null : 1,
    connectTimeout: 5_000,
    socketTimeout: SILENCE_MS,
    retryStrategy: reconnectDelayMs,
    // Redis loads its data: ask again after this, however long it says that it will take.
    maxLoadingRetryTime: MAX_RECONNECT_DELAY_MS,
    // The master has become a replica: reconnect. With sentinels, the command is repeated on the new master.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY') && (sentinels.length > 0 ? 2 : 1),
  };
  if (nodes.length === 0 && sentinels.length === 0) return new Redis(settings.REDIS_URL, common);
  const { username, password, protocol, pathname } = new URL(settings.REDIS_URL);
  const isTls = protocol === 'rediss:';
  const redisOptions = {
    ...common,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(isTls && { tls: {} }),
  };
  if (nodes.length > 0) return new Cluster([...nodes], { clusterRetryStrategy: reconnectDelayMs, redisOptions });
  const { REDIS_SENTINEL_NAME: name = 'mymaster', REDIS_SENTINEL_PASSWORD: sentinelPassword } = settings;
  return new Redis({
    ...redisOptions,
    db: Number(pathname.slice(1) || 0),
    sentinels: [...sentinels],
    name,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    sentinelRetryStrategy: reconnectDelayMs,
    // For a sentinel that accepts connections but does not reply. Then the next one is asked.
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // The sentinels report a failover, so that a master that is only unreachable is left at once.
    failoverDetector: true,
    Connector: sentinelConnector,
  });
}

function reconnectDelayMs(times: number): number {
  return Math.min(times * 50, MAX_RECONNECT_DELAY_MS);
}

/** The settings of the store, under their names in all apps (interface 2). */
export interface StoreSettings extends RedisSettings {
  KEY_PREFIX: string;
  PARTITIONS: number;
  RETENTION: number;
  /** Absent: `RETENTION`. */
  RETENTION_SUCCEEDED?: number;
}

/**
 * The store of one process. `start` waits until Redis can be used, checks that this process may take part in the
 * installation, and opens the store. Nothing may be read or written before `isOpen`: the data may belong to an
 * installation with other settings. `onWarning` gets the reason while Redis is away (each at once, then once a minute),
 * and what else an operator should know of Redis; `onError` gets all other errors.
 */
export function openStore(
  settings: StoreSettings,
  options: {
    failFastAfterMs?: number;
    onError: (error: Error) => void;
    onWarning?: (text: string) => void;
    /**
     * The Lua functions `addFirstJob` and `addToQueues` of the queue. Without it, new deliveries get no job (until
     * maintenance notices).
     */
    firstJobLua?: string;
    /** Is awaited before the store opens, once Redis can be used. */
    beforeOpen?: () => Promise<void>;
    /** The process that opens it; undefined for tools and tests, which are not registered. */
    identity?: ProcessIdentity;
    /** Gets the reason when this process can't work with what is stored any more. It must stop at once, without further commands. */
    onMismatch?: (error: StartError) => void;
    /** For tests: what this process reads. */
    formats?: FormatRange;
  },
) {
  const { KEY_PREFIX: prefix, PARTITIONS: partitions, RETENTION: retentionMs } = settings;
  const succeededRetentionMs = Math.min(settings.RETENTION_SUCCEEDED ?? retentionMs, retentionMs);
  const redis = connectRedis(settings, { ...options, joinWrites: true });
  defineScripts(redis, options.firstJobLua);
  const { identity, formats = READABLE, onMismatch = () => undefined, onWarning = () => undefined } = options;
  const format = new KnownFormat({ redis, prefix, partitions }, formats, identity, onMismatch, onWarning);
  const spansPartitions = partitions > 1 && !(redis instanceof Cluster);
  const lives = { retentionMs, succeededRetentionMs };
  const store: Store = { redis, prefix, partitions, spansPartitions, ...lives, format };
  let state: 'waiting' | 'open' | 'stopped' = 'waiting';
  const newOutageReport = () =>
    createOutageReport(settings, (text) => {
      if (state !== 'stopped') onWarning(text);
    });
  let reportOutage = newOutageReport();
  const onError = (error: Error) => {
    // While Redis is away, each connection fails several times a second for the same reason.
    if (state === 'waiting' || error instanceof StorageUnavailable) void reportOutage(error);
    else options.onError(error);
  };
  redis.on('error', onError);
  let isUsable = false;
  redis.on('ready', () => {
    isUsable = true;
    // The next outage is another one, however soon.
    if (state !== 'open') return;
    format.doubt();
    reportOutage = newOutageReport();
    // After a failover it is another server, perhaps with other settings. Most of the warnings were given at the start.
    checkServer(redis).catch((error: Error) => error instanceof StartError && onWarning(error.message));
  });
  // A server that refuses connections may only close them: ioredis reports no error then. The close of a usable
  // connection is no outage yet: the next one may be usable too.
  redis.on('close', () => {
    if (!isUsable && state !== 'stopped') void reportOutage(undefined);
    isUsable = false;
  });
  return {
    name: 'store',
    store,
    /** The partitions' prefixes, in order. */
    partitionPrefixes: allPrefixes(store),
    isOpen: () => state === 'open',
    /** For errors of other connections to the same Redis. While it is away, one report is enough. */
    onError,
    /** Rejects unless the store is open, this process may use it, and Redis accepts writes: in a Cluster, for any partition. */
    async checkReady(): Promise<void> {
      if (state !== 'open') throw new StorageUnavailable('Redis has not been reached since the start of this process.');
      await format.confirm();
      await checkAnyPartition(store);
    },
    /** Resolves once the store is open or stopped. Throws `StartError` where it must not be opened. */
    async start(): Promise<void> {
      while (state === 'waiting') {
        try {
          const warnings = await joinInstallation(store, format);
          await options.beforeOpen?.();
          if (state !== 'waiting') return;
          state = 'open';
          void format.keepUp(options.onError);
          for (const warning of warnings) onWarning(warning);
        } catch (error) {
          if (state !== 'waiting') return;
          if (error instanceof StartError) throw error;
          onError(error as Error);
          await wait(START_RETRY_MS);
        }
      }
    },
    async stop(): Promise<void> {
      state = 'stopped';
      if (redis.status === 'ready') await withTimeLimit(LEAVE_TIMEOUT_MS, format.leave()).catch(() => undefined);
      redis.disconnect();
    },
  };
}

/**
 * Checks the server and the keys, and that this process agrees with the installation on the stored format and on the
 * number of partitions. Returns warnings; throws `StartError`.
 */
async function joinInstallation(store: Store, format: KnownFormat): Promise<string[]> {
  // First, since it waits for the connection: a Cluster client knows none of its servers before.
  const { isEmpty } = await checkKeys(store);
  const warnings = await checkServer(store.redis);
  if (await format.join(isEmpty))
    warnings.push(
      `Nothing is stored under KEY_PREFIX "${store.prefix}", so a new installation begins, beside other keys in Redis. ` +
        'If it should have data, such as those of a backup, compare KEY_PREFIX.',
    );
  return warnings;
}

/** Rules that the workers apply and the other apps show. */
export interface Rules {
  maxAttempts: number;
  pauseAfter: number;
  /** Null until a worker of a version that says it has started. */
  attemptTimeoutMs: number | null;
  /** Held and overdue deliveries released per second to one address. Null until a worker of a version that says it has started. */
  releaseRate: number | null;
}

/** Stores the workers' rules for the other apps. */
export async function announceRules(store: Store, rules: Rules): Promise<void> {
  await store.redis.hset(installationKey(store.prefix), {
    max_attempts: rules.maxAttempts,
    pause_after: rules.pauseAfter,
    attempt_timeout: rules.attemptTimeoutMs ?? '',
    release_rate: rules.releaseRate ?? '',
  });
}

/** The workers' rules; those of the specification (section 8) until a worker has stored its own. */
export async function readRules(store: Store): Promise<Rules> {
  const key = installationKey(store.prefix);
  const [maxAttempts, pauseAfter, timeout, releaseRate] = await store.redis.hmget(
    key,
    'max_attempts',
    'pause_after',
    'attempt_timeout',
    'release_rate',
  );
  return {
    maxAttempts: Number(maxAttempts ?? DEFAULT_MAX_ATTEMPTS),
    pauseAfter: Number(pauseAfter ?? DEFAULT_PAUSE_AFTER),
    attemptTimeoutMs: timeout ? Number(timeout) : null,
    releaseRate: releaseRate ? Number(releaseRate) : null,
  };
}

/** Reads from all partitions at once. Returns what `read` resolved to for each, as one list. */
export async function readPartitions<T>(store: Store, read: (prefix: string) => Promise<T | T[]>): Promise<T[]> {
  return (await Promise.all(allPrefixes(store).map(read))).flat() as T[];
}

/** The sum of a count over all partitions. */
export async function sumPartitions(store: Store, count: (prefix: string) => Promise<number>): Promise<number> {
  return (await readPartitions(store, count)).reduce((sum, one) => sum + one, 0);
}

/** The numbers of all partitions. */
export function allPartitions(store: Store): number[] {
  return Array.from({ length: store.partitions }, (_, partition) => partition);
}
