/** The overview: current counts, workers, and the attempts of the last hour and day. */
import { awaitValues } from '@posthorn/core';
import { readBacklog } from '@posthorn/dispatch';
import type * as api from '@posthorn/operator-api';
import { WELL_LIMITS } from '@posthorn/operator-api';
import { shareResult } from '@posthorn/runtime';
import {
  type AddressAttempts,
  type AttemptSeries,
  aliveWorkers,
  findUnavailable,
  loadOthers,
  loadSubscriptions,
  rankAddresses,
  readAddressAttempts,
  readAttempts,
  readFormat,
  readRules,
  readServerState,
  type Store,
  type StoredSubscription,
  type UnreadableRecord,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { instant } from './instant.ts';
import { findNotWell } from './not-well.ts';
import { nameUnreadable, serializeListedSubscriptions } from './serialize.ts';
import { describeUnavailable } from './storage-problem.ts';
import { readTriage } from './triage.ts';

/** All callers share one overview for this long. */
const MAX_AGE_MS = 1_000;
/** The newest paused addresses that are shown as such. */
const MAX_PAUSED_SHOWN = 10;

/** Returns a reader of the overview. Its cost for Redis does not depend on the number of callers. */
export function createOverview(context: ConsoleContext): () => Promise<api.Overview> {
  return shareResult(() => readOverview(context), MAX_AGE_MS);
}

async function readOverview(context: ConsoleContext): Promise<api.Overview> {
  const { store } = context;
  const nowMs = context.clock.now();
  const unreadable: UnreadableRecord[] = [];
  const read = await readAll(context, nowMs, unreadable);
  const { backlog, hour, triage, server, refusal, isPaused } = read;
  const workers = withClockOffsets(read.workers, nowMs - server.clockOffsetMs);
  const addresses = await serializeAddresses(context, read, unreadable);
  const notWell = findNotWell({
    refusal,
    triage,
    workers,
    isPaused,
    hour,
    pendingMs: backlog.oldestPendingAgeMs,
    server,
  });
  return {
    at: instant(nowMs),
    all_well: notWell.length === 0,
    not_well: notWell,
    why_not_well: notWell.map(({ message }) => message),
    ...triage,
    deliveries: backlog.deliveries,
    subscriptions: backlog.subscriptions,
    queue: { ...backlog.jobs, oldest_pending_age_ms: backlog.oldestPendingAgeMs },
    workers: workers.map((worker) => serializeWorker(worker, nowMs)),
    memory: { used_bytes: server.usedBytes, capacity_bytes: server.capacityBytes },
    writes_refused: refusal,
    last_hour: serializeAttempts(hour),
    last_day: serializeAttempts(read.day),
    rules: serializeRules(store, read.rules),
    format: serializeFormat(read.format),
    addresses,
    // The same may be in several parts.
    ...nameUnreadable(context, [...new Map(unreadable.map((one) => [one.id, one])).values()]),
  };
}

type Read = Awaited<ReturnType<typeof readAll>>;

/** Adds to `unreadable` what can't be read of the addresses. */
function readAll(context: ConsoleContext, nowMs: number, unreadable: UnreadableRecord[]) {
  const { store, directory, clock, jobQueues } = context;
  return awaitValues({
    backlog: readBacklog(context, nowMs),
    isPaused: jobQueues.arePaused(),
    workers: aliveWorkers(store),
    hour: readAttempts(store, 'minute', nowMs),
    day: readAttempts(store, 'hour', nowMs),
    ranking: rankAddresses(store, nowMs, unreadable),
    rules: readRules(store),
    format: readFormat(store),
    triage: readTriage(context, nowMs, unreadable),
    paused: directory.find({ status: 'paused', sort: 'newest' }, { limit: MAX_PAUSED_SHOWN, leaveOutUnreadable: true }),
    server: readServerState(store, clock.now),
    refusal: readRefusal(context),
  });
}

function withClockOffsets(workers: Read['workers'], redisNowMs: number) {
  return workers.map((worker) => ({
    ...worker,
    clockOffsetMs: worker.clockMs === undefined ? null : Math.round(worker.clockMs - (redisNowMs - worker.seenAgoMs)),
  }));
}

function serializeWorker(
  worker: ReturnType<typeof withClockOffsets>[number],
  nowMs: number,
): api.Overview['workers'][number] {
  return {
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
  };
}

function serializeRules(store: Store, rules: Read['rules']): api.Overview['rules'] {
  return {
    max_attempts: rules.maxAttempts,
    pause_after: rules.pauseAfter,
    retention_ms: store.retentionMs,
    retention_succeeded_ms: store.succeededRetentionMs,
    attempt_timeout_ms: rules.attemptTimeoutMs,
    release_rate: rules.releaseRate,
    min_success_rate: WELL_LIMITS.minSuccessRate,
  };
}

function serializeFormat(format: Read['format']): api.Overview['format'] {
  return {
    current: format.current,
    newest: format.newest,
    oldest_stored: format.oldestStored,
    waits_for: format.waitsFor,
    raises_at: instant(format.raisesAtMs ?? null),
  };
}

/** Resolves with why Redis refuses writes while it still responds, in its own words, or null if it takes them. */
async function readRefusal({ store }: ConsoleContext): Promise<string | null> {
  const unavailable = await findUnavailable(store);
  return unavailable.length === 0 ? null : describeUnavailable(store, unavailable);
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

async function serializeAddresses(
  context: ConsoleContext,
  { ranking, paused }: Read,
  unreadable: UnreadableRecord[],
): Promise<api.Overview['addresses']> {
  unreadable.push(...paused.unreadable);
  const serializePaused = (some: StoredSubscription[]) => serializeListedSubscriptions(context, some);
  return {
    since: instant(ranking.sinceMs),
    most_failing: await serializeRanking(context.store, ranking.failing, unreadable),
    slowest: await serializeRanking(context.store, ranking.slow, unreadable),
    paused: await loadOthers(serializePaused, paused.items, unreadable),
  };
}

/** Adds url and status to the ranked addresses. Leaves out deleted ones. */
async function serializeRanking(
  store: Store,
  ranked: AddressAttempts[],
  unreadable: UnreadableRecord[],
): Promise<api.Overview['addresses']['slowest']> {
  const ids = ranked.map(({ subscriptionId }) => subscriptionId);
  const found = await loadOthers((some: string[]) => loadSubscriptions(store, some), ids, unreadable);
  const byId = new Map(found.map((subscription) => [subscription.id, subscription]));
  return ranked.flatMap(({ subscriptionId, succeeded, failed, meanMs }) => {
    const subscription = byId.get(subscriptionId);
    if (!subscription) return [];
    const { url, status } = subscription;
    return [{ subscription_id: subscriptionId, url, status, succeeded, failed, mean_ms: meanMs }];
  });
}
