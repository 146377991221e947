/** Replays: an operator's new deliveries of failed ones, one by one or all of an address in the background. */
import { randomBytes } from 'node:crypto';
import {
  CANARY_DELIVERIES,
  DELIVERY_STATUSES,
  deliveryId,
  type EventRef,
  isCovered,
  judgeCanary,
  newReplayId,
  type Replay,
  replayableUntilMs,
  StorageUnavailable,
} from '@posthorn/core';
import {
  keptWhileUnfinishedMs,
  loadEntries,
  loadExisting,
  type StoredDelivery,
} from '../deliveries/delivery-record.ts';
import { keepIfExists } from '../events/events.ts';
import * as keys from '../keys.ts';
import { pairs, scanSortedSet } from '../lists/sorted-set.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { fieldList, type ReplayRefusal, runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { countCovered, type ReplayScope } from './replay-count.ts';
import { fieldsOfFilter, loadReplays } from './replay-record.ts';

/** Deliveries replayed in one script: a few milliseconds of Redis. */
const STEP = 100;

/**
 * Makes a new delivery of a failed one's event, with fresh attempts and its first job (specification 3.1). `nonce`
 * tells its id from those of other replays.
 */
export async function replayDelivery(
  store: Store,
  failed: StoredDelivery,
  nowMs: number,
  operator: string,
  nonce = randomBytes(16).toString('base64url'),
): Promise<{ refused: ReplayRefusal } | { deliveryId: string }> {
  const { event, subscriptionId } = failed;
  const refused = refusalOf(store, failed, nowMs);
  if (refused) return { refused };
  // Before the script, so that the new delivery finds its event whatever happens in between.
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
    auditEntry: { operator, action: 'delivery.replayed', subscriptionId, deliveryId: failed.id, detail },
  });
  if (result === 'pending' || result === 'held' || result === 'without_first_job') return { deliveryId: id };
  return { refused: result === 'none' ? 'not_active' : result };
}

/**
 * Why a delivery can't be replayed, as far as its record says it; undefined if it may be. The scripts decide the same
 * again. To be asked before the life of its event is extended.
 */
export function refusalOf(store: Store, failed: StoredDelivery, nowMs: number): ReplayRefusal | undefined {
  const { status, finishedAtMs, erased } = failed;
  if (status !== 'failed') return 'not_failed';
  if (nowMs > replayableUntilMs(finishedAtMs ?? 0, store.retentionMs)) return 'too_late';
  return erased ? 'erased' : undefined;
}

/** Ids of the replays of an event to an address, oldest first, with their creation times. */
export async function replaysOf(
  store: Store,
  event: EventRef,
  subscriptionId: string,
): Promise<{ id: string; createdAtMs: number }[]> {
  return await readReplays(store, replaysKeyOf(store, deliveryId(event, subscriptionId)));
}

/**
 * The same for some hundred addresses, by the first delivery to each, in no order. Mostly there are none, which takes
 * one command for each partition.
 */
export async function replaysOfAll(
  store: Store,
  firstIds: readonly string[],
): Promise<{ id: string; createdAtMs: number }[]> {
  const byPrefix = Map.groupBy(firstIds, (id) => keys.prefixOfId(store, id));
  const found = Array.from(byPrefix.values(), async (ids) => {
    const names = ids.map((id) => replaysKeyOf(store, id));
    if ((await store.redis.exists(names)) === 0) return [];
    return (await Promise.all(names.map((name) => readReplays(store, name)))).flat();
  });
  return (await Promise.all(found)).flat();
}

function replaysKeyOf(store: Store, firstId: string): string {
  return keys.replaysOfKey(keys.prefixOfId(store, firstId), firstId);
}

async function readReplays(store: Store, key: string): Promise<{ id: string; createdAtMs: number }[]> {
  const flat = await store.redis.zrange(key, '0', '-1', 'WITHSCORES');
  return pairs(flat).map(([id, createdAt]) => ({ id, createdAtMs: Number(createdAt) }));
}

interface WantedReplay extends ReplayScope {
  canary: boolean;
  /** Part of a batch: it begins in any case, once for its id. `isCancelled`: it begins as cancelled. */
  accepted?: { replayId: string; batchId: string; isCancelled: boolean; maxCounted: number };
}

