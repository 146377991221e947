/** Keeps deliveries through their states: made, begun, recorded, held, parked, released, ended. Listing them is in lists.ts. */
import {
  ATTEMPT_ERRORS,
  type Attempt,
  DEFAULT_MAX_ATTEMPTS,
  DELIVERY_STATUSES,
  type Delivery,
  deliveryId,
  type Environment,
  type EventRef,
  type EventType,
  eventIdOf,
  FAILURE_REASONS,
  type FailureReason,
  isFinished,
  partitionOf,
  partitionOfId,
  type Verdict,
} from '@posthorn/core';
import {
  decodeEvent,
  decodeKind,
  encodeEvent,
  encodeKind,
  eventBase,
  keepEvent,
  type StoredEvent,
  unscopedRef,
} from './events.ts';
import { deliveryKey, eventKey, fanningOutKey, type Lane, laneIndexKey, laneKey, subscriptionKey } from './keys.ts';
import { baseOf, readRules, runScript, type Store } from './store.ts';

/** One script stays below a few milliseconds of Redis, so a large fan-out is cut into chunks. */
const CHUNK = 200;
/** In place of a generation: this delivery was not released but held. */
const HELD_NOW = -1;
/** Succeeded this soon, a delivery simply expires with its event. */
const WITH_ITS_EVENT_MS = 60_000;
/** A retry that starts this much after its time is late: its address gets a line. Where there is one, this little is enough to join it. */
const LATE_MS = 60_000;
const MISSED_MS = 250;
/**
 * How much longer than the retention what may yet be needed is kept: the event of a held delivery, so that the sweep that ends the
 * delivery finds it, and a failed delivery, so that one who wants to replay it too late is told so.
 */
const MARGIN_MS = 86_400_000;

/** A delivery's job: which delivery, and which generation of its job. A job of an older generation does nothing. */
export interface DeliveryJob {
  deliveryId: string;
  generation: number;
  subscriptionId: string;
  event: EventRef;
}

/** A job to add, and whether its delivery has had attempts before. */
export type ReleasedJob = DeliveryJob & { isRetry: boolean };

export interface CreatedDelivery {
  deliveryId: string;
  subscriptionId: string;
  /** `pending`: its first job must be added; `made`: it waits parked, or is past that; `none`: the subscription is gone. */
  state: 'pending' | 'held' | 'made' | 'none';
}

/**
 * Stores an event unless its id is taken in its environment, together with as many of its deliveries as live in its own partition:
 * with one partition that is all of them, in one step. Returns the event stored before, or the deliveries made. Until `confirmFanOut`,
 * an event whose other deliveries are still to be made stands in the list that `interruptedFanOuts` reads. With `isNewId` the id was
 * just made, so that no event stored before can have it.
 */
export async function storeEvent(
  store: Store,
  stored: StoredEvent,
  options: { withDeliveries?: boolean; isNewId?: boolean } = {},
): Promise<{ kept: StoredEvent } | { created: CreatedDelivery[] }> {
  const { ref, event, acceptedAtMs, subscriptionIds } = stored;
  const partition = partitionOf(event.id, store.partitions);
  const base = eventBase(store, ref);
  const here = subscriptionIds.filter((id) => partitionOf(id, store.partitions) === partition).slice(0, CHUNK);
  const wanted = options.withDeliveries ? here.map((id) => deliveryTo(id, ref)) : [];
  const [kept, ...rest] = (await runScript(store, 'storeEvent', base, [
    eventKey(base, ref),
    options.isNewId ? '' : eventKey(base, unscopedRef(event.id)),
    encodeEvent(stored),
    acceptedAtMs + store.retentionMs,
    wanted.length < subscriptionIds.length ? fanningOutKey(base) : '',
    ref,
    encodeKind(event),
    acceptedAtMs,
    ...streamLimits(store, acceptedAtMs),
    ...wanted.flatMap((one) => [one.subscriptionId, one.deliveryId]),
  ])) as [string, ...string[]];
  if (kept !== '') return { kept: decodeEvent(rest[0] === 'unscoped' ? unscopedRef(event.id) : ref, kept) };
  const states = rest as CreatedDelivery['state'][];
  const created = wanted.map((one, i) => ({ ...one, state: states[i]! }));
  await keepForHeld(store, stored, created);
  return { created };
}

