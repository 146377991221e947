/** Replays: an operator's new deliveries of failed ones, one by one or all of an address in the background. */
import { deliveryId, type EventRef, newReplayId, partitionOf, type Replay, type ReplayStatus } from '@posthorn/core';
import { type AuditNote, encodeAudit } from './audit.ts';
import { keptWhileUnfinishedMs, loadDeliveries, type StoredDelivery } from './delivery-record.ts';
import { keepIfThere } from './events.ts';
import {
  failedKey,
  partitionPrefix,
  prefixOfId,
  prefixOfSubscription,
  replayingKey,
  replayKey,
  replaysOfKey,
} from './keys.ts';
import { streamLimits } from './new-deliveries.ts';
import { fieldList, type ReplayRefusal, runScript } from './scripts.ts';
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
  if (!(await keepIfThere(store, event, nowMs + keptWhileUnfinishedMs(store)))) return { refused: 'too_late' };
  const id = deliveryId(event, subscriptionId, nonce);
  const result = await runScript(store, 'replayDelivery', prefixOfId(store, id), {
    subscriptionId,
    failedId: failed.id,
    firstId: deliveryId(event, subscriptionId),
    newId: id,
    nowMs,
    ...streamLimits(store, nowMs),
    retentionMs: store.retentionMs,
    auditEntry: encodeAudit({
      ...audit,
      action: 'delivery.replayed',
      subscriptionId,
      deliveryId: failed.id,
      detail: { new_delivery_id: id },
    }),
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
  const prefix = prefixOfSubscription(store, subscriptionId);
  const flat = await store.redis.zrange(replaysOfKey(prefix, first), '0', '-1', 'WITHSCORES');
  return Array.from({ length: flat.length / 2 }, (_, i) => ({
    id: flat[2 * i]!,
    createdAtMs: Number(flat[2 * i + 1]),
  }));
}

/**
 * Begins a bulk replay of the failed deliveries of an address that were made from `fromMs` to `toMs`, both included; `stepReplay` does the
 * work. Deliveries made after now are never among them, or a replay could feed itself.
 */
export async function startReplay(
  store: Store,
  wanted: { subscriptionId: string; fromMs: number; toMs: number },
  nowMs: number,
  audit: AuditNote,
): Promise<Replay | 'no_subscription' | 'not_active'> {
  const { subscriptionId, fromMs } = wanted;
  const toMs = Math.min(wanted.toMs, nowMs);
  const partition = partitionOf(subscriptionId, store.partitions);
  const prefix = partitionPrefix(store, partition);
  const id = newReplayId(subscriptionId);
  const total = await countFailed(store, subscriptionId, fromMs, toMs, nowMs);
  const detail = {
    from: fromMs === 0 ? null : new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    total,
  };
  const fields = {
    from: fromMs,
    to: toMs,
    total,
    replayed: 0,
    skipped: 0,
    created_at: nowMs,
    operator: audit.operator ?? '',
  };
  const result = await runScript(store, 'startReplay', prefix, {
    id,
    subscriptionId,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: encodeAudit({ ...audit, action: 'replay.started', subscriptionId, replayId: id, detail }),
    fields: fieldList(fields),
  });
  return result === 'started' ? (await loadReplays(store, [id]))[0]! : result;
}

/** Failed deliveries of an address made in a time: what a bulk replay would look at. The index may still name some whose record has expired: those go first. */
export async function countFailed(
  store: Store,
  subscriptionId: string,
  fromMs: number,
  toMs: number,
  nowMs: number,
): Promise<number> {
  const partition = partitionOf(subscriptionId, store.partitions);
  const key = failedKey(partitionPrefix(store, partition), subscriptionId);
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    offset = await pruneIndex(store, partition, key, nowMs - store.retentionMs, offset);
  }
  return await store.redis.zcount(key, fromMs, toMs);
}

/** The running bulk replays of a partition. */
export async function runningReplays(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(replayingKey(partitionPrefix(store, partition)));
}

/**
 * Does the next step of a bulk replay, oldest failures first; returns whether there is more to do. Several processes may do it at
 * once, and it may be repeated after a crash: a step counts once, and a failed delivery is replayed once. One whose event is already on
 * its way to the address again, or has arrived there by a replay, is skipped.
 */
export async function stepReplay(store: Store, replayId: string, nowMs: number): Promise<boolean> {
  const prefix = prefixOfId(store, replayId);
  const record = await store.redis.hmget(replayKey(prefix, replayId), 'subscription', 'status', 'cursor', 'from', 'to');
  const [subscriptionId, status, cursor] = record;
  if (subscriptionId == null || status !== 'running') {
    await store.redis.srem(replayingKey(prefix), replayId);
    return false;
  }
  const range = { fromMs: Number(record[3]), toMs: Number(record[4]) };
  const ids = await oldestFirst(store, failedKey(prefix, subscriptionId), range, cursor ?? undefined);
  const last = ids.at(-1);
  const isLast = ids.length < STEP;
  const candidates = await replayable(
    store,
    ids.map(({ id }) => id),
    nowMs,
  );
  const isDone = await runScript(store, 'stepReplay', prefix, {
    id: replayId,
    cursor: cursor ?? undefined,
    nextCursor: last ? `${last.ms} ${last.id}` : (cursor ?? undefined),
    isLast,
    lookedAt: ids.length,
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

/** Those whose event is still there; its life is prolonged first, so that the new delivery finds it. */
async function replayable(store: Store, ids: string[], nowMs: number): Promise<StoredDelivery[]> {
  const deliveries = (await loadDeliveries(store, ids)).filter((delivery) => delivery !== undefined);
  const there = await Promise.all(
    deliveries.map(({ event }) => keepIfThere(store, event, nowMs + keptWhileUnfinishedMs(store))),
  );
  return deliveries.filter((_, i) => there[i]);
}

/** The next entries of an index by (time, id), from a cursor on. */
async function oldestFirst(
  store: Store,
  key: string,
  range: { fromMs: number; toMs: number },
  cursor: string | undefined,
): Promise<{ ms: number; id: string }[]> {
  const [afterMs = '', afterId = ''] = cursor?.split(' ') ?? [];
  const found: { ms: number; id: string }[] = [];
  // Many may share the cursor's millisecond: those up to it are passed over.
  for (let offset = 0; found.length < STEP; offset += STEP) {
    const flat = await store.redis.zrangebyscore(
      key,
      cursor === undefined ? range.fromMs : Number(afterMs),
      range.toMs,
      'WITHSCORES',
      'LIMIT',
      offset,
      STEP,
    );
    for (let i = 0; i < flat.length; i += 2) {
      const [id, ms] = [flat[i]!, Number(flat[i + 1])];
      if (cursor === undefined || ms > Number(afterMs) || id > afterId) found.push({ ms, id });
    }
    if (flat.length < 2 * STEP) break;
  }
  return found.slice(0, STEP);
}

/** Bulk replays by id, in the order asked for, undefined where there is none (any more). */
export async function loadReplays(store: Store, ids: readonly string[]): Promise<(Replay | undefined)[]> {
  const records = await Promise.all(ids.map((id) => store.redis.hgetall(replayKey(prefixOfId(store, id), id))));
  return records.map((record, i) =>
    record.subscription === undefined
      ? undefined
      : {
          id: ids[i]!,
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
        },
  );
}
