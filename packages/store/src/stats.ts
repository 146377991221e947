/** Statistics that all workers share: counts of attempts by minute, hour and address. Estimates only. */
import {
  type AttemptRun,
  chunksOf,
  durationPercentile,
  HOUR_MS,
  MINUTE_MS,
  partitionOf,
  throwRejections,
} from '@posthorn/core';
import { loadOthers, readNamed, type UnreadableRecord } from './decode-named.ts';
import { addressStatsKey, partitionPrefix, prefixOfSubscription, rankingKey, statsKey } from './keys.ts';
import { highest } from './lists/sorted-set.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** Minutes are kept for an hour, hours for a day, and a little longer, so that the oldest one shown is complete. */
const MINUTE_LIFE_MS = HOUR_MS + 5 * MINUTE_MS;
const HOUR_LIFE_MS = 25 * HOUR_MS;
/** Addresses counted in one script: about a millisecond of Redis. */
const CHUNK = 200;
/** A 99th percentile of fewer attempts says little. */
const MIN_FOR_P99 = 100;
/** Addresses in each ranking. */
const MAX_RANKED = 10;

/** What one worker has counted since it last added its counts. */
export interface Counts {
  succeeded: number;
  failed: number;
  /**
   * Attempts by the bucket of their duration, successes by that of the time since the event was accepted (core's
   * durations.ts).
   */
  attemptBuckets: Map<number, number>;
  arrivalBuckets: Map<number, number>;
  addresses: Map<string, AddressCounts>;
}

/** The attempts of one worker to one address. */
export interface AddressCounts extends AttemptRun {
  /** Counts for an older url than the stored one leave the health alone. */
  url: string;
  totalMs: number;
  /** Attempts that took `LONG_MS` or longer, by the bucket of their duration. */
  longBuckets: Map<number, number>;
  /** Those for the url before this one, if it has changed since they were last added. */
  earlier?: AddressCounts | undefined;
}

/**
 * Only attempts at least this long are counted by duration for each address: too few to cost much, enough for a high
 * percentile.
 */
export const LONG_MS = 1_000;

/**
 * Adds counts to those of the current minute and hour, and takes what is stored out of `counts`: after an error, the
 * rest may be added again. Also takes out those of an address whose keys are not as they must be, and throws.
 */
export async function addCounts(store: Store, counts: Counts, nowMs: number): Promise<void> {
  throwRejections(
    await Promise.allSettled([addTotals(store, counts, nowMs), ...addAddressCounts(store, counts, nowMs)]),
  );
}

async function addTotals(store: Store, counts: Counts, nowMs: number): Promise<void> {
  if (counts.succeeded + counts.failed === 0) return;
  const all = [
    { field: 's', count: counts.succeeded },
    { field: 'f', count: counts.failed },
    ...[...counts.attemptBuckets].map(([bucket, count]) => ({ field: `d${bucket}`, count })),
    ...[...counts.arrivalBuckets].map(([bucket, count]) => ({ field: `l${bucket}`, count })),
  ];
  const prefix = partitionPrefix(store, 0);
  const addTo = (key: string, lifeMs: number) => runScript(store, 'addCounts', prefix, { key, lifeMs, counts: all });
  await Promise.all([
    addTo(statsKey(prefix, 'minute', Math.floor(nowMs / MINUTE_MS)), MINUTE_LIFE_MS),
    addTo(statsKey(prefix, 'hour', Math.floor(nowMs / HOUR_MS)), HOUR_LIFE_MS),
  ]);
  [counts.succeeded, counts.failed] = [0, 0];
  counts.attemptBuckets.clear();
  counts.arrivalBuckets.clear();
}