/**
 * Makes the deliveries of an event to subscriptions that it was matched to. May be repeated: what is there is left alone.
 * `replay` makes one delivery anew, of the same event, under an id of its own.
 */
export async function createDeliveries(
  store: Store,
  stored: StoredEvent,
  replay?: { nonce: string; of: string },
): Promise<CreatedDelivery[]> {
  const { ref, event, acceptedAtMs, subscriptionIds } = stored;
  const chunks: Promise<CreatedDelivery[]>[] = [];
  for (const [partition, ids] of groupBy(subscriptionIds, (id) => partitionOf(id, store.partitions))) {
    for (let start = 0; start < ids.length; start += CHUNK) {
      const wanted = ids.slice(start, start + CHUNK).map((id) => deliveryTo(id, ref, replay?.nonce));
      const states = runScript(store, 'createDeliveries', baseOf(store, partition), [
        ref,
        encodeKind(event),
        acceptedAtMs,
        ...streamLimits(store, acceptedAtMs),
        replay?.of ?? '',
        ...wanted.flatMap((one) => [one.subscriptionId, one.deliveryId]),
      ]) as Promise<CreatedDelivery['state'][]>;
      chunks.push(states.then((all) => wanted.map((one, i) => ({ ...one, state: all[i]! }))));
    }
  }
  const created = (await Promise.all(chunks)).flat();
  await keepForHeld(store, stored, created);
  return created;
}

function deliveryTo(subscriptionId: string, event: EventRef, nonce?: string) {
  return { subscriptionId, deliveryId: deliveryId(event, subscriptionId, nonce) };
}

/** How far back a subscription's stream reaches, and how long it lives without a new entry: any delivery in it may last that long. */
export function streamLimits(store: Store, nowMs: number): [number, number] {
  const lifeMs = 2 * store.retentionMs + MARGIN_MS;
  return [Math.max(0, nowMs - lifeMs), lifeMs];
}

/** A held delivery may last as long as its event, and its end must find the event there. */
async function keepForHeld(
  store: Store,
  { ref, acceptedAtMs }: StoredEvent,
  created: CreatedDelivery[],
): Promise<void> {
  if (!created.some(({ state }) => state === 'held')) return;
  await keepEvent(store, ref, acceptedAtMs + keptWhileUnfinishedMs(store));
}

/** How late attempts are paced. */
export interface Pacing {
  /** Attempts a second to each address. */
  perSecond: number;
  /** What was due before this is paced also if it is a first attempt, or late by little; 0 for nothing. */
  dueBeforeMs: number;
}

/** What a job is to do now. */
export type Begun =
  | {
      kind: 'attempt';
      attemptNumber: number;
      event: EventRef;
      eventType: EventType;
      environment: Environment;
      subscriptionId: string;
      createdAtMs: number;
      url: string;
      sealedSecret: string;
      previousSealedSecret: string | null;
      previousSecretUntilMs: number;
    }
  /** The delivery has ended, or another job has its place: there is nothing to do. */
  | { kind: 'over' | 'superseded' }
  /** The job ran before its time, after a crash, or it is late and must wait for its turn: it is due at `dueAtMs`. */
  | { kind: 'early'; dueAtMs: number }
  /** The address is not active: the delivery is held now, and has no job. */
  | { kind: 'held' }
  | { kind: 'subscription_deleted' };

