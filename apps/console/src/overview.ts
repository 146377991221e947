/** The overview: current counts, workers, and the attempts of the last hour and day. */
import { HEALTH_MINUTES } from '@posthorn/core';
import { readBacklog } from '@posthorn/dispatch';
import type * as api from '@posthorn/operator-api';
import { shareResult } from '@posthorn/runtime';
import {
  type AddressAttempts,
  type AttemptSeries,
  aliveWorkers,
  findUnavailable,
  loadSubscriptions,
  rankAddresses,
  readAddressAttempts,
  readAttempts,
  readFormat,
  readRules,
  readServerState,
  type ServerState,
  type Store,
  type WorkerState,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { instant } from './instant.ts';
import { readProblems } from './problems.ts';
import { serializeListedSubscriptions } from './serialize.ts';
import { describeUnavailable } from './storage-problem.ts';

/** All callers share one overview for this long. */
const MAX_AGE_MS = 1_000;
/** The newest paused addresses that are shown as such. */
const MAX_PAUSED_SHOWN = 10;
/** Below this share of successes in the last 15 minutes, not all is well. */
const WELL_RATE = 0.95;
/** Above this share of its memory, Redis will be full soon; from then on ingest refuses events. The alerts have the same. */
const FULL_SHARE = 0.85;
/** A delivery that has waited this long for its first attempt means that the workers do not keep up. */
const LONG_PENDING_MS = 60_000;
/** The alert has the same. */
const MAX_CLOCK_OFFSET_MS = 5_000;

/** Returns a reader of the overview. Its cost for Redis does not depend on the number of callers. */
export function createOverview(context: ConsoleContext): () => Promise<api.Overview> {
  return shareResult(() => readOverview(context), MAX_AGE_MS);
}

async function readOverview(context: ConsoleContext): Promise<api.Overview> {
  const { store, directory, clock } = context;
  const nowMs = clock.now();
  const [{ jobs, ...backlog }, alive, hour, day, ranking, rules, format, triage, paused, server, refusal] =
    await Promise.all([
      readBacklog(context, nowMs),
      aliveWorkers(store),
      readAttempts(store, 'minute', nowMs),
      readAttempts(store, 'hour', nowMs),
      rankAddresses(store, nowMs),
      readRules(store),
      readFormat(store),
      readProblems(context, nowMs),
      directory.find({ status: 'paused', sort: 'newest' }, { limit: MAX_PAUSED_SHOWN }),
      readServerState(store, clock.now),
      readRefusal(context),
    ]);
  const redisNowMs = nowMs - server.clockOffsetMs;
  const workers = alive.map((worker) => ({
    ...worker,
    clockOffsetMs: worker.clockMs === undefined ? null : Math.round(worker.clockMs - (redisNowMs - worker.seenAgoMs)),
  }));
  const whyNotWell = [
    ...(refusal === null ? [] : [`Redis refuses changes: ${refusal}`]),
    ...problemsOfAddresses(triage),
    ...problemsOfWorkers(workers),
    ...problemsOfTraffic(hour, backlog.oldestPendingAgeMs),
    ...problemsOfMemory(server),
  ];
  return {
    at: instant(nowMs),
    all_well: whyNotWell.length === 0,
    why_not_well: whyNotWell,
    ...triage,
    deliveries: backlog.deliveries,
    subscriptions: backlog.subscriptions,
    queue: { ...jobs, oldest_pending_age_ms: backlog.oldestPendingAgeMs },
    workers: workers.map((worker) => ({
      id: worker.id,
      host: worker.host,
      pid: worker.pid,
      version: worker.version,
      concurrency: worker.concurrency,
      in_flight: worker.inFlight,
      started_at: instant(worker.startedAtMs),
      seen_at: instant(nowMs - worker.seenAgoMs),
      outage_since: instant(worker.outageSinceMs),
      clock_offset_ms: worker.clockOffsetMs,
    })),
    memory: { used_bytes: server.usedBytes, capacity_bytes: server.capacityBytes },
    writes_refused: refusal,
    last_hour: serializeAttempts(hour),
    last_day: serializeAttempts(day),
    rules: {
      max_attempts: rules.maxAttempts,
      pause_after: rules.pauseAfter,
      retention_ms: store.retentionMs,
      retention_succeeded_ms: store.succeededRetentionMs,
      attempt_timeout_ms: rules.attemptTimeoutMs,
      release_rate: rules.releaseRate,
    },
    format: {
      current: format.current,
      newest: format.newest,
      oldest_stored: format.oldestStored,
      waits_for: format.waitsFor,
      raises_at: instant(format.raisesAtMs ?? null),
    },
    addresses: {
      since: instant(ranking.sinceMs),
      most_failing: await serializeRanking(store, ranking.failing),
      slowest: await serializeRanking(store, ranking.slow),
      paused: await serializeListedSubscriptions(context, paused.items),
    },
  };
}

/** Resolves with why Redis refuses writes while it still responds, in its own words, or null if it takes them. */
async function readRefusal({ store }: ConsoleContext): Promise<string | null> {
  const unavailable = await findUnavailable(store);
  return unavailable.length === 0 ? null : describeUnavailable(store, unavailable);
}

// What needs an operator, a phrase each.

function problemsOfAddresses({ problems: { total }, incidents }: Pick<api.Overview, 'problems' | 'incidents'>) {
  const found = incidents.map(({ addresses }) => `${addresses} addresses began to fail at once`);
  if (total > 0) found.unshift(total === 1 ? '1 address fails or is paused' : `${total} addresses fail or are paused`);
  return found;
}

function problemsOfWorkers(workers: (WorkerState & { clockOffsetMs: number | null })[]): string[] {
  if (workers.length === 0) return ['no worker is running'];
  return workers.flatMap(({ host, pid, outageSinceMs, clockOffsetMs }) => {
    const found: string[] = [];
    if (outageSinceMs !== null) found.push(`worker ${host}:${pid} has reached nothing since ${instant(outageSinceMs)}`);
    if (clockOffsetMs !== null && Math.abs(clockOffsetMs) > MAX_CLOCK_OFFSET_MS)
      found.push(
        `the clock of worker ${host}:${pid} is ${Math.round(Math.abs(clockOffsetMs) / 1_000)} s ${clockOffsetMs > 0 ? 'fast' : 'slow'}`,
      );
    return found;
  });
}

function problemsOfTraffic({ periods }: AttemptSeries, oldestPendingAgeMs: number): string[] {
  const recent = periods.slice(-HEALTH_MINUTES);
  const succeeded = recent.reduce((all, period) => all + period.succeeded, 0);
  const attempts = recent.reduce((all, period) => all + period.failed, succeeded);
  const found: string[] = [];
  if (succeeded < WELL_RATE * attempts)
    found.push(`${attempts - succeeded} of ${attempts} attempts failed in the last ${HEALTH_MINUTES} minutes`);
  if (oldestPendingAgeMs >= LONG_PENDING_MS)
    found.push(`a delivery has waited ${Math.round(oldestPendingAgeMs / 1_000)} s for its first attempt`);
  return found;
}

function problemsOfMemory({ usedBytes, capacityBytes, eviction }: ServerState): string[] {
  const problems = eviction === undefined ? [] : [eviction];
  if (usedBytes !== null && capacityBytes !== null && usedBytes > FULL_SHARE * capacityBytes)
    problems.push(`Redis uses ${Math.round((100 * usedBytes) / capacityBytes)} % of its memory`);
  return problems;
}

/** Returns the attempts to one address over the last 24 hours. */
export async function serializeAddressAttempts(
  store: Store,
  subscriptionId: string,
  nowMs: number,
): Promise<api.AddressAttempts> {
  const { meanMs, ...counts } = await readAddressAttempts(store, subscriptionId, nowMs);
  return { subscription_id: subscriptionId, ...serializeCounts(counts), mean_ms: meanMs };
}

function serializeAttempts({ attemptMs, arrivalMs, ...counts }: AttemptSeries): api.Overview['last_hour'] {
  return { ...serializeCounts(counts), attempt_ms: attemptMs, arrival_ms: arrivalMs };
}

function serializeCounts({ succeeded, failed, periods }: Pick<AttemptSeries, 'succeeded' | 'failed' | 'periods'>) {
  const attempts = succeeded + failed;
  const series = periods.map(({ fromMs, ...counts }) => ({ from: instant(fromMs), ...counts }));
  return { attempts, succeeded, failed, success_rate: attempts === 0 ? null : succeeded / attempts, series };
}

/** Adds url and status to the ranked addresses. Leaves out deleted ones. */
async function serializeRanking(
  store: Store,
  ranked: AddressAttempts[],
): Promise<api.Overview['addresses']['slowest']> {
  const subscriptions = await loadSubscriptions(
    store,
    ranked.map(({ subscriptionId }) => subscriptionId),
  );
  return ranked.flatMap(({ subscriptionId, succeeded, failed, meanMs }, i) => {
    const subscription = subscriptions[i];
    if (!subscription) return [];
    const { url, status } = subscription;
    return [{ subscription_id: subscriptionId, url, status, succeeded, failed, mean_ms: meanMs }];
  });
}