function addAddressCounts(store: Store, counts: Counts, nowMs: number): Promise<void>[] {
  const hour = Math.floor(nowMs / HOUR_MS);
  const times = { lifeMs: HOUR_LIFE_MS, healthLifeMs: store.retentionMs, nowMs, minute: Math.floor(nowMs / MINUTE_MS) };
  const add = async (prefix: string, chunk: [string, AddressCounts][]) => {
    const addresses = chunk.flatMap(([subscriptionId, counts]) => {
      const key = addressStatsKey(prefix, subscriptionId, hour);
      return byUrl(counts).map((one) => ({ key, subscriptionId, ...encodeAddressCounts(one) }));
    });
    const rankings = { rankingKey: rankingKey(prefix, 'failing', hour), slowKey: rankingKey(prefix, 'slow', hour) };
    const problem = await runScript(store, 'addAddressCounts', prefix, { ...rankings, ...times, addresses });
    // Also what could not be added as a whole: with it, the others would be added again.
    for (const [subscriptionId] of chunk) counts.addresses.delete(subscriptionId);
    if (problem !== '') throw new Error(`Could not count the attempts to ${problem}`);
  };
  const partitions = Map.groupBy(counts.addresses, ([id]) => partitionOf(id, store.partitions));
  return [...partitions].flatMap(([partition, entries]) =>
    Array.from(chunksOf(entries, CHUNK), (chunk) => add(partitionPrefix(store, partition), chunk)),
  );
}

/** The counts of an address for each of its urls, the first url first. */
function byUrl(counts: AddressCounts): AddressCounts[] {
  return counts.earlier ? [...byUrl(counts.earlier), counts] : [counts];
}

function encodeAddressCounts({
  totalMs,
  firstFailedAtMs,
  lastSucceededAtMs,
  errors,
  longBuckets,
  earlier: _,
  ...counts
}: AddressCounts) {
  const errorList = Array.from(errors.values(), (one) => [
    one.label,
    one.count,
    one.sinceMs,
    one.deliveryId,
    one.attemptNumber,
  ]);
  return {
    ...counts,
    totalMs: Math.round(totalMs),
    firstFailedAtMs: firstFailedAtMs ?? '',
    lastSucceededAtMs: lastSucceededAtMs ?? '',
    errors: errorList.length === 0 ? '' : JSON.stringify(errorList),
    long: Array.from(longBuckets, ([bucket, count]) => `${bucket}:${count}`).join(' '),
  };
}

interface Totals {
  succeeded: number;
  failed: number;
}

export interface Period extends Totals {
  fromMs: number;
}

/**
 * Attempts over a time: the total, and minute by minute or hour by hour. Durations in milliseconds, null where there
 * are none.
 */
export interface AttemptSeries extends Totals {
  attemptMs: { p50: number | null; p99: number | null };
  arrivalMs: { p50: number | null; p99: number | null };
  periods: Period[];
}

/** The last 60 minutes, or the last 24 hours, the current one included. */
export async function readAttempts(store: Store, unit: 'minute' | 'hour', nowMs: number): Promise<AttemptSeries> {
  const [unitMs, count] = unit === 'minute' ? [MINUTE_MS, 60] : [HOUR_MS, 24];
  const numbers = lastOf(unitMs, count, nowMs);
  const prefix = partitionPrefix(store, 0);
  const records = await Promise.all(numbers.map((number) => store.redis.hgetall(statsKey(prefix, unit, number))));
  return {
    ...totals(records),
    attemptMs: percentiles(records, 'd'),
    arrivalMs: percentiles(records, 'l'),
    periods: numbers.map((number, i) => ({ fromMs: number * unitMs, ...totals(records.slice(i, i + 1)) })),
  };
}

/**
 * The duration (ms) within which 99 % of the attempts to an address ended, in this hour and the one before. Null if it
 * is below `LONG_MS`, or if there were fewer than 100 attempts.
 */
export async function readP99(store: Store, subscriptionId: string, nowMs: number): Promise<number | null> {
  const records = await readAddressHours(store, subscriptionId, lastOf(HOUR_MS, 2, nowMs));
  const { succeeded, failed } = totals(records);
  const long = bucketCounts(records, 'd');
  const longCount = [...long.values()].reduce((all, count) => all + count, 0);
  if (succeeded + failed < MIN_FOR_P99 || longCount === 0) return null;
  const p99 = durationPercentile(long.set(0, succeeded + failed - longCount), 0.99);
  return p99 === null || p99 < LONG_MS ? null : p99;
}

