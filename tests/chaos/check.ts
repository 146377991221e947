/** The judge of a chaos run: compares the responses to publishers, what receivers got and what the API says. */
import type { PublishedEvent } from '@posthorn/client';
import { connectRedis } from '@posthorn/store';
import { isSigned } from '../signed.ts';
import { type Cast, RULES } from './cast.ts';
import type { Restored } from './drill.ts';
import { checkErasures, type RequestedErasure } from './erasures.ts';
import { callUntilAnswered, listAll } from './operator.ts';
import type { Receivers } from './receivers.ts';
import type { ChaosSubscription } from './run.ts';

export interface Published {
  event: PublishedEvent;
  /** Undefined until it is accepted. */
  acceptedAtMs: number | undefined;
  /** It was stored by an earlier try whose response was lost. */
  duplicate: boolean;
}

export interface Checked {
  /** Observations to print. */
  figures: Record<string, number | string>;
  /** Violated guarantees; empty if all is well. */
  faults: string[];
}

interface Delivery {
  id: string;
  event_id: string;
  subscription_id: string;
  status: string;
  attempt_count: number;
  failure_reason: string | null;
  finished_at: string | null;
  replay_of: string | null;
}

export async function check(evidence: {
  cast: Cast;
  receivers: Receivers;
  subscriptions: ChaosSubscription[];
  published: Map<string, Published>;
  erasures: RequestedErasure[];
  broken: Record<string, number>;
  quietAfterMs: number;
  seed: number;
  restored?: Restored | undefined;
}): Promise<Checked> {
  const { cast, receivers, subscriptions, published } = evidence;
  const faults: string[] = [];
  const fault = (text: string) => {
    if (faults.length < 50) faults.push(text);
  };
  if (evidence.quietAfterMs === Number.POSITIVE_INFINITY)
    fault('Some work never ended: there are still unfinished deliveries.');

  const deliveries = (await listAll(cast, '/v1/deliveries')) as Delivery[];
  const byPair = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const pair = `${delivery.event_id} ${delivery.subscription_id}`;
    byPair.set(pair, [...(byPair.get(pair) ?? []), delivery]);
  }
  const taken = new Map<string, number>();
  const requests = new Map<string, number>();
  const paths = new Map(subscriptions.map((subscription) => [subscription.path, subscription]));
  let unsigned = 0;
  for (const { path, eventId, deliveryId, taken: ok, signature, body, atMs } of receivers.arrivals) {
    const subscription = paths.get(path)!;
    requests.set(deliveryId, (requests.get(deliveryId) ?? 0) + 1);
    const pair = `${eventId} ${subscription.id}`;
    if (ok) taken.set(pair, (taken.get(pair) ?? 0) + 1);
    const nowS = atMs / 1000;
    const checks = subscription.secrets.map(
      (secret) => secret === 'unknown' || isSigned({ header: signature, secret, body, nowS }),
    );
    const signed = (await Promise.all(checks)).includes(true);
    if (!signed) unsigned += 1;
    if (!published.has(eventId)) fault(`${path} got ${eventId}, which nobody published`);
  }
  if (unsigned > 0) fault(`${unsigned} deliveries were not signed with a secret of their subscription`);

  // An accepted event has arrived at each matching subscription, or its delivery's record says why not.
  let pairs = 0;
  let delivered = 0;
  let failed = 0;
  for (const [eventId, { event, acceptedAtMs }] of published) {
    const { type } = event;
    for (const subscription of subscriptions) {
      const pair = `${eventId} ${subscription.id}`;
      const made = byPair.get(pair) ?? [];
      const matches = subscription.types.includes(type);
      if (!matches && made.length > 0)
        fault(`${eventId} (${type}) was made for ${subscription.path}, which did not subscribe to its type`);
      if (!matches || acceptedAtMs === undefined) continue;
      pairs += 1;
      // What arrived before a restore must also be known after it.
      if (taken.has(pair) && (!evidence.restored || made.length > 0)) delivered += 1;
      else if (made.some(({ status, failure_reason }) => status === 'failed' && failure_reason !== null)) failed += 1;
      else
        fault(
          `lost: ${eventId} to ${subscription.path}: ${made.map(({ id, status }) => `${id} ${status}`).join(', ') || 'no delivery'}`,
        );
      for (const { id, status } of made) {
        if (status === 'succeeded' && !taken.has(pair))
          fault(`${id} has succeeded, but ${subscription.path} accepted nothing`);
      }
      const firsts = made.filter(({ replay_of }) => replay_of === null);
      if (firsts.length > 1) fault(`${eventId} made ${firsts.length} deliveries to ${subscription.path}`);
    }
  }

  const { gaps, attempts } = await checkAttempts(cast, deliveries, requests, fault);
  const audit = await listAll(cast, '/v1/audit');
  const pauses = audit.filter(({ action, operator }) => action === 'subscription.paused' && operator === null);
  for (const { detail, subscription_id } of pauses) {
    if (detail.consecutive_failures !== RULES.pauseAfter)
      fault(`${subscription_id} was paused at ${detail.consecutive_failures} failures`);
  }
  const afterRestore = evidence.restored
    ? checkRestored(evidence.restored, deliveries, receivers.arrivals, fault)
    : undefined;
  const replays = await checkReplays(cast, fault);
  const erasures = await checkErasures(cast, evidence.erasures, published, fault);
  await checkLeftovers(cast, fault);
  for (const complaint of cast.complaints()) fault(`unexpected in the log of ${complaint}`);

  const accepted = [...published.values()].filter(({ acceptedAtMs }) => acceptedAtMs !== undefined).length;
  return {
    faults,
    figures: {
      seed: evidence.seed,
      'events published': published.size,
      'events accepted': accepted,
      'stored by a try whose response was lost': [...published.values()].filter(({ duplicate }) => duplicate).length,
      'deliveries owed': pairs,
      delivered,
      'failed for good': failed,
      lost: pairs - delivered - failed,
      'replays made': deliveries.filter(({ replay_of }) => replay_of !== null).length,
      ...replays,
      ...erasures,
      'requests received': receivers.arrivals.length,
      'arrived twice or more': [...taken.values()].filter((count) => count > 1).length,
      'attempts recorded': attempts,
      'least gap beyond the schedule, ms': gaps,
      'addresses paused by failures': pauses.length,
      'quiet after, s': Math.round(evidence.quietAfterMs / 1000),
      ...evidence.broken,
      ...afterRestore,
    },
  };
}