/** Decides what a job is to do, and holds the delivery if its address is not active. */
export async function beginAttempt(
  store: Store,
  job: Pick<DeliveryJob, 'deliveryId' | 'generation' | 'subscriptionId'>,
  nowMs: number,
  pacing: Pacing,
): Promise<Begun> {
  const { deliveryId: id, subscriptionId } = job;
  const base = baseOf(store, partitionOfId(id, store.partitions));
  for (;;) {
    const [delivery, address] = await Promise.all([
      store.redis.hmget(deliveryKey(base, id), 'st', 'g', 'x', 'e', 'c', 'n', 'k'),
      store.redis.hmget(
        subscriptionKey(base, subscriptionId),
        'status',
        'url',
        'secret',
        'previous_secret',
        'previous_until',
      ),
    ]);
    const [status, generation, dueAt, eventText, created, attempts, kind] = delivery;
    const event = eventText as EventRef;
    if (status == null || isFinished(DELIVERY_STATUSES[Number(status)]!)) return { kind: 'over' };
    if (Number(generation ?? 0) !== job.generation) return { kind: 'superseded' };
    if (dueAt != null && Number(dueAt) > nowMs) return { kind: 'early', dueAtMs: Number(dueAt) };
    const [addressStatus, url, secret, previousSecret, previousUntil] = address;
    if (addressStatus == null || addressStatus === 'deleted') return { kind: 'subscription_deleted' };
    if (addressStatus === 'active') {
      const wasDueAtMs = Number(dueAt ?? created);
      if (nowMs - wasDueAtMs > MISSED_MS && (dueAt != null || wasDueAtMs < pacing.dueBeforeMs)) {
        const args = [id, subscriptionId, ...pacingArguments(nowMs, pacing)];
        const dueAtMs = Number(await runScript(store, 'pace', base, args));
        if (dueAtMs > nowMs) return { kind: 'early', dueAtMs };
      }
      const { type, environment } = decodeKind(Number(kind));
      return {
        kind: 'attempt',
        attemptNumber: Number(attempts) + 1,
        event,
        eventType: type,
        environment,
        subscriptionId,
        createdAtMs: Number(created),
        url: url!,
        sealedSecret: secret!,
        previousSealedSecret: previousSecret || null,
        previousSecretUntilMs: Number(previousUntil),
      };
    }
    // Not active when we looked: held, unless that has changed since. Then we look again.
    if ((await runScript(store, 'hold', base, [id, job.generation, subscriptionId])) === 1) {
      await keepEvent(store, event, Number(created) + keptWhileUnfinishedMs(store));
      return { kind: 'held' };
    }
  }
}

export interface Recorded {
  /** `repeated`: this attempt had been recorded already; `over`: the delivery had ended meanwhile. Nothing was changed then. */
  kind: 'recorded' | 'repeated' | 'over';
  consecutiveFailures: number;
  /** Whether this failure paused the address. */
  paused: boolean;
  /** Deliveries that wait for a place at this address. */
  parked: number;
}

/**
 * Records an attempt, what it means for its delivery and for the address's consecutive failures, all at once.
 * The event's life is prolonged first, so that a failed delivery never outlives what it would replay.
 */
export async function recordAttempt(
  store: Store,
  delivery: { id: string; event: EventRef; createdAtMs: number },
  attempt: Attempt,
  verdict: Verdict,
  limits: { pauseAfter: number; maxAttempts: number },
): Promise<Recorded> {
  const endedAtMs = attempt.startedAtMs + attempt.durationMs;
  let keepUntilMs = endedAtMs + (verdict.kind === 'failed' ? keptWhileUnfinishedMs(store) : store.retentionMs);
  if (verdict.kind === 'succeeded' && endedAtMs - delivery.createdAtMs < WITH_ITS_EVENT_MS) {
    keepUntilMs = delivery.createdAtMs + store.retentionMs;
  } else {
    await keepEvent(
      store,
      delivery.event,
      verdict.kind === 'retry' ? verdict.nextAttemptAtMs + keptWhileUnfinishedMs(store) : keepUntilMs,
    );
  }
  const [kind, failures, paused, parked] = (await runScript(
    store,
    'recordAttempt',
    baseOf(store, partitionOfId(delivery.id, store.partitions)),
    [
      delivery.id,
      attempt.number,
      verdict.kind,
      encodeAttempt(attempt, delivery.createdAtMs),
      endedAtMs,
      verdict.kind === 'retry' ? verdict.nextAttemptAtMs : '',
      verdict.kind === 'failed' ? verdict.reason : '',
      keepUntilMs,
      limits.pauseAfter,
      limits.maxAttempts === DEFAULT_MAX_ATTEMPTS ? '' : limits.maxAttempts,
      store.retentionMs,
    ],
  )) as [Recorded['kind'], number, number, number];
  return { kind, consecutiveFailures: failures, paused: paused === 1, parked };
}

