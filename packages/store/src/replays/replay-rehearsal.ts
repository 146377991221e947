/** Rehearses a bulk replay of one address: finds what it would replay and what it would skip, and changes nothing. */
import { deliveryId, errorLabel, isCovered } from '@posthorn/core';
import { loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { prefixOfEvent } from '../events/events.ts';
import * as keys from '../keys.ts';
import type { Position } from '../lists/page.ts';
import { scanSortedSet } from '../lists/sorted-set.ts';
import type { Store } from '../store.ts';
import type { ReplayScope } from './replay-count.ts';
import { isReplayed, refusalOf } from './replays.ts';

/** Records read at once: a few milliseconds of Redis. */
const CHUNK = 250;

/** What a bulk replay would do with the failed deliveries that it covers. */
export interface Rehearsal {
  /** Would be replayed. */
  count: number;
  /**
   * Would be skipped: their event is on its way to the address again, has arrived there by a replay, or is among
   * `count` already.
   */
  underWay: number;
  /** Would be skipped: they failed too long ago, or their event has expired or was erased. */
  tooLate: number;
  /** False where there are more failed deliveries than it looked at. */
  isComplete: boolean;
  /** The most frequent error of their last attempts (core's `errorLabel`); null if there was none. */
  error: string | null;
}

/** Looks at the oldest failed deliveries in a scope, at most `limit`, by the rules of `stepReplay`. */
export async function rehearseReplay(
  store: Store,
  { subscriptionId, fromMs, toMs, filter }: ReplayScope,
  limit: number,
  nowMs: number,
): Promise<Rehearsal> {
  const key = keys.failedKey(keys.prefixOfSubscription(store, subscriptionId), subscriptionId);
  const read = (after: Position | undefined, count: number) =>
    scanSortedSet(store, key, { order: 'oldest_first', after, count, fromMs, toMs });
  const fateCounts = { replayable: 0, underWay: 0, tooLate: 0 };
  const labels = new Map<string, number>();
  /** By the event's first delivery: a replay sends an event once, however many failed deliveries it has. */
  const replayed = new Set<string>();
  let after: Position | undefined;
  let isComplete = false;
  for (let left = limit; left > 0 && !isComplete; left -= CHUNK) {
    const count = Math.min(CHUNK, left);
    const found = await read(after, count);
    const existing = await loadExisting(
      store,
      found.map(({ id }) => id),
    );
    const covered = existing.filter((failed) => isCovered(filter, failed));
    const fates = await Promise.all(covered.map((failed) => fateOf(store, failed, nowMs)));
    for (const [i, failed] of covered.entries()) {
      const first = deliveryId(failed.event, subscriptionId);
      const fate = fates[i] === 'replayable' && replayed.has(first) ? 'underWay' : (fates[i] ?? 'tooLate');
      fateCounts[fate] += 1;
      if (fate === 'replayable') replayed.add(first);
      countLabel(labels, failed);
    }
    after = found.at(-1);
    isComplete = found.length < count || (count === left && (await read(after, 1)).length === 0);
  }
  const [error = null] = [...labels].sort(([, a], [, b]) => b - a).map(([label]) => label);
  const { replayable: count, ...skipped } = fateCounts;
  return { count, ...skipped, isComplete, error };
}

/** What a replay would do with one failed delivery. */
async function fateOf(
  store: Store,
  failed: StoredDelivery,
  nowMs: number,
): Promise<'replayable' | 'underWay' | 'tooLate'> {
  if (refusalOf(store, failed, nowMs)) return 'tooLate';
  const [exists, isUnderWay] = await Promise.all([
    store.redis.exists(keys.eventKey(prefixOfEvent(store, failed.event), failed.event)),
    isReplayed(store, failed),
  ]);
  if (exists === 0) return 'tooLate';
  return isUnderWay ? 'underWay' : 'replayable';
}

function countLabel(labels: Map<string, number>, { attempts }: StoredDelivery): void {
  const last = attempts.at(-1);
  if (!last || last.error === null) return;
  const label = errorLabel(last.error, last.statusCode);
  labels.set(label, (labels.get(label) ?? 0) + 1);
}
