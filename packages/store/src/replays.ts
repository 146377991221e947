/** Replays: an operator's new deliveries of failed ones, one by one or all of an address in the background. */
import { deliveryId, type EventRef, newReplayId, type Replay, type ReplayStatus } from '@posthorn/core';
import type { AuditNote } from './audit.ts';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from './delivery-record.ts';
import { keepIfExists } from './events.ts';
import * as keys from './keys.ts';
import { streamLimits } from './new-deliveries.ts';
import { fieldList, type ReplayRefusal, runScript } from './scripts.ts';
import { pairs, scanSortedSet } from './sorted-set.ts';
import type { Store } from './store.ts';
import { pruneIndex } from './upkeep.ts';

/** Deliveries replayed in one script: a few milliseconds of Redis. */
const STEP = 100;

/**
 * Makes a new delivery of a failed one's event (specification 3.1), under a random id. The caller adds its first job where it is
 * `pending`.
 */
export async function replayDelivery(
  store: Store,
  failed: StoredDelivery,
  nonce: string,
  nowMs: number,
  audit: AuditNote,
): Promise<{ refused: ReplayRefusal } | { deliveryId: string; state: 'pending' | 'held' | 'alreadyQueued' }> {
  const { event, subscriptionId } = failed;
  // First, so that the new delivery finds its event whatever happens in between.
  if (!(await keepIfExists(store, event, nowMs + keptWhileUnfinishedMs(store)))) return { refused: 'too_late' };
  const id = deliveryId(event, subscriptionId, nonce);
  const detail = { new_delivery_id: id };
  const result = await runScript(store, 'replayDelivery', keys.prefixOfId(store, id), {
    subscriptionId,
    failedId: failed.id,
    firstId: deliveryId(event, subscriptionId),
    newId: id,
    nowMs,
    ...streamLimits(store, nowMs),
    retentionMs: store.retentionMs,
    auditEntry: { ...audit, action: 'delivery.replayed', subscriptionId, deliveryId: failed.id, detail },
  });
  if (result === 'pending' || result === 'held' || result === 'alreadyQueued') return { deliveryId: id, state: result };
  return { refused: result === 'none' ? 'not_active' : result };
}

/** Ids of the replays of an event to an address, oldest first, with their creation times. */
export async function replaysOf(
  store: Store,
  event: EventRef,
  subscriptionId: string,
): Promise<{ id: string; createdAtMs: number }[]> {
  const first = deliveryId(event, subscriptionId);
  const prefix = keys.prefixOfSubscription(store, subscriptionId);
  const flat = await store.redis.zrange(keys.replaysOfKey(prefix, first), '0', '-1', 'WITHSCORES');
  return pairs(flat).map(([id, createdAt]) => ({ id, createdAtMs: Number(createdAt) }));
}

/**
 * Starts a bulk replay of the failed deliveries of an address that were made from `fromMs` to `toMs`, both included; `stepReplay` does the
 * work. Leaves out deliveries made after `nowMs`, or a replay could replay its own deliveries.
 */
export async function startReplay(
  store: Store,
  wanted: { subscriptionId: string; fromMs: number; toMs: number },
  nowMs: number,
  audit: AuditNote,
): Promise<Replay | 'no_subscription' | 'not_active'> {
  const { subscriptionId, fromMs } = wanted;
  const toMs = Math.min(wanted.toMs, nowMs);
  const id = newReplayId(subscriptionId);
  const total = await countFailed(store, subscriptionId, fromMs, toMs, nowMs);
  const from = fromMs === 0 ? null : new Date(fromMs).toISOString();
  const detail = { from, to: new Date(toMs).toISOString(), total };
  const operator = audit.operator ?? '';
  const result = await runScript(store, 'startReplay', keys.prefixOfId(store, id), {
    id,
    subscriptionId,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: { ...audit, action: 'replay.started', subscriptionId, replayId: id, detail },
    fields: fieldList({ from: fromMs, to: toMs, total, replayed: 0, skipped: 0, created_at: nowMs, operator }),
  });
  if (result !== 'started') return result;
  const [replay] = await loadReplays(store, [id]);
  if (!replay) throw new Error(`The replay ${id} is gone right after its start`);
  return replay;
}

