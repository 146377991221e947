/** How much of a subscription's stream of deliveries is kept. */
import { GRACE_MS } from '../constants.ts';
import type { Store } from '../store.ts';

/**
 * The oldest entry of a subscription's stream: older deliveries that are still kept are found elsewhere, since most
 * have succeeded and are gone (sources.ts). And how long the stream lives without a new entry: no delivery lasts
 * longer. Both are seen to once an hour (lua/lib/make.lua), so it may be an hour more.
 */
export function streamLimits(store: Store, nowMs: number): { oldestMs: number; lifeMs: number } {
  const oldestMs = nowMs - store.succeededRetentionMs - GRACE_MS;
  return { oldestMs: Math.max(0, oldestMs), lifeMs: 2 * store.retentionMs + GRACE_MS };
}
