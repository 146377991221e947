/** Prunes indexes: removes the entries whose record has expired. */
import { byStatusKey, partitionPrefix } from './keys.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** Index entries checked by one script: a few milliseconds of Redis. */
const PRUNE_CHUNK = 500;

/**
 * Which entries of an index to check: those made before `beforeMs`, until this many chunks of 500 were checked, or this
 * many entries found whose record is still there.
 */
interface PruneRange {
  beforeMs: number;
  maxChunks: number;
  maxKept: number;
}

/**
 * Removes the entries whose record has expired from an index of deliveries, oldest first, from `offset` on. Returns
 * where the next call goes on: 0 after the last one.
 */
export async function pruneIndex(
  store: Store,
  prefix: string,
  key: string,
  { beforeMs, maxChunks, maxKept }: PruneRange,
  offset = 0,
): Promise<number> {
  let next = offset;
  for (let chunk = 0; chunk < maxChunks && next - offset < maxKept; chunk++) {
    const values = { key, beforeMs, offset: next, limit: PRUNE_CHUNK };
    const { lookedAt, removed } = await runScript(store, 'pruneIndex', prefix, values);
    if (lookedAt < PRUNE_CHUNK) return 0;
    next += lookedAt - removed;
  }
  return next;
}

/** Prunes the index of a final status like `pruneIndex`. */
export async function pruneFinished(
  store: Store,
  partition: number,
  status: 'succeeded' | 'failed',
  range: PruneRange,
  offset?: number,
): Promise<number> {
  const prefix = partitionPrefix(store, partition);
  return await pruneIndex(store, prefix, byStatusKey(prefix, status), range, offset);
}

/**
 * Prunes the stream of the succeeded deliveries like `pruneIndex`, after the entry `after`. Returns the entry after
 * which the next call goes on, undefined after the last one.
 */
export async function pruneSucceeded(
  store: Store,
  partition: number,
  { beforeMs, maxChunks, maxKept }: PruneRange,
  after?: string,
): Promise<string | undefined> {
  const prefix = partitionPrefix(store, partition);
  let last = after;
  let kept = 0;
  for (let chunk = 0; chunk < maxChunks && kept < maxKept; chunk++) {
    const pruned = await runScript(store, 'pruneSucceeded', prefix, { after: last, beforeMs, limit: PRUNE_CHUNK });
    if (pruned.lookedAt < PRUNE_CHUNK) return undefined;
    ({ last } = pruned);
    kept += pruned.lookedAt - pruned.removed;
  }
  return last;
}