/**
 * Starts a bulk replay; `stepReplay` does the work. It ends at `lastCovered`, since otherwise it could go on for as
 * long as deliveries fail. With `canary` it first makes `CANARY_DELIVERIES`, and goes on only when all of them are
 * delivered. Throws `StorageUnavailable` if a failover has lost the replay.
 */
export async function startReplay(
  store: Store,
  wanted: WantedReplay,
  nowMs: number,
  operator: string,
): Promise<Replay | 'no_subscription' | 'not_active'> {
  const { subscriptionId, fromMs, canary, accepted } = wanted;
  const toMs = Math.min(wanted.toMs, await lastCovered(store, subscriptionId, nowMs));
  const id = accepted?.replayId ?? newReplayId(subscriptionId);
  const { count: total } = await countCovered(store, { ...wanted, toMs }, nowMs, accepted?.maxCounted);
  const filter = fieldsOfFilter(wanted.filter);
  const from = fromMs === 0 ? null : new Date(fromMs).toISOString();
  const batch = accepted && { batch: accepted.batchId };
  const detail = { from, to: new Date(toMs).toISOString(), total, ...filter, ...(canary && { canary }), ...batch };
  const action = accepted?.isCancelled ? 'replay.cancelled' : 'replay.started';
  const counts = { total, replayed: 0, skipped: 0, counted: 0, delivered: 0, failed: 0, cancelled: 0 };
  const times = { from: fromMs, to: toMs, created_at: nowMs };
  const given = { ...filter, ...(canary && { canary: 1 }), ...batch };
  const result = await runScript(store, 'startReplay', keys.prefixOfId(store, id), {
    id,
    subscriptionId,
    status: accepted?.isCancelled ? 'cancelled' : canary ? 'canary' : 'running',
    isAccepted: accepted !== undefined,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: { operator, action, subscriptionId, replayId: id, detail },
    fields: fieldList({ ...times, ...counts, ...given, operator }),
  });
  if (result !== 'started') return result;
  const [replay] = await loadReplays(store, [id]);
  if (!replay) throw new StorageUnavailable('Redis has lost the bulk replay that it had just stored.');
  return replay;
}

/**
 * The latest creation time that a bulk replay begun now may cover: now, or that of the newest failed delivery if the
 * clock of an ingest process is ahead.
 */
export async function lastCovered(store: Store, subscriptionId: string, nowMs: number): Promise<number> {
  const key = keys.failedKey(keys.prefixOfSubscription(store, subscriptionId), subscriptionId);
  const [, newestMs] = await store.redis.zrevrange(key, 0, 0, 'WITHSCORES');
  return Math.max(nowMs, Number(newestMs ?? 0));
}

/**
 * Up to `limit` of the bulk replays of a partition that maintenance works on, chosen at random: none waits for ever.
 */
export async function activeReplays(store: Store, partition: number, limit: number): Promise<string[]> {
  const prefix = keys.partitionPrefix(store, partition);
  return await store.redis.srandmember(keys.activeReplaysKey(prefix), limit);
}

/** What a step of a bulk replay has come to: there is more to do, its canary has no verdict yet, or nothing is left. */
type ReplayStep = 'more' | 'undecided' | 'over';

/**
 * Does the next step of a bulk replay, oldest failures first. Several processes may do it at once, and it may be
 * repeated after a crash: a step counts once, and a failed delivery is replayed once. Skips a delivery that already has
 * a replay which is unfinished or has succeeded.
 */
export async function stepReplay(store: Store, replayId: string, nowMs: number): Promise<ReplayStep> {
  const prefix = keys.prefixOfId(store, replayId);
  const [[replay], cursor] = await Promise.all([
    loadReplays(store, [replayId]),
    store.redis.hget(keys.replayKey(prefix, replayId), 'cursor'),
  ]);
  if (replay?.status !== 'running' && replay?.status !== 'canary') {
    // A cancelled replay stays in the set until its deliveries have ended.
    if (replay?.status !== 'cancelled') await store.redis.srem(keys.activeReplaysKey(prefix), replayId);
    return 'over';
  }
  const missing = replay.status === 'canary' ? CANARY_DELIVERIES - replay.replayed : Number.POSITIVE_INFINITY;
  if (missing <= 0) return await endCanary(store, replayId, nowMs);
  const { subscriptionId } = replay;
  const found = await findNext(store, replay, cursor, missing, nowMs);
  const candidates = await replayable(store, found.covered, nowMs);
  const isDone = await runScript(store, 'stepReplay', prefix, {
    id: replayId,
    cursor: cursor ?? undefined,
    nextCursor: found.nextCursor ?? undefined,
    isLast: found.isLast,
    lookedAt: found.covered.length,
    nowMs,
    ...streamLimits(store, nowMs),
    retentionMs: store.retentionMs,
    candidates: candidates.map(({ id, event }) => ({
      failedId: id,
      firstId: deliveryId(event, subscriptionId),
      newId: deliveryId(event, subscriptionId, replayId),
    })),
  });
  return isDone && found.isLast ? 'over' : 'more';
}

