/** Ends deliveries without an attempt, and finds the held ones that are too old. */
import type { DeliveryJob, EventRef, FailureReason } from '@posthorn/core';
import { keepEvent } from '../events/events.ts';
import { byStatusKey, partitionPrefix } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from './delivery-record.ts';

/** Held deliveries of a partition made before `beforeMs`, oldest first. */
export async function heldBefore(
  store: Store,
  partition: number,
  beforeMs: number,
  limit: number,
): Promise<StoredDelivery[]> {
  const key = byStatusKey(partitionPrefix(store, partition), 'held');
  return await loadExisting(store, await store.redis.zrangebyscore(key, '-inf', beforeMs, 'LIMIT', 0, limit));
}

interface DeliveriesToEnd {
  partition: number;
  deliveries: readonly { id: string; event: EventRef }[];
  reason: Extract<FailureReason, 'expired' | 'subscription_deleted' | 'erased'>;
  nowMs: number;
  onlyHeld?: boolean;
}

/**
 * Ends unfinished deliveries of one partition without an attempt; with `onlyHeld`, those that are still held. Returns
 * the jobs they may still have, for the caller to remove.
 */
export async function endDeliveries(
  store: Store,
  { partition, deliveries, reason, nowMs, onlyHeld = false }: DeliveriesToEnd,
): Promise<Pick<DeliveryJob, 'deliveryId' | 'generation'>[]> {
  if (deliveries.length === 0) return [];
  const expiresAtMs = nowMs + keptWhileUnfinishedMs(store);
  await Promise.all(deliveries.map(({ event }) => keepEvent(store, event, expiresAtMs)));
  return await runScript(store, 'endDeliveries', partitionPrefix(store, partition), {
    reason,
    nowMs,
    expiresAtMs,
    retentionMs: store.retentionMs,
    onlyHeld,
    deliveries,
  });
}
