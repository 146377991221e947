/**
 * What an operator decides about a bulk replay that has begun: to continue or cancel it; and the steps of the latter.
 */
import { randomUUID } from 'node:crypto';
import { type AuditEntry, isFinished, type ReplayStatus } from '@posthorn/core';
import { keptWhileUnfinishedMs, loadEntries } from '../deliveries/delivery-record.ts';
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
  operator: string,
): Promise<'continued' | 'gone' | ReplayStatus> {
  const decision = await decisionOn(store, replayId, nowMs, { operator, action: 'replay.continued' });
  return await runScript(store, 'continueReplay', keys.prefixOfId(store, replayId), decision);
}

/**
 * Stops a replay. `stepCancellation` then ends its deliveries that have had no attempt. Returns `cancelled`, or why it
 * cannot be: it is gone, or it has ended (`done`: none of its deliveries waits).
 */
export async function cancelReplay(
  store: Store,
  replayId: string,
  nowMs: number,
  operator: string,
): Promise<{ kind: 'cancelled' | 'gone' } | { kind: 'over'; status: ReplayStatus }> {
  const decision = await decisionOn(store, replayId, nowMs, { operator, action: 'replay.cancelled' });
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
    decision: randomUUID(),
    nowMs,
    lifeMs: streamLimits(store, nowMs).lifeMs,
    retentionMs: store.retentionMs,
    auditEntry: { ...entry, subscriptionId, replayId, detail: { total, replayed, ...outcome } },
  };
}

/** Deliveries looked at by one step of a cancellation: a few milliseconds of Redis. */
const STEP = 100;

/**
 * Does one step of a cancellation: ends deliveries that have had no attempt. A delivery whose job a worker has is left
 * to its attempt. Returns whether there is more to do at once. May be repeated, and done by several processes at once.
 */
export async function stepCancellation(store: Store, replayId: string, nowMs: number): Promise<boolean> {
  const prefix = keys.prefixOfId(store, replayId);
  const [status, swept = null] = await store.redis.hmget(keys.replayKey(prefix, replayId), 'status', 'swept');
  if (status !== ('cancelled' satisfies ReplayStatus)) return false;
  const key = keys.replayDeliveriesKey(prefix, replayId);
  const entries = await store.redis.xrange(key, swept === null ? '-' : `(${swept}`, '+', 'COUNT', STEP);
  const found = await loadEntries(store, entries);
  const ending = found.filter((one) => one.attemptCount === 0 && !isFinished(one.status));
  const expiresAtMs = nowMs + keptWhileUnfinishedMs(store);
  await Promise.all(ending.map(({ event }) => keepEventSoon(store, event, expiresAtMs)));
  return await runScript(store, 'endCancelled', prefix, {
    id: replayId,
    swept: swept ?? undefined,
    nextSwept: entries.at(-1)?.[0] ?? swept ?? undefined,
    isLast: entries.length < STEP,
    nowMs,
    expiresAtMs,
    retentionMs: store.retentionMs,
    deliveries: ending.map(({ id }) => ({ deliveryId: id })),
  });
}