/** Checks the attempts per delivery, and the time between them. */
async function checkAttempts(
  cast: Cast,
  deliveries: Delivery[],
  requests: Map<string, number>,
  fault: (text: string) => void,
): Promise<{ gaps: number; attempts: number }> {
  const most = RULES.retryDelaysMs.length + 1;
  let least = Number.POSITIVE_INFINITY;
  let attempts = 0;
  for (const delivery of deliveries) {
    attempts += delivery.attempt_count;
    if (delivery.attempt_count > most) fault(`${delivery.id} had ${delivery.attempt_count} attempts`);
    const expected = delivery.failure_reason === 'cancelled' ? 0 : most;
    // An erasure ends a delivery after any number of attempts.
    const isWhole = delivery.failure_reason === 'erased' || delivery.attempt_count === expected;
    if (delivery.status === 'failed' && !isWhole) fault(`${delivery.id} failed after ${delivery.attempt_count}`);
    if (delivery.attempt_count > 0 && !requests.has(delivery.id) && delivery.status === 'succeeded')
      fault(`${delivery.id} succeeded without a request`);
    if (delivery.attempt_count < 2) continue;
    const { attempts: made } = await read(cast, delivery.id);
    for (const [i, attempt] of made.entries()) {
      if (i === 0) continue;
      const before = made[i - 1]!;
      const gap =
        Date.parse(attempt.started_at) -
        Date.parse(before.started_at) -
        before.duration_ms -
        RULES.retryDelaysMs[i - 1]!;
      least = Math.min(least, gap);
      if (gap < 0) fault(`${delivery.id}: attempt ${i + 1} came ${-gap} ms too early`);
    }
  }
  return { gaps: least, attempts };
}

/**
 * Checks that a restore did only what docs/backups.md says. It may forget what happened between the start of the backup
 * and the restore, and so repeat deliveries of that time. It may not forget anything earlier, or repeat a delivery that
 * had ended before the backup.
 */
