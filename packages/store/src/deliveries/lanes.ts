/** Deliveries that wait outside the queue: releases and counts them. */
import { readNamed } from '../decode-named.ts';
import { keepEvent } from '../events/events.ts';
import { type Lane, laneIndexKey, laneKey, partitionPrefix, prefixOfSubscription, resumingKey } from '../keys.ts';
import { joinCalls } from '../redis/join-calls.ts';
import { runScript, type ScriptResult } from '../scripts.ts';
import type { Store } from '../store.ts';
import { keptWhileUnfinishedMs } from './delivery-record.ts';

/** Deliveries that one script releases: about two milliseconds of Redis. */
const MAX_RELEASED_AT_ONCE = 200;

interface ReleasedLane {
  /** The prefix of the address's partition. */
  home: string;
  lane: Lane;
  subscriptionId: string;
  limit: number;
  nowMs: number;
}

type Released = ScriptResult<'release'>[number];

const releaseTogether = joinCalls<ReleasedLane, Released>({
  max: MAX_RELEASED_AT_ONCE,
  deliveriesOf: ({ limit }) => limit,
  prefixOf: ({ home }) => home,
  run: (store, lanes, { home, nowMs }) => runScript(store, 'release', home, { nowMs, lanes }),
});

/**
 * Puts up to `limit` deliveries of an address from a lane into the queue, oldest first: one script for all lanes of one
 * turn of the event loop. Those of an address that is not active are held. Returns how many.
 */
export async function releaseDeliveries(
  store: Store,
  lane: Lane,
  subscriptionId: string,
  limit: number,
  nowMs: number,
): Promise<number> {
  const home = prefixOfSubscription(store, subscriptionId);
  let total = 0;
  for (let left = limit; left > 0; left -= MAX_RELEASED_AT_ONCE) {
    const atOnce = Math.min(left, MAX_RELEASED_AT_ONCE);
    const released = await releaseTogether(store, { home, lane, subscriptionId, limit: atOnce, nowMs });
    if (released instanceof Error) throw released;
    const held = released.filter(({ isHeld }) => isHeld);
    // As where a worker holds a delivery: an event may have less time left (attempts.ts).
    await Promise.all(held.map(({ event }) => keepEvent(store, event, nowMs + keptWhileUnfinishedMs(store))));
    total += released.length - held.length;
    if (released.length < atOnce) break;
  }
  return total;
}

/** The addresses of a partition that have deliveries to release from a lane. */
export async function addressesToRelease(store: Store, partition: number, lane: Lane): Promise<string[]> {
  return await store.redis.smembers(laneIndexKey(partitionPrefix(store, partition), lane));
}

/** The addresses of a partition that are resuming. */
export async function resumingAddresses(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(resumingKey(partitionPrefix(store, partition)));
}

/**
 * Sends the trial of an address that is resuming (decision 35): puts it from the held lane into the queue. Returns its
 * id, or undefined if there is nothing to send: a trial is on its way, or the address is not resuming any more. If
 * nothing is held, the address becomes active. Two calls at once send one.
 */
export async function sendTrial(store: Store, subscriptionId: string, nowMs: number): Promise<string | undefined> {
  const values = { subscriptionId, nowMs, retentionMs: store.retentionMs };
  return await runScript(store, 'sendTrial', prefixOfSubscription(store, subscriptionId), values);
}

/** The lane other than `held` in which a delivery waits without a job; undefined if it is in neither. */
export async function laneOf(
  store: Store,
  { id, subscriptionId }: { id: string; subscriptionId: string },
): Promise<'parked' | 'overdue' | undefined> {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const lanes = ['parked', 'overdue'] as const;
  const scores = await Promise.all(lanes.map((lane) => store.redis.zscore(laneKey(prefix, lane, subscriptionId), id)));
  return lanes.find((_, i) => scores[i] !== null);
}

/** How many deliveries of an address wait in a lane. */
export async function laneLength(store: Store, lane: Lane, subscriptionId: string): Promise<number> {
  const key = laneKey(prefixOfSubscription(store, subscriptionId), lane, subscriptionId);
  return await readNamed(`the ${lane} lane of`, subscriptionId, store.redis.zcard(key));
}