/** The attempts to one address, hour by hour over the last 24. */
export async function readAddressAttempts(
  store: Store,
  subscriptionId: string,
  nowMs: number,
): Promise<AddressAttempts & { periods: Period[] }> {
  const hours = lastOf(HOUR_MS, 24, nowMs);
  const records = await readAddressHours(store, subscriptionId, hours);
  const periods = hours.map((hour, i) => ({ fromMs: hour * HOUR_MS, ...totals(records.slice(i, i + 1)) }));
  return { ...addressAttempts(subscriptionId, records), periods };
}

export interface AddressAttempts extends Totals {
  subscriptionId: string;
  /** Mean duration of an attempt; null where there was none. */
  meanMs: number | null;
}

/** The hours whose rankings `rankAddresses` reads: this one and the one before. */
const rankedHours = (nowMs: number) => lastOf(HOUR_MS, 2, nowMs);

/** The keys of the rankings of a partition that are read. */
export function rankingKeys(prefix: string, nowMs: number): string[] {
  return rankedHours(nowMs).flatMap((hour) => [rankingKey(prefix, 'failing', hour), rankingKey(prefix, 'slow', hour)]);
}

/**
 * The addresses with the most failed attempts, and those whose attempts take longest, in this hour and the one before:
 * of the first 10 of each hour. Adds to `unreadable` those whose attempts can't be read.
 */
export async function rankAddresses(
  store: Store,
  nowMs: number,
  unreadable: UnreadableRecord[],
): Promise<{ sinceMs: number; failing: AddressAttempts[]; slow: AddressAttempts[] }> {
  const hours = rankedHours(nowMs);
  const rank = async (ranking: 'failing' | 'slow', rankOf: (address: AddressAttempts) => number) => {
    const ofHours = await Promise.all(
      hours.map((hour) => highest(store, (prefix) => rankingKey(prefix, ranking, hour), MAX_RANKED)),
    );
    const ids = new Set(ofHours.flat().map(({ id }) => id));
    const load = (some: string[]) =>
      Promise.all(some.map(async (id) => addressAttempts(id, await readAddressHours(store, id, hours))));
    const addresses = await loadOthers(load, [...ids], unreadable);
    return addresses.sort((a, b) => rankOf(b) - rankOf(a)).slice(0, MAX_RANKED);
  };
  const [failing, slow] = await Promise.all([
    rank('failing', ({ failed }) => failed),
    rank('slow', ({ meanMs }) => meanMs ?? 0),
  ]);
  return { sinceMs: Math.min(...hours) * HOUR_MS, failing, slow };
}

type Hash = Record<string, string>;

function readAddressHours(store: Store, subscriptionId: string, hours: number[]): Promise<Hash[]> {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const read = (hour: number) => store.redis.hgetall(addressStatsKey(prefix, subscriptionId, hour));
  return Promise.all(hours.map((hour) => readNamed('the attempts to', subscriptionId, read(hour))));
}

function addressAttempts(subscriptionId: string, hours: Hash[]): AddressAttempts {
  const { succeeded, failed } = totals(hours);
  const attempts = succeeded + failed;
  return { subscriptionId, succeeded, failed, meanMs: attempts === 0 ? null : Math.round(sum(hours, 'm') / attempts) };
}

function totals(records: Hash[]): Totals {
  return { succeeded: sum(records, 's'), failed: sum(records, 'f') };
}

function sum(records: Hash[], field: string): number {
  return records.reduce((total, record) => total + Number(record[field] ?? 0), 0);
}

/** Percentiles of the durations whose buckets are the fields with this first letter. */
function percentiles(records: Hash[], letter: 'd' | 'l'): AttemptSeries['attemptMs'] {
  const counts = bucketCounts(records, letter);
  return { p50: durationPercentile(counts, 0.5), p99: durationPercentile(counts, 0.99) };
}

function bucketCounts(records: Hash[], letter: 'd' | 'l'): Map<number, number> {
  const fields = new Set(records.flatMap(Object.keys).filter((field) => field.startsWith(letter)));
  return new Map(Array.from(fields, (field) => [Number(field.slice(1)), sum(records, field)]));
}

/** The numbers of the last `count` minutes or hours since 1970, the oldest first, the current one included. */
function lastOf(unitMs: number, count: number, nowMs: number): number[] {
  const last = Math.floor(nowMs / unitMs);
  return Array.from({ length: count }, (_, i) => last - count + 1 + i);
}
