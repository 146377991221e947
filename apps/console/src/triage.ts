/** The triage: the failing and paused addresses, the worst first, and the incidents that they belong to. */
import { findIncidents, UNKNOWN_HEALTH } from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import {
  countProblems,
  laneLength,
  listFailing,
  listMostHeld,
  loadOthers,
  loadSubscriptions,
  readHealth,
  type Store,
  type StoredSubscription,
  type UnreadableRecord,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { describeHealth, type FoundHealth } from './health.ts';
import { instant } from './instant.ts';
import { reasonOf } from './serialize.ts';

const MAX_SHOWN = 50;
/**
 * The newest failing addresses, among which incidents are looked for. With fewer, an incident of all customers would be
 * counted in part. Reading so many takes Redis some milliseconds.
 */
const MAX_FAILING = 10_000;
/** The failing addresses whose records are read: the worst of all. */
const MAX_FAILING_READ = 200;
/**
 * The newest paused addresses, among which those with the most held deliveries are looked for, and those whose records
 * are read.
 */
const [MAX_PAUSED, MAX_PAUSED_READ] = [1_000, 100];
/** Ids in an incident. */
const MAX_IDS = 250;

/** An address with a problem, as it was read. */
interface Candidate extends FoundHealth {
  held: number;
}

/**
 * Reads the problems and incidents, and adds to `unreadable` those that can't be read. The cost has a limit, however
 * many addresses fail or are paused.
 */
export async function readTriage(
  context: ConsoleContext,
  nowMs: number,
  unreadable: UnreadableRecord[],
): Promise<Pick<api.Overview, 'problems' | 'incidents'>> {
  const { store, directory } = context;
  const [total, failing, worstFailing, mostHeld] = await Promise.all([
    countProblems(store),
    listFailing(store, MAX_FAILING),
    directory.find({ health: 'failing', sort: 'worst' }, { limit: MAX_FAILING_READ, leaveOutUnreadable: true }),
    listMostHeld(store, MAX_PAUSED, MAX_PAUSED_READ, unreadable),
  ]);
  unreadable.push(...worstFailing.unreadable);
  const found = await loadOthers((ids: string[]) => loadSubscriptions(store, ids), mostHeld, unreadable);
  const paused = found.filter(({ status }) => status === 'paused');
  // One may be failing and paused.
  const byId = new Map([...worstFailing.items, ...paused].map((subscription) => [subscription.id, subscription]));
  const read = (some: StoredSubscription[]) => readCandidates(store, some, nowMs);
  const candidates = await loadOthers(read, [...byId.values()], unreadable);
  const incidents = findIncidents(failing);
  const incidentOf = new Map(incidents.flatMap(({ id, subscriptionIds }) => subscriptionIds.map((sub) => [sub, id])));
  const worst = candidates.sort((a, b) => severity(b) - severity(a)).slice(0, MAX_SHOWN);
  const serialize = async (some: Candidate[]) => {
    const healths = await describeHealth(store, some, nowMs);
    return some.map((candidate, i) => serializeProblem(candidate, healths[i]!, incidentOf));
  };
  const items = await loadOthers(serialize, worst, unreadable);
  return {
    problems: { total, items },
    incidents: incidents.map(({ id, startedAtMs, subscriptionIds }) => ({
      id,
      started_at: instant(startedAtMs),
      addresses: subscriptionIds.length,
      subscription_ids: subscriptionIds.slice(0, MAX_IDS),
      ...sharedBy(candidates.filter(({ subscription }) => incidentOf.get(subscription.id) === id)),
    })),
  };
}

/** How many deliveries and attempts a problem has cost so far. */
function severity({ held, health }: Candidate): number {
  return held + health.failedInARow;
}

async function readCandidates(
  store: Store,
  subscriptions: readonly StoredSubscription[],
  nowMs: number,
): Promise<Candidate[]> {
  const ids = subscriptions.map(({ id }) => id);
  const [healths, held] = await Promise.all([
    readHealth(store, ids, nowMs),
    Promise.all(ids.map((id) => laneLength(store, 'held', id))),
  ]);
  return subscriptions.map((subscription, i) => ({
    subscription,
    health: healths[i] ?? UNKNOWN_HEALTH,
    p99Ms: null,
    held: held[i] ?? 0,
  }));
}

function serializeProblem(
  { subscription, held }: Candidate,
  health: api.Health,
  incidentOf: ReadonlyMap<string, string>,
): api.Overview['problems']['items'][number] {
  return {
    subscription_id: subscription.id,
    url: subscription.url,
    description: subscription.description,
    environment: subscription.environment,
    status: subscription.status,
    status_reason: reasonOf(subscription),
    failing_since: health.failing_since,
    held,
    verdict: health.verdict,
    error: health.error,
    incident: incidentOf.get(subscription.id) ?? null,
  };
}

/** The error of most addresses of an incident, and the host if all have the same, as far as they were read. */
function sharedBy(members: Candidate[]): { error_label: string | null; host: string | null } {
  const labels = Map.groupBy(
    members.flatMap(({ health }) => health.error?.label ?? []),
    (label) => label,
  );
  const [most] = [...labels].sort(([, a], [, b]) => b.length - a.length);
  const hosts = [...new Set(members.map(({ subscription }) => URL.parse(subscription.url)?.host ?? subscription.url))];
  return {
    error_label: most && 2 * most[1].length > members.length ? most[0] : null,
    host: hosts.length === 1 ? (hosts[0] ?? null) : null,
  };
}
