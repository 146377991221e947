/** Opens the store of one process, once Redis can be used and the process may take part in the installation. */
import { setTimeout as wait } from 'node:timers/promises';
import { StartError, StorageUnavailable, withTimeLimit } from '@posthorn/core';
import { Cluster, type Redis } from 'ioredis';
import { checkKeys } from './check-keys.ts';
import { agreedSettings, type WorkersSettings } from './format/differing-settings.ts';
import { type FormatRange, READABLE } from './format/formats.ts';
import { KnownFormat, type ProcessIdentity } from './format/stored-format.ts';
import { allPrefixes } from './keys.ts';
import { checkServer } from './redis/check-server.ts';
import { connectRedis, type RedisSettings } from './redis/connect-redis.ts';
import { createRedisReport, describeServers } from './redis/redis-report.ts';
import { checkAllPartitions, checkAnyPartition } from './redis/unavailable-partitions.ts';
import { defineScripts } from './scripts.ts';
import type { Store } from './store.ts';

/** Pause between two attempts to open the store while Redis is unavailable. */
const START_RETRY_MS = 500;
/** Without an error for this time Redis is usable: what it has refused is repeated sooner. */
const QUIET_MS = 2_000;
/** A process that can't deregister in this time stops without. */
const LEAVE_TIMEOUT_MS = 1_000;

/** The settings of the store, under their names in all apps (interface 2). */
interface StoreSettings extends RedisSettings, WorkersSettings {
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
 * and what else an operator should know of Redis; `onRecovery` gets a sentence when it can be used again, and `onError`
 * all other errors.
 */
export function openStore(
  settings: StoreSettings,
  options: {
    failFastAfterMs?: number;
    onError: (error: Error) => void;
    onWarning?: (text: string) => void;
    onRecovery?: (text: string) => void;
    /** Is awaited before the store opens, once Redis can be used. */
    beforeOpen?: () => Promise<void>;
    /** The process that opens it; undefined for tools and tests, which are not registered. */
    identity?: ProcessIdentity;
    /**
     * Gets the reason when this process can't work with what is stored any more. It must stop at once, without further
     * commands.
     */
    onMismatch?: (error: StartError) => void;
    /** For tests: what this process reads. */
    formats?: FormatRange;
  },
) {
  const { KEY_PREFIX: prefix, PARTITIONS: partitions, RETENTION: retentionMs } = settings;
  const succeededRetentionMs = Math.min(settings.RETENTION_SUCCEEDED ?? retentionMs, retentionMs);
  const redis = connectRedis(settings, { ...options, joinWrites: true });
  defineScripts(redis);
  const { identity, formats = READABLE, onMismatch = () => undefined, onWarning = () => undefined } = options;
  const agreed = agreedSettings({ ...settings, RETENTION_SUCCEEDED: succeededRetentionMs });
  const formatOptions = { readable: formats, identity, onMismatch, onWarning, settings: agreed };
  const format = new KnownFormat({ redis, prefix, partitions, retentionMs }, formatOptions);
  const spansPartitions = partitions > 1 && !(redis instanceof Cluster);
  const store: Store = { redis, prefix, partitions, spansPartitions, retentionMs, succeededRetentionMs, format };
  let state: State = 'waiting';
  const onError = reportUnavailable(store, settings, { ...options, state: () => state, onWarning });
  redis.on('ready', () => {
    if (state !== 'open') return;
    format.doubt();
    // After a failover it is another server, perhaps with other settings. Most of the warnings were given at the start.
    checkServer(redis).catch((error: Error) =>
      error instanceof StartError ? onWarning(error.message) : onError(error),
    );
  });
  // A server of a Cluster. It is reached later than it is known, and may have come back without its data.
  redis.on('+node', (node: Redis) => node.on('ready', () => format.doubtPartitions()));
  return {
    name: 'store',
    store,
    /** The partitions' prefixes, in order. */
    partitionPrefixes: allPrefixes(store),
    isOpen: () => state === 'open',
    /** For errors of other connections to the same Redis. While it is away, one report is enough. */
    onError,
    /**
     * Rejects unless the store is open, this process may use it, and Redis accepts writes: in a Cluster, for any
     * partition.
     */
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
          void format.keepUp(onError);
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

type State = 'waiting' | 'open' | 'stopped';

interface ReportOptions {
  state: () => State;
  onWarning: (text: string) => void;
  onRecovery?: (text: string) => void;
  onError: (error: Error) => void;
}

/**
 * Tells `onWarning` why Redis can't be used while it can't, and `onRecovery` when it can be used again. Returns a
 * function for the errors of all connections to it.
 */
function reportUnavailable(
  store: Store,
  settings: RedisSettings,
  { state, onWarning, onRecovery, onError: onOther }: ReportOptions,
): (error: Error) => void {
  const { redis } = store;
  let lastAtMs = 0;
  let isAway = false;
  const sayWhenBack = async () => {
    isAway = true;
    do await wait(QUIET_MS, undefined, { ref: false });
    while (state() !== 'stopped' && !(await isUsable()));
    isAway = false;
    if (state() !== 'stopped') onRecovery?.(`${describeServers(settings).where} can be used again.`);
  };
  const isUsable = async () => {
    const takesWrites = await checkAllPartitions(store).then(
      () => true,
      () => false,
    );
    return takesWrites && performance.now() - lastAtMs >= QUIET_MS;
  };
  const newReport = () => {
    const report = createRedisReport(settings, (text) => {
      if (state() === 'stopped') return;
      onWarning(text);
      // Before the store is open, nothing may be written, and `ready` says that Redis can be used.
      if (state() === 'open' && !isAway) void sayWhenBack();
    });
    return (error: Error | undefined) => {
      lastAtMs = performance.now();
      return report(error);
    };
  };
  let report = newReport();
  // Never begun anew: each write that a replica refuses makes a new connection (`reconnectOnError`).
  const reportReplica = newReport();
  const onError = (error: Error) => {
    // While Redis is away, each connection fails several times a second for the same reason.
    if (state() === 'waiting' || error instanceof StorageUnavailable)
      void (error.message.startsWith('READONLY') ? reportReplica : report)(error);
    else onOther(error);
  };
  redis.on('error', onError);
  let isConnected = false;
  redis.on('ready', () => {
    isConnected = true;
    // If it is away again, that is reported again, however soon.
    if (state() === 'open') report = newReport();
  });
  // A server that refuses connections may only close them: ioredis reports no error then. The close of a usable
  // connection says nothing yet: the next one may be usable too.
  redis.on('close', () => {
    if (!isConnected && state() !== 'stopped') void report(undefined);
    isConnected = false;
  });
  return onError;
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