/**
 * The next failed deliveries that a replay covers, at most `limit` of which it will replay, and where the step after
 * them begins.
 */
async function findNext(store: Store, replay: Replay, cursor: string | null, limit: number, nowMs: number) {
  const [afterMs, afterId = ''] = cursor?.split(' ') ?? [];
  const key = keys.failedKey(keys.prefixOfId(store, replay.id), replay.subscriptionId);
  const found = await scanSortedSet(store, key, {
    order: 'oldest_first',
    after: afterMs === undefined ? undefined : { ms: Number(afterMs), id: afterId },
    count: STEP,
    fromMs: replay.fromMs,
    toMs: replay.toMs,
  });
  const existing = await loadExisting(
    store,
    found.map(({ id }) => id),
  );
  const covered = existing.filter((failed) => isCovered(replay.filter, failed));
  const oneTooMany = covered.length > limit ? (await notReplayed(store, covered, nowMs))[limit] : undefined;
  const upTo = oneTooMany ? found.findIndex(({ id }) => id === oneTooMany.id) : found.length;
  const last = found.slice(0, upTo).at(-1);
  return {
    covered: oneTooMany ? covered.slice(0, covered.indexOf(oneTooMany)) : covered,
    nextCursor: last ? `${last.ms} ${last.id}` : cursor,
    isLast: !oneTooMany && found.length < STEP,
  };
}

/** Those of the failed deliveries of an address that may be replayed, and are not. */
async function notReplayed(store: Store, deliveries: StoredDelivery[], nowMs: number): Promise<StoredDelivery[]> {
  const may = deliveries.filter((failed) => refusalOf(store, failed, nowMs) === undefined);
  const areReplayed = await Promise.all(may.map((failed) => isReplayed(store, failed)));
  return may.filter((_, i) => !areReplayed[i]);
}

const FAILED = String(DELIVERY_STATUSES.indexOf('failed'));

/**
 * Whether the newest replay of a failed delivery's event to its address is unfinished or has succeeded. If it is gone,
 * it has succeeded: a succeeded delivery is kept for less long than the failed one. step-replay.lua decides the same
 * again.
 */
export async function isReplayed(store: Store, { event, subscriptionId }: StoredDelivery): Promise<boolean> {
  const prefix = keys.prefixOfSubscription(store, subscriptionId);
  const [newest] = await store.redis.zrange(keys.replaysOfKey(prefix, deliveryId(event, subscriptionId)), '-1', '-1');
  return newest !== undefined && (await store.redis.hget(keys.deliveryKey(prefix, newest), 'st')) !== FAILED;
}

/** Lets a bulk replay go on or halts it, once its canary allows a verdict. */
async function endCanary(store: Store, replayId: string, nowMs: number): Promise<ReplayStep> {
  const prefix = keys.prefixOfId(store, replayId);
  const entries = await store.redis.xrange(keys.replayDeliveriesKey(prefix, replayId), '-', '+');
  const verdict = judgeCanary(await loadEntries(store, entries));
  if (verdict === undefined) return 'undecided';
  const hasPassed = verdict === 'passed';
  const values = { id: replayId, hasPassed, nowMs, retentionMs: store.retentionMs };
  return (await runScript(store, 'judgeReplay', prefix, values)) && hasPassed ? 'more' : 'over';
}

/**
 * Those of the deliveries that may be replayed. Extends the lives of their events first, so that the new ones find
 * them.
 */
async function replayable(store: Store, deliveries: StoredDelivery[], nowMs: number): Promise<StoredDelivery[]> {
  const candidates = deliveries.filter((failed) => refusalOf(store, failed, nowMs) === undefined);
  const exists = await Promise.all(
    candidates.map(({ event }) => keepIfExists(store, event, nowMs + keptWhileUnfinishedMs(store))),
  );
  return candidates.filter((_, i) => exists[i]);
}
