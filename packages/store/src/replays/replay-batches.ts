/**
 * Batches: bulk replays of several addresses, started and cancelled together. The addresses may be in several
 * partitions, so the decision is stored first, in one step; `stepBatch` carries it out and may be repeated.
 */
import {
  eachInTurn,
  MAX_BATCH_ADDRESSES,
  newReplayBatchId,
  newReplayId,
  type Replay,
  type ReplayBatch,
} from '@posthorn/core';
import * as keys from '../keys.ts';
import { withCircuitBreaker } from '../redis/circuit-breaker.ts';
import { unlessUnavailable } from '../redis/storage-errors.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { MAX_COUNTED, type ReplayScope } from './replay-count.ts';
import { cancelReplay } from './replay-decisions.ts';
import { loadReplays } from './replay-record.ts';
import { lastCovered, startReplay } from './replays.ts';

/** Batches that one run of maintenance takes from a partition. The console usually leaves none. */
const MAX_BATCHES_AT_ONCE = 20;

/** What all replays of a batch cover. */
interface BatchScope extends Omit<ReplayScope, 'subscriptionId'> {
  subscriptionIds: readonly string[];
  canary: boolean;
}

/**
 * Starts a bulk replay for each of several different addresses: once the batch is stored, every one of them begins. The
 * caller has checked that the addresses are active; one that is not any more gets its deliveries held, and the replay
 * of one that is deleted fails.
 */
export async function startBatch(
  store: Store,
  { subscriptionIds, ...scope }: BatchScope,
  nowMs: number,
  operator: string,
): Promise<ReplayBatch> {
  const [first] = subscriptionIds;
  if (first === undefined || subscriptionIds.length > MAX_BATCH_ADDRESSES)
    throw new RangeError(`A batch has 1 to ${MAX_BATCH_ADDRESSES} addresses`);
  const id = newReplayBatchId(first);
  const members = subscriptionIds.map((subscriptionId) => ({ subscriptionId, replayId: newReplayId(subscriptionId) }));
  const lasts = await Promise.all(subscriptionIds.map((subscriptionId) => lastCovered(store, subscriptionId, nowMs)));
  const batch = { ...scope, toMs: Math.min(scope.toMs, Math.max(...lasts)), createdAtMs: nowMs, operator, members };
  await runScript(store, 'saveReplayBatch', keys.prefixOfId(store, id), {
    id,
    text: JSON.stringify(batch),
    // It is kept as long as its replays are listed.
    expiresAtMs: nowMs + 2 * store.retentionMs,
  });
  await beginStep(store, id, nowMs);
  return { id, ...batch, cancellation: null };
}

/** Cancels every replay of a batch that can be cancelled. Returns whether there is such a batch. */
export async function cancelBatch(store: Store, batchId: string, nowMs: number, operator: string): Promise<boolean> {
  const cancellation = JSON.stringify({ atMs: nowMs, operator });
  const prefix = keys.prefixOfId(store, batchId);
  if ((await runScript(store, 'cancelReplayBatch', prefix, { id: batchId, cancellation })) === 'gone') return false;
  await beginStep(store, batchId, nowMs);
  return true;
}

/** Carries out a stored decision. If Redis is unavailable, maintenance does: whoever decided must not repeat it. */
async function beginStep(store: Store, batchId: string, nowMs: number): Promise<void> {
  await stepBatch(store, batchId, nowMs).catch(unlessUnavailable);
}

/** Some of the batches of a partition whose last decision may not be carried out yet. */
export async function activeBatches(store: Store, partition: number): Promise<string[]> {
  const key = keys.activeBatchesKey(keys.partitionPrefix(store, partition));
  return await store.redis.srandmember(key, MAX_BATCHES_AT_ONCE);
}

/**
 * Carries out the decision on a batch: starts its replays that are not started, or cancels those that can be cancelled.
 * Several processes may do it at once, and repeat it: a replay with an id is started once. In a Redis Cluster, a member
 * whose partition is unavailable does not stop the others.
 */
export async function stepBatch(store: Store, batchId: string, nowMs: number): Promise<void> {
  const batch = await loadBatch(store, batchId);
  const prefix = keys.prefixOfId(store, batchId);
  if (!batch) {
    await store.redis.srem(keys.activeBatchesKey(prefix), batchId);
    return;
  }
  const { members, cancellation } = batch;
  const key = keys.replayBatchKey(prefix, batchId);
  const areStarted = cancellation !== null && (await store.redis.hexists(key, 'started')) === 1;
  await eachInTurn(members, async (member) => {
    // Starts it even to cancel it: another process may be about to start it, and that start then changes nothing.
    if (!areStarted) await startMember(store, member, batch);
    if (cancellation) await cancelReplay(store, member.replayId, nowMs, cancellation.operator);
  });
  const seen = cancellation === null ? undefined : JSON.stringify(cancellation);
  await runScript(store, 'closeReplayBatch', prefix, { id: batchId, cancellation: seen });
}

async function startMember(
  store: Store,
  { subscriptionId, replayId }: ReplayBatch['members'][number],
  { id: batchId, members, cancellation, createdAtMs, operator, ...scope }: ReplayBatch,
): Promise<void> {
  const [present] = await withCircuitBreaker(store, keys.prefixOfId(store, replayId), () =>
    loadReplays(store, [replayId]),
  );
  if (present) return;
  const isCancelled = cancellation !== null;
  const decision = cancellation ?? { atMs: createdAtMs, operator };
  const accepted = { replayId, batchId, isCancelled, maxCounted: Math.ceil(MAX_COUNTED / members.length) };
  await startReplay(store, { subscriptionId, ...scope, accepted }, decision.atMs, decision.operator);
}

/** A batch; undefined if it does not exist (any more). */
export async function loadBatch(store: Store, batchId: string): Promise<ReplayBatch | undefined> {
  const key = keys.replayBatchKey(keys.prefixOfId(store, batchId), batchId);
  const [text, cancellation] = await store.redis.hmget(key, 'batch', 'cancellation');
  if (text == null) return undefined;
  const batch = JSON.parse(text) as Omit<ReplayBatch, 'id' | 'cancellation'>;
  const decided = cancellation == null ? null : (JSON.parse(cancellation) as ReplayBatch['cancellation']);
  return { id: batchId, ...batch, cancellation: decided };
}

/** The replays of a batch that are stored, and how many are still to be started. */
export async function loadBatchReplays(
  store: Store,
  { id, members }: ReplayBatch,
): Promise<{ replays: Replay[]; unstarted: number }> {
  const isActive = await store.redis.sismember(keys.activeBatchesKey(keys.prefixOfId(store, id)), id);
  const loaded = await loadReplays(
    store,
    members.map(({ replayId }) => replayId),
  );
  const replays = loaded.filter((replay) => replay !== undefined);
  // Once all have been started, a missing one has expired.
  return { replays, unstarted: isActive === 1 ? members.length - replays.length : 0 };
}