/**
 * Ends unfinished deliveries of one partition without an attempt; with `onlyHeld`, those that are still held. Answers the
 * jobs they may still have, for the caller to remove.
 */
export async function endDeliveries(
  store: Store,
  partition: number,
  deliveries: readonly { id: string; event: EventRef }[],
  reason: Extract<FailureReason, 'expired' | 'subscription_deleted'>,
  nowMs: number,
  options: { onlyHeld?: boolean } = {},
): Promise<Pick<DeliveryJob, 'deliveryId' | 'generation'>[]> {
  if (deliveries.length === 0) return [];
  const keepUntilMs = nowMs + keptWhileUnfinishedMs(store);
  await Promise.all(deliveries.map(({ event }) => keepEvent(store, event, keepUntilMs)));
  const ids = deliveries.map(({ id }) => id);
  const args = [
    reason,
    nowMs,
    keepUntilMs,
    store.retentionMs,
    options.onlyHeld ? DELIVERY_STATUSES.indexOf('held') : '',
    ...ids,
  ];
  const ended = (await runScript(store, 'endDeliveries', baseOf(store, partition), args)) as string[];
  return inGroupsOf(2, ended).map(([id, generation]) => ({ deliveryId: id!, generation: Number(generation) }));
}

/**
 * Parks a delivery whose address has no place free in this worker. `superseded`: it is not this job's any more. `early`: it is a
 * late retry and must wait for its turn, with its job.
 */
export async function parkDelivery(
  store: Store,
  job: DeliveryJob,
  nowMs: number,
  pacing: Pacing,
): Promise<{ kind: 'parked' | 'superseded' } | { kind: 'early'; dueAtMs: number }> {
  const base = baseOf(store, partitionOfId(job.deliveryId, store.partitions));
  const args = [job.deliveryId, job.generation, job.subscriptionId, ...pacingArguments(nowMs, pacing)];
  const answer = Number(await runScript(store, 'park', base, args));
  if (answer > 1) return { kind: 'early', dueAtMs: answer };
  return { kind: answer === 1 ? 'parked' : 'superseded' };
}

function pacingArguments(nowMs: number, { perSecond, dueBeforeMs }: Pacing): number[] {
  return [nowMs, MISSED_MS, LATE_MS, 1_000 / perSecond, dueBeforeMs];
}

/**
 * Takes up to `limit` deliveries of an address out of a lane, oldest first; the caller adds the jobs it answers. What is parked at an
 * address that is not active is held instead.
 */
export async function releaseDeliveries(
  store: Store,
  lane: Lane,
  subscriptionId: string,
  limit: number,
  nowMs: number,
): Promise<ReleasedJob[]> {
  const base = baseOf(store, partitionOf(subscriptionId, store.partitions));
  const taken = (await runScript(store, 'release', base, [lane, subscriptionId, limit])) as string[];
  const released = inGroupsOf(4, taken).map(([id, generation, event, attempts]) => ({
    deliveryId: id!,
    generation: Number(generation),
    subscriptionId,
    event: event as EventRef,
    isRetry: attempts !== '0',
  }));
  const held = released.filter(({ generation }) => generation === HELD_NOW);
  if (held.length === 0) return released;
  await Promise.all(held.map(({ event }) => keepEvent(store, event, nowMs + keptWhileUnfinishedMs(store))));
  return [];
}

/** The addresses of a partition that have deliveries to release from a lane. */
export async function addressesToRelease(store: Store, partition: number, lane: Lane): Promise<string[]> {
  return await store.redis.smembers(laneIndexKey(baseOf(store, partition), lane));
}

/** How many deliveries of an address wait in a lane. */
export async function laneLength(store: Store, lane: Lane, subscriptionId: string): Promise<number> {
  return await store.redis.zcard(
    laneKey(baseOf(store, partitionOf(subscriptionId, store.partitions)), lane, subscriptionId),
  );
}

