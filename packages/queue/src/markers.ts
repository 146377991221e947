/** Waits for the markers that BullMQ sets when a job is added to an empty queue or is due later. */
import { queueKey, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { Cluster, type Redis } from 'ioredis';
import type { Partition, Partitions } from './partitions.ts';

/** A reply this much later than the timeout will not come: the connection was lost unnoticed. */
const OVERDUE_MS = 2_000;
/** Timeout while some partitions are not watched, because they have jobs: they are watched from the next wait on. */
const PARTIAL_WAIT_MS = 250;
/** Pause after an error. */
const RETRY_MS = 1_000;
/** Redis ends a wait early: at a planned failover, or because somebody has asked for it. The next wait may begin. */
const UNBLOCKED = /^UNBLOCKED /;

interface MarkersOptions {
  redis: Redis | Cluster;
  partitionPrefixes: readonly string[];
  partitions: Partitions;
  /** Whether a job may be taken now. */
  canTake: () => boolean;
  /** Looks whether empty partitions have jobs. */
  look: (empty: readonly Partition[]) => Promise<void>;
  /** Called when a partition is no longer empty. */
  changed: () => void;
  onError: (error: unknown) => void;
}

/**
 * One connection waits for all partitions. In Redis Cluster a command can't read several of them, so each has one of
 * its own there. The member of a marker is `0` where jobs wait, and `1` with the time of the next delayed job.
 */
export function createMarkers(options: MarkersOptions) {
  const { partitions, redis } = options;
  const groups = redis instanceof Cluster ? partitions.all.map((one) => [one]) : [[...partitions.all]];
  const waits = groups.map((group) => createWait(group, options));
  return {
    /** Starts to wait for the empty partitions of each connection. */
    wait(): void {
      for (const wait of waits) wait.begin();
    },
    close(): void {
      for (const wait of waits) wait.close();
    },
  };
}

function createWait(group: readonly Partition[], options: MarkersOptions) {
  const { partitions, redis, canTake, look, changed, onError } = options;
  const keyOf = ({ index }: Partition) => queueKey(options.partitionPrefixes[index] ?? '', 'marker');
  let connection: Redis | Cluster | undefined;
  let isWaiting = false;
  let isClosed = false;

  /** Resolves to the reply, or undefined after the timeout. */
  const pop = async (
    keys: string[],
    timeoutMs: number,
  ): Promise<[key: string, member: string, score: string] | undefined> => {
    if (!connection) {
      // Two calls for the compiler: the types of the two methods have nothing in common.
      connection = redis instanceof Cluster ? redis.duplicate() : redis.duplicate();
      connection.on('error', onError);
    }
    const popped = connection.bzpopmin(...keys, timeoutMs / 1000);
    try {
      return (await withTimeLimit(timeoutMs + OVERDUE_MS, popped)) ?? undefined;
    } catch (error) {
      if (error instanceof Error && UNBLOCKED.test(error.message)) return undefined;
      if (!(error instanceof TimeLimitExceeded)) throw error;
      connection?.disconnect();
      connection = undefined;
      return undefined;
    }
  };

  const waitOnce = async (watched: readonly Partition[]) => {
    const timeoutMs = Math.max(1, Math.min(...watched.map((partition) => partitions.restMs(partition))));
    const isPartial = watched.length < group.length;
    const popped = await pop(watched.map(keyOf), isPartial ? Math.min(timeoutMs, PARTIAL_WAIT_MS) : timeoutMs);
    if (popped) await handle(popped, watched);
    const due = watched.filter((partition) => partition.state === 'empty' && partitions.restMs(partition) === 0);
    if (due.length > 0) await look(due);
  };

  const handle = async ([key, , score]: [string, string, string], watched: readonly Partition[]) => {
    const partition = group.find((one) => keyOf(one) === key);
    // If this worker may not take the job any more, another one has to hear of it. An earlier marker stays.
    if (!canTake()) await redis.zadd(key, 'LT', score, score === '0' ? '0' : '1');
    else if (partition && Number(score) <= Date.now()) partitions.markerCame(partition, watched);
    else if (partition) partition.askAgainAtMs = Math.min(partition.askAgainAtMs, Number(score));
  };

  return {
    async begin(): Promise<void> {
      const watched = group.filter(({ state }) => state === 'empty');
      const isUnsure = group.some(({ state, taking }) => state === 'unknown' || taking > 0);
      if (isWaiting || isClosed || isUnsure || watched.length === 0) return;
      isWaiting = true;
      try {
        await waitOnce(watched);
      } catch (error) {
        if (isClosed) return;
        onError(error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      } finally {
        isWaiting = false;
      }
      if (!isClosed) changed();
    },
    close(): void {
      isClosed = true;
      connection?.disconnect();
    },
  };
}