function checkRestored(
  { begunAtMs, takenAtMs, restoredAtMs, ...figures }: Restored,
  deliveries: Delivery[],
  arrivals: Receivers['arrivals'],
  fault: (text: string) => void,
): Record<string, number> {
  const known = new Set(deliveries.map(({ id }) => id));
  const forgotten = new Set<string>();
  /** Deliveries that arrived since the restore, and whether they were accepted. */
  const since = new Map<string, boolean>();
  const takenBefore = new Set<string>();
  const again = new Set<string>();
  for (const { path, eventId, deliveryId, taken, atMs } of arrivals) {
    const isSince = atMs >= restoredAtMs;
    const pair = `${eventId} ${path}`;
    if (isSince) since.set(deliveryId, taken || since.get(deliveryId) === true);
    if (taken && !isSince) takenBefore.add(pair);
    if (taken && isSince && takenBefore.has(pair)) again.add(pair);
    if (known.has(deliveryId)) continue;
    forgotten.add(deliveryId);
    if (atMs < begunAtMs || isSince) fault(`${deliveryId} is unknown, though the backup must have it`);
  }
  for (const { id, status, finished_at: finishedAt } of deliveries) {
    const endedAtMs = finishedAt === null ? Number.NaN : Date.parse(finishedAt);
    if (endedAtMs < restoredAtMs) {
      if (endedAtMs > takenAtMs) fault(`${id} ended at ${finishedAt}, which the backup cannot know`);
      if (since.has(id)) fault(`${id} was sent again, though it had ended before the backup`);
    } else if (status === 'succeeded' && since.get(id) !== true)
      fault(`${id} has succeeded since the restore, but nothing was accepted since`);
  }
  return { ...figures, 'deliveries forgotten': forgotten.size, 'delivered again after the restore': again.size };
}

async function read(cast: Cast, id: string): Promise<{ attempts: { started_at: string; duration_ms: number }[] }> {
  return (await callUntilAnswered(cast, 'GET', `/v1/deliveries/${id}`)).body;
}

/** Checks that every bulk replay has ended or waits for an operator, and knows what became of its deliveries. */
async function checkReplays(cast: Cast, fault: (text: string) => void): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  for (const { id, status, replayed, outcome } of await listAll(cast, '/v1/replays')) {
    figures[`bulk replays ${status}`] = (figures[`bulk replays ${status}`] ?? 0) + 1;
    figures['deliveries cancelled'] = (figures['deliveries cancelled'] ?? 0) + outcome.cancelled;
    if (!['done', 'halted', 'cancelled'].includes(status)) fault(`the bulk replay ${id} is ${status}`);
    const { delivered, failed, cancelled, waiting, unknown } = outcome;
    if (waiting !== 0 || unknown !== 0 || delivered + failed + cancelled !== replayed)
      fault(`the bulk replay ${id} made ${replayed} deliveries: ${JSON.stringify(outcome)}`);
  }
  return figures;
}

/** Checks that no work is left, and that every key is an expected one. */
async function checkLeftovers(cast: Cast, fault: (text: string) => void): Promise<void> {
  const redis = connectRedis({ REDIS_URL: cast.redis.url });
  const keys = await redis.keys('*');
  for (const key of keys) {
    if (!key.startsWith(`${cast.prefix}:`)) fault(`foreign key ${key}`);
    const name = key.replace(/^chaos:(\{\d+\}:)?/, '');
    if (
      /^(fanning_out|release_held|release_parked|release_overdue|closing|replays_active|replay_batches_active|resuming|erasures_open|erasure_progress:|erasure_events:|held:|parked:|overdue:|by_status:(pending|waiting_for_retry|held)$)/.test(
        name,
      )
    )
      fault(`left behind: ${key}`);
    if (/^deliveries:(wait|active|delayed|dlv_)/.test(name) && !(await isFailedJob(redis, key)))
      fault(`left in the queue: ${key}`);
    const lasts =
      /^(subscription:|health:|failing$|subscriptions:|subscription_changes$|topic:|topics_version$|by_status:|succeeded$|deliveries:|installation|workers|notices|audit|replays$|replays_open$|working$)/.test(
        name,
      );
    if (!lasts && (await redis.pttl(key)) === -1) fault(`never expires: ${key}`);
  }
  redis.disconnect();
}

/** The last failed jobs are kept for Bull Board. */
async function isFailedJob(redis: ReturnType<typeof connectRedis>, key: string): Promise<boolean> {
  const [, base = '', id = ''] = /^(.*:deliveries):(dlv_[^:]+)$/.exec(key) ?? [];
  return id !== '' && (await redis.zscore(`${base}:failed`, id)) !== null;
}