/**
 * Counts the failed deliveries of an address that were made in a time range: what a bulk replay would look at. First removes those
 * whose record has expired from the index.
 */
export async function countFailed(
  store: Store,
  subscriptionId: string,
  fromMs: number,
  toMs: number,
  nowMs: number,
): Promise<number> {
  const prefix = keys.prefixOfSubscription(store, subscriptionId);
  const key = keys.failedKey(prefix, subscriptionId);
  await pruneIndex(store, prefix, key, nowMs - store.retentionMs, Number.POSITIVE_INFINITY);
  return await store.redis.zcount(key, fromMs, toMs);
}

/** The running bulk replays of a partition. */
export async function runningReplays(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(keys.replayingKey(keys.partitionPrefix(store, partition)));
}

/**
 * Does the next step of a bulk replay, oldest failures first; returns whether there is more to do. Several processes may do it at
 * once, and it may be repeated after a crash: a step counts once, and a failed delivery is replayed once. Skips a delivery that already has
 * a replay which is unfinished or has succeeded.
 */
export async function stepReplay(store: Store, replayId: string, nowMs: number): Promise<boolean> {
  const prefix = keys.prefixOfId(store, replayId);
  const record = await store.redis.hmget(
    keys.replayKey(prefix, replayId),
    'subscription',
    'status',
    'cursor',
    'from',
    'to',
  );
  const [subscriptionId, status, cursor, from, to] = record;
  if (subscriptionId == null || status !== 'running') {
    await store.redis.srem(keys.replayingKey(prefix), replayId);
    return false;
  }
  const [afterMs, afterId = ''] = cursor?.split(' ') ?? [];
  const found = await scanSortedSet(store, keys.failedKey(prefix, subscriptionId), {
    order: 'oldest_first',
    after: afterMs === undefined ? undefined : { ms: Number(afterMs), id: afterId },
    count: STEP,
    fromMs: Number(from),
    toMs: Number(to),
  });
  const last = found.at(-1);
  const isLast = found.length < STEP;
  const candidates = await replayable(
    store,
    found.map(({ id }) => id),
    nowMs,
  );
  const isDone = await runScript(store, 'stepReplay', prefix, {
    id: replayId,
    cursor: cursor ?? undefined,
    nextCursor: last ? `${last.ms} ${last.id}` : (cursor ?? undefined),
    isLast,
    lookedAt: found.length,
    nowMs,
    ...streamLimits(store, nowMs),
    retentionMs: store.retentionMs,
    candidates: candidates.map(({ id, event }) => ({
      failedId: id,
      firstId: deliveryId(event, subscriptionId),
      newId: deliveryId(event, subscriptionId, replayId),
    })),
  });
  return !isDone || !isLast;
}

/** The deliveries whose event still exists. Extends its life first, so that the new delivery finds it. */
async function replayable(store: Store, ids: string[], nowMs: number): Promise<StoredDelivery[]> {
  const deliveries = await loadExisting(store, ids);
  const exists = await Promise.all(
    deliveries.map(({ event }) => keepIfExists(store, event, nowMs + keptWhileUnfinishedMs(store))),
  );
  return deliveries.filter((_, i) => exists[i]);
}

/** Bulk replays by id, in the order of the ids; undefined for an id that has none (any more). */
export async function loadReplays(store: Store, ids: readonly string[]): Promise<(Replay | undefined)[]> {
  return await Promise.all(
    ids.map(async (id) => decodeReplay(id, await store.redis.hgetall(keys.replayKey(keys.prefixOfId(store, id), id)))),
  );
}

function decodeReplay(id: string, record: Record<string, string>): Replay | undefined {
  if (record.subscription === undefined) return undefined;
  return {
    id,
    subscriptionId: record.subscription,
    fromMs: Number(record.from),
    toMs: Number(record.to),
    status: record.status as ReplayStatus,
    total: Number(record.total),
    replayed: Number(record.replayed),
    skipped: Number(record.skipped),
    createdAtMs: Number(record.created_at),
    finishedAtMs: record.finished_at === undefined ? null : Number(record.finished_at),
    operator: record.operator ?? '',
  };
}