/** Gives deliveries whose job is lost a new generation; answers the jobs to add and when they are due (0: now). */
export async function renewJobs(
  store: Store,
  partition: number,
  jobs: readonly Pick<DeliveryJob, 'deliveryId' | 'generation'>[],
): Promise<(DeliveryJob & { dueAtMs: number })[]> {
  if (jobs.length === 0) return [];
  const args = jobs.flatMap((job) => [job.deliveryId, job.generation]);
  const renewed = (await runScript(store, 'renew', baseOf(store, partition), args)) as string[];
  return inGroupsOf(5, renewed).map(([id, generation, event, subscriptionId, dueAt]) => ({
    deliveryId: id!,
    generation: Number(generation),
    event: event as EventRef,
    subscriptionId: subscriptionId!,
    dueAtMs: Number(dueAt),
  }));
}

/** A stored delivery, with the reference of its event and the generation of its job. */
export type StoredDelivery = Delivery & { event: EventRef; generation: number };

/** Deliveries by id, in the order asked for, undefined where there is none (any more). */
export async function loadDeliveries(store: Store, ids: readonly string[]): Promise<(StoredDelivery | undefined)[]> {
  if (ids.length === 0) return [];
  const [{ maxAttempts }, ...records] = await Promise.all([
    readRules(store),
    ...ids.map((id) => store.redis.hgetall(deliveryKey(baseOf(store, partitionOfId(id, store.partitions)), id))),
  ]);
  return records.map((record, i) => decodeDelivery(ids[i]!, record, maxAttempts));
}

function decodeDelivery(id: string, record: Record<string, string>, maxAttempts: number): StoredDelivery | undefined {
  if (record.st === undefined || record.e === undefined || record.s === undefined) return undefined;
  const status = DELIVERY_STATUSES[Number(record.st)]!;
  const createdAtMs = Number(record.c);
  const attemptCount = Number(record.n);
  const { type, environment } = decodeKind(Number(record.k));
  const attempts = Array.from({ length: attemptCount }, (_, i) =>
    decodeAttempt(i + 1, record[`a${i + 1}`] ?? '', createdAtMs),
  );
  const last = attempts.at(-1);
  const ended = isFinished(status);
  const lastAttemptEnd = last === undefined ? null : last.startedAtMs + last.durationMs;
  return {
    id,
    event: record.e as EventRef,
    eventId: eventIdOf(record.e as EventRef),
    eventType: type,
    environment,
    subscriptionId: record.s,
    status,
    attemptCount,
    maxAttempts: Number(record.m ?? (ended ? DEFAULT_MAX_ATTEMPTS : maxAttempts)),
    nextAttemptAtMs: record.x === undefined ? null : Number(record.x),
    replayOf: record.o ?? null,
    failureReason: FAILURE_REASONS.find((reason) => reason === record.r) ?? null,
    createdAtMs,
    finishedAtMs: record.f !== undefined ? Number(record.f) : ended ? lastAttemptEnd : null,
    attempts,
    generation: Number(record.g ?? 0),
  };
}

/** Milliseconds after creation, duration (both in base 36), status code, and the number of the error: a few bytes an attempt. */
function encodeAttempt(attempt: Attempt, createdAtMs: number): string {
  const parts = [
    (attempt.startedAtMs - createdAtMs).toString(36),
    attempt.durationMs.toString(36),
    attempt.statusCode ?? '',
    ...(attempt.error === null ? [] : [ATTEMPT_ERRORS.indexOf(attempt.error)]),
  ];
  return parts.join(',');
}

function decodeAttempt(number: number, text: string, createdAtMs: number): Attempt {
  const [offset = '0', duration = '0', statusCode, error] = text.split(',');
  return {
    number,
    startedAtMs: createdAtMs + Number.parseInt(offset, 36),
    durationMs: Number.parseInt(duration, 36),
    statusCode: statusCode ? Number(statusCode) : null,
    error: error ? (ATTEMPT_ERRORS[Number(error)] ?? null) : null,
  };
}

/** How long from now on the event of an unfinished delivery is kept, at least; how long a failed one is, with its event. */
export function keptWhileUnfinishedMs(store: Store): number {
  return store.retentionMs + Math.min(store.retentionMs, MARGIN_MS);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

function inGroupsOf<T>(size: number, flat: readonly T[]): T[][] {
  return Array.from({ length: flat.length / size }, (_, i) => flat.slice(i * size, (i + 1) * size));
}
