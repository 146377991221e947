/** What needs an operator: the failing and paused addresses, the worst first, and the incidents that they belong to. */
import { type AddressHealth, findIncidents, UNKNOWN_HEALTH } from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import {
  countProblems,
  laneLength,
  listFailing,
  listSubscriptions,
  loadSubscriptions,
  readHealth,
  type StoredSubscription,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { describeHealth } from './health.ts';
import { instant } from './instant.ts';

const MAX_SHOWN = 50;
/** The newest failing addresses, among which incidents are looked for. */
const MAX_FAILING = 1_000;
/** The addresses whose records are read: the newest failing and the newest paused ones. */
const MAX_FAILING_READ = 200;
const MAX_PAUSED_READ = 100;
/** Ids in an incident. */
const MAX_IDS = 250;

/** An address with a problem, as it was read. */
interface Candidate {
  subscription: StoredSubscription;
  health: AddressHealth;
  held: number;
}

/** Reads the problems and incidents. The cost has a limit, however many addresses fail. */
export async function readProblems(
  context: ConsoleContext,
  nowMs: number,
): Promise<Pick<api.Overview, 'problems' | 'incidents'>> {
  const { store } = context;
  const [total, failing, paused] = await Promise.all([
    countProblems(store),
    listFailing(store, MAX_FAILING),
    listSubscriptions(store, { status: 'paused' }, { limit: MAX_PAUSED_READ }),
  ]);
  const failingIds = failing.slice(0, MAX_FAILING_READ).map(({ subscriptionId }) => subscriptionId);
  const candidates = await readCandidates(context, failingIds, paused.items, nowMs);
  const incidents = findIncidents(failing);
  const incidentOf = new Map(incidents.flatMap(({ id, subscriptionIds }) => subscriptionIds.map((sub) => [sub, id])));
  const worst = candidates.sort((a, b) => severity(b) - severity(a)).slice(0, MAX_SHOWN);
  const items = worst.map((candidate) => serializeProblem(context, candidate, incidentOf, nowMs));
  return {
    problems: { total, items: await Promise.all(items) },
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
  { store }: ConsoleContext,
  failingIds: string[],
  paused: StoredSubscription[],
  nowMs: number,
): Promise<Candidate[]> {
  const pausedIds = new Set(paused.map(({ id }) => id));
  const failing = await loadSubscriptions(
    store,
    failingIds.filter((id) => !pausedIds.has(id)),
  );
  const subscriptions = [...failing, ...paused].filter((subscription) => subscription !== undefined);
  const healths = await readHealth(
    store,
    subscriptions.map(({ id }) => id),
    nowMs,
  );
  return await Promise.all(
    subscriptions.map(async (subscription, i) => ({
      subscription,
      health: healths[i] ?? UNKNOWN_HEALTH,
      held: await laneLength(store, 'held', subscription.id),
    })),
  );
}

async function serializeProblem(
  context: ConsoleContext,
  { subscription, health, held }: Candidate,
  incidentOf: ReadonlyMap<string, string>,
  nowMs: number,
): Promise<api.Overview['problems']['items'][number]> {
  const { verdict, error, failing_since } = await describeHealth(context, subscription, health, null, nowMs);
  return {
    subscription_id: subscription.id,
    url: subscription.url,
    description: subscription.description,
    environment: subscription.environment,
    status: subscription.status,
    status_reason: subscription.statusReason,
    failing_since,
    held,
    verdict,
    error,
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
  const hosts = [...new Set(members.map(({ subscription }) => new URL(subscription.url).host))];
  return {
    error_label: most && 2 * most[1].length > members.length ? most[0] : null,
    host: hosts.length === 1 ? (hosts[0] ?? null) : null,
  };
}
