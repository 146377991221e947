/** Statistics that all workers share: counts of attempts by minute, hour and address, and which workers are alive. Estimates only. */
import { durationPercentile, partitionOf } from '@posthorn/core';
import {
  addressStatsKey,
  allPrefixes,
  partitionPrefix,
  prefixOfSubscription,
  rankingKey,
  statsKey,
  workersKey,
  workersSeenKey,
} from './keys.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Minutes are kept for an hour, hours for a day, and a little longer, so that the oldest shown is whole. */
const MINUTE_LIFE_MS = HOUR_MS + 5 * MINUTE_MS;
const HOUR_LIFE_MS = 25 * HOUR_MS;
/** Addresses counted in one script: about a millisecond of Redis. */
const CHUNK = 200;
/** A worker without a heartbeat for this long is not alive. */
const ALIVE_MS = 10_000;
const FORGET_AFTER_MS = 60_000;
/** Addresses in each ranking. */
const RANKED = 10;

/** What one worker has counted since it last added its counts. */
export interface Counts {
  succeeded: number;
  failed: number;
  /** Attempts by the bucket of their duration, successes by that of the time since the event was accepted (core's durations.ts). */
  attemptBuckets: Map<number, number>;
  arrivalBuckets: Map<number, number>;
  addresses: Map<string, { succeeded: number; failed: number; totalMs: number }>;
}

/** Adds counts to those of the current minute and hour. */
export async function addCounts(store: Store, counts: Counts, nowMs: number): Promise<void> {
  const all = [
    { field: 's', count: counts.succeeded },
    { field: 'f', count: counts.failed },
    ...[...counts.attemptBuckets].map(([bucket, count]) => ({ field: `d${bucket}`, count })),
    ...[...counts.arrivalBuckets].map(([bucket, count]) => ({ field: `l${bucket}`, count })),
  ];
  const hour = Math.floor(nowMs / HOUR_MS);
  const prefix = partitionPrefix(store, 0);
  const addTo = (key: string, lifeMs: number) => runScript(store, 'addCounts', prefix, { key, lifeMs, counts: all });
  await Promise.all([
    addTo(statsKey(prefix, 'minute', Math.floor(nowMs / MINUTE_MS)), MINUTE_LIFE_MS),
    addTo(statsKey(prefix, 'hour', hour), HOUR_LIFE_MS),
    addAddressCounts(store, counts, hour),
  ]);
}

async function addAddressCounts(store: Store, counts: Counts, hour: number): Promise<void> {
  const partitions = Map.groupBy(counts.addresses, ([id]) => partitionOf(id, store.partitions));
  const scripts: Promise<unknown>[] = [];
  for (const [partition, entries] of partitions) {
    const prefix = partitionPrefix(store, partition);
    const addresses = entries.map(([subscriptionId, { succeeded, failed, totalMs }]) => {
      const key = addressStatsKey(prefix, subscriptionId, hour);
      return { key, subscriptionId, succeeded, failed, totalMs: Math.round(totalMs) };
    });
    const failingKey = rankingKey(prefix, 'failing', hour);
    const slowKey = rankingKey(prefix, 'slow', hour);
    for (let start = 0; start < addresses.length; start += CHUNK) {
      const chunk = addresses.slice(start, start + CHUNK);
      const values = { failingKey, slowKey, lifeMs: HOUR_LIFE_MS, addresses: chunk };
      scripts.push(runScript(store, 'addAddressCounts', prefix, values));
    }
  }
  await Promise.all(scripts);
}

export interface Period {
  fromMs: number;
  succeeded: number;
  failed: number;
}

/** Attempts over a time: the whole, and minute by minute or hour by hour. Durations in milliseconds, null where there are none. */
export interface AttemptSeries {
  succeeded: number;
  failed: number;
  attemptMs: { p50: number | null; p99: number | null };
  arrivalMs: { p50: number | null; p99: number | null };
  periods: Period[];
}

/** The last 60 minutes, or the last 24 hours, the present one included. */
export async function readAttempts(store: Store, unit: 'minute' | 'hour', nowMs: number): Promise<AttemptSeries> {
  const [unitMs, count] = unit === 'minute' ? [MINUTE_MS, 60] : [HOUR_MS, 24];
  const numbers = lastOf(unitMs, count, nowMs);
  const prefix = partitionPrefix(store, 0);
  const records = await Promise.all(numbers.map((number) => store.redis.hgetall(statsKey(prefix, unit, number))));
  const buckets = { d: new Map<number, number>(), l: new Map<number, number>() };
  for (const record of records) {
    for (const [field, value] of Object.entries(record)) {
      const kind = buckets[field[0] as 'd' | 'l'] as Map<number, number> | undefined;
      const bucket = Number(field.slice(1));
      kind?.set(bucket, (kind.get(bucket) ?? 0) + Number(value));
    }
  }
  const periods = records.map(({ s, f }, i) => periodOf(numbers[i]! * unitMs, s, f));
  const percentiles = (counts: Map<number, number>) => ({
    p50: durationPercentile(counts, 0.5),
    p99: durationPercentile(counts, 0.99),
  });
  return { ...sum(periods), attemptMs: percentiles(buckets.d), arrivalMs: percentiles(buckets.l), periods };
}

