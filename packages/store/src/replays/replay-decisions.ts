/** What an operator decides about a bulk replay that has begun: to continue or cancel it; and the steps of the latter. */
import { type AuditEntry, type DeliveryJob, isFinished, type ReplayStatus } from '@posthorn/core';
import type { AuditNote } from '../audit.ts';
import { keptWhileUnfinishedMs, loadEntries, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { keepEventSoon } from '../events/events.ts';
import * as keys from '../keys.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { loadReplays } from './replay-record.ts';

/** Lets a replay make all its deliveries whatever its canary says; or returns why not: it is gone, or its status. */
export async function continueReplay(
  store: Store,
  replayId: string,
  nowMs: number,
  audit: AuditNote,
): Promise<'continued' | 'gone' | ReplayStatus> {
  const decision = await decisionOn(store, replayId, nowMs, { ...audit, action: 'replay.continued' });
  return await runScript(store, 'continueReplay', keys.prefixOfId(store, replayId), decision);
}

/**
 * Stops a replay. `unattempted` and `endUnattempted` then end its deliveries that have had no attempt. Returns
 * `cancelled`, or why it cannot be: it is gone, or it has ended (`done`: none of its deliveries waits).
 */
export async function cancelReplay(
  store: Store,
  replayId: string,
  nowMs: number,
  audit: AuditNote,
): Promise<{ kind: 'cancelled' | 'gone' } | { kind: 'over'; status: ReplayStatus }> {
  const decision = await decisionOn(store, replayId, nowMs, { ...audit, action: 'replay.cancelled' });
  const result = await runScript(store, 'cancelReplay', keys.prefixOfId(store, replayId), decision);
  if (result === 'gone' || result === 'now_cancelled') return { kind: result === 'gone' ? 'gone' : 'cancelled' };
  return { kind: 'over', status: result };
}

/** The arguments for the script of a decision. The audit entry says how far the replay was. */
async function decisionOn(
  store: Store,
  replayId: string,
  nowMs: number,
  entry: Pick<AuditEntry, 'operator' | 'action'>,
) {
  const [replay] = await loadReplays(store, [replayId]);
  const { subscriptionId, total, replayed, outcome } = replay ?? {};
  return {
    id: replayId,
    nowMs,
    lifeMs: streamLimits(store, nowMs).lifeMs,
    retentionMs: store.retentionMs,
    auditEntry: { ...entry, subscriptionId, replayId, detail: { total, replayed, ...outcome } },
  };
}

/** Deliveries looked at by one step of a cancellation: a few milliseconds of Redis. */
const STEP = 200;

/** A part of a cancelled replay's deliveries: those without an attempt, and where the next part begins. */
export interface Unattempted {
  swept: string | null;
  nextSwept: string | null;
  isLast: boolean;
  deliveries: StoredDelivery[];
}

/** The next deliveries of a cancelled replay to end; undefined where the replay is not cancelled. */
export async function unattempted(store: Store, replayId: string): Promise<Unattempted | undefined> {
  const prefix = keys.prefixOfId(store, replayId);
  const [status, swept = null] = await store.redis.hmget(keys.replayKey(prefix, replayId), 'status', 'swept');
  if (status !== ('cancelled' satisfies ReplayStatus)) return undefined;
  const key = keys.replayDeliveriesKey(prefix, replayId);
  const entries = await store.redis.xrange(key, swept === null ? '-' : `(${swept}`, '+', 'COUNT', STEP);
  const existing = await loadEntries(store, entries);
  return {
    swept,
    nextSwept: entries.at(-1)?.[0] ?? swept,
    isLast: entries.length < STEP,
    deliveries: existing.filter(({ status, attemptCount }) => attemptCount === 0 && !isFinished(status)),
  };
}

/**
 * Ends those of the deliveries whose job is not `taken` by a worker; a later sweep ends or passes over the others. The
 * caller has removed their jobs. Returns whether there is more to do at once. May be repeated.
 */
export async function endUnattempted(
  store: Store,
  replayId: string,
  part: Unattempted,
  taken: readonly Pick<DeliveryJob, 'deliveryId'>[],
  nowMs: number,
): Promise<boolean> {
  const inFlight = new Set(taken.map(({ deliveryId }) => deliveryId));
  const ending = part.deliveries.filter(({ id }) => !inFlight.has(id));
  const expiresAtMs = nowMs + keptWhileUnfinishedMs(store);
  await Promise.all(ending.map(({ event }) => keepEventSoon(store, event, expiresAtMs)));
  return await runScript(store, 'endCancelled', keys.prefixOfId(store, replayId), {
    id: replayId,
    swept: part.swept ?? undefined,
    nextSwept: part.nextSwept ?? undefined,
    isLast: part.isLast,
    taken: inFlight.size,
    nowMs,
    expiresAtMs,
    retentionMs: store.retentionMs,
    deliveries: ending.map(({ id, generation }) => ({ deliveryId: id, generation })),
  });
}
