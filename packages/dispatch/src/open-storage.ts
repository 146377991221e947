/** Opens the store and the queues of an app with callers, and reads counts from both. */
import { awaitValues, HOUR_MS, type StartError } from '@posthorn/core';
import { createJobQueues, type JobQueues } from '@posthorn/queue';
import {
  aliveWorkers,
  countFailingSince,
  countStored,
  type FanOutContext,
  findUnavailable,
  oldestNotice,
  oldestPause,
  openStore,
  type ProcessIdentity,
  readFormat,
  readServerState,
  type Store,
} from '@posthorn/store';

/** A caller waits for the response: a command fails if Redis does not reply in this time. */
const FAIL_FAST_AFTER_MS = 5_000;

/**
 * How long an address counts as newly failing. One with little traffic needs hours for the failures with which a
 * failing period begins, and the period begins at the first of them.
 */
const NEWLY_FAILING_MS = 6 * HOUR_MS;

/** Opens the storage. Sends nothing before `storage` starts. `onMismatch`: see `openStore`. */
export function openStorage(
  settings: Parameters<typeof openStore>[0],
  logger: FanOutContext['logger'],
  options: { identity: ProcessIdentity; onMismatch: (error: StartError) => void },
) {
  const storage = openStore(settings, {
    ...options,
    failFastAfterMs: FAIL_FAST_AFTER_MS,
    onError: (err) => logger.warn({ err }, 'redis.failed'),
    onWarning: (text) => logger.warn({}, text),
    onRecovery: (text) => logger.info({}, text),
    beforeOpen: () => jobQueues.ready(),
  });
  const { store, partitionPrefixes, onError } = storage;
  const jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes, onError });
  return { storage, store, jobQueues };
}

interface StoreAndQueue {
  store: Store;
  jobQueues: JobQueues;
}

/** Resolves with counts of what is in Redis, jobs included. To be called once the storage is open. */
export async function readBacklog({ store, jobQueues }: StoreAndQueue, nowMs: number) {
  const [stored, jobs] = await Promise.all([countStored(store, nowMs), jobQueues.counts()]);
  return { ...stored, jobs };
}

/** For metrics: whether the storage is open, and then how to read what they say about the whole installation. */
export function installationIn(storage: ReturnType<typeof openStore>, jobQueues: JobQueues, now: () => number) {
  return { isOpen: storage.isOpen, read: () => readInstallation({ store: storage.store, jobQueues }, now) };
}

async function readInstallation({ store, jobQueues }: StoreAndQueue, now: () => number) {
  const nowMs = now();
  const { backlog, server, pausedAtMs, noticeAtMs, workers, unavailable, ...read } = await awaitValues({
    backlog: readBacklog({ store, jobQueues }, nowMs),
    newlyFailingAddresses: countFailingSince(store, nowMs - NEWLY_FAILING_MS),
    pausedAtMs: oldestPause(store),
    noticeAtMs: oldestNotice(store),
    workers: aliveWorkers(store),
    server: readServerState(store, now),
    format: readFormat(store),
    unavailable: findUnavailable(store),
  });
  return {
    ...backlog,
    ...server,
    ...read,
    oldestPauseAgeMs: ageOf(pausedAtMs, nowMs),
    oldestNoticeAgeMs: ageOf(noticeAtMs, nowMs),
    workers: workers.length,
    partitions: store.partitions,
    refusingPartitions: unavailable.length,
  };
}

/** 0 where there is none. Never less, also where another process's clock is ahead. */
function ageOf(atMs: number | undefined, nowMs: number): number {
  return atMs === undefined ? 0 : Math.max(0, nowMs - atMs);
}