/** The attempts to one address, hour by hour over the last 24. */
export async function readAddressAttempts(
  store: Store,
  subscriptionId: string,
  nowMs: number,
): Promise<AddressAttempts & { periods: Period[] }> {
  const hours = lastOf(HOUR_MS, 24, nowMs);
  const records = await readAddressHours(store, subscriptionId, hours);
  const periods = records.map(([s, f], i) => periodOf(hours[i]! * HOUR_MS, s, f));
  return { subscriptionId, ...addressSum(records), periods };
}

export interface AddressAttempts {
  subscriptionId: string;
  succeeded: number;
  failed: number;
  /** Mean duration of an attempt; null where there was none. */
  meanMs: number | null;
}

/** The addresses with the most failed attempts, and those whose attempts take longest, in this hour and the one before. */
export async function rankAddresses(
  store: Store,
  nowMs: number,
): Promise<{ sinceMs: number; failing: AddressAttempts[]; slow: AddressAttempts[] }> {
  const hours = lastOf(HOUR_MS, 2, nowMs);
  const ranked = async (ranking: 'failing' | 'slow') => {
    const found = await Promise.all(
      allPrefixes(store).flatMap((prefix) =>
        hours.map((hour) => store.redis.zrevrange(rankingKey(prefix, ranking, hour), 0, RANKED - 1)),
      ),
    );
    return await Promise.all(
      [...new Set(found.flat())].map(async (subscriptionId) => ({
        subscriptionId,
        ...addressSum(await readAddressHours(store, subscriptionId, hours)),
      })),
    );
  };
  const [failing, slow] = await Promise.all([ranked('failing'), ranked('slow')]);
  return {
    sinceMs: hours[0]! * HOUR_MS,
    failing: failing.sort((a, b) => b.failed - a.failed).slice(0, RANKED),
    slow: slow.sort((a, b) => (b.meanMs ?? 0) - (a.meanMs ?? 0)).slice(0, RANKED),
  };
}

type AddressHour = (string | null)[];

function readAddressHours(store: Store, subscriptionId: string, hours: number[]): Promise<AddressHour[]> {
  const prefix = prefixOfSubscription(store, subscriptionId);
  return Promise.all(
    hours.map((hour) => store.redis.hmget(addressStatsKey(prefix, subscriptionId, hour), 's', 'f', 'm')),
  );
}

function addressSum(hours: AddressHour[]): Omit<AddressAttempts, 'subscriptionId'> {
  const total = (field: number) => hours.reduce((all, hour) => all + Number(hour[field] ?? 0), 0);
  const [succeeded, failed] = [total(0), total(1)];
  return { succeeded, failed, meanMs: succeeded + failed === 0 ? null : Math.round(total(2) / (succeeded + failed)) };
}

function periodOf(fromMs: number, s: string | null | undefined, f: string | null | undefined): Period {
  return { fromMs, succeeded: Number(s ?? 0), failed: Number(f ?? 0) };
}

function sum(periods: Period[]): { succeeded: number; failed: number } {
  return {
    succeeded: periods.reduce((all, { succeeded }) => all + succeeded, 0),
    failed: periods.reduce((all, { failed }) => all + failed, 0),
  };
}

function lastOf(unitMs: number, count: number, nowMs: number): number[] {
  const last = Math.floor(nowMs / unitMs);
  return Array.from({ length: count }, (_, i) => last - count + 1 + i);
}

/** What a worker reports in its heartbeat. */
export interface WorkerState {
  id: string;
  host: string;
  pid: number;
  version: string;
  startedAtMs: number;
  concurrency: number;
  inFlight: number;
  /** When its outage began; missing in the heartbeats of older versions. */
  outageSinceMs?: number | null;
}

/** Stores a worker's heartbeat. */
export async function sendHeartbeat(store: Store, worker: WorkerState, nowMs: number): Promise<void> {
  const values = { id: worker.id, state: JSON.stringify(worker), nowMs, forgetBeforeMs: nowMs - FORGET_AFTER_MS };
  await runScript(store, 'heartbeat', partitionPrefix(store, 0), values);
}

/** Removes a worker that stops. */
export async function deregisterWorker(store: Store, id: string): Promise<void> {
  const prefix = partitionPrefix(store, 0);
  await store.redis.multi().hdel(workersKey(prefix), id).zrem(workersSeenKey(prefix), id).exec();
}

/** The workers that are alive. */
export async function aliveWorkers(store: Store, nowMs: number): Promise<(WorkerState & { seenAtMs: number })[]> {
  const prefix = partitionPrefix(store, 0);
  const flat = await store.redis.zrangebyscore(workersSeenKey(prefix), nowMs - ALIVE_MS, '+inf', 'WITHSCORES');
  const seen = Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, Number(flat[2 * i + 1])] as const);
  if (seen.length === 0) return [];
  const texts = await store.redis.hmget(workersKey(prefix), ...seen.map(([id]) => id));
  return texts.flatMap((text, i) => (text ? [{ ...(JSON.parse(text) as WorkerState), seenAtMs: seen[i]![1] }] : []));
}
