/**
 * The real code over a real Redis; the test controls the queue, the receivers, the clock and the death of processes.
 */
import { expect } from '@jest/globals';
import {
  type AddressEvent,
  AppError,
  DAY_MS,
  type Delivery,
  type EventRef,
  eventIdOf,
  eventRef,
  isFinished,
  nextAddressState,
  partitionOf,
  type SubscriptionEnvironment,
  type UnsentChoice,
} from '@posthorn/core';
import { closeSubscription } from '@posthorn/dispatch';
import { createLogger, createMetrics } from '@posthorn/runtime';
import type { Sender, SendResult } from '@posthorn/sender';
import { createSecretBox, newSigningSecret } from '@posthorn/signing';
import {
  allPartitions,
  cancelBatch,
  cancelErasure,
  cancelReplay,
  changeSubscription,
  confirmErasure,
  continueReplay,
  createMatcher,
  deleteSubscription,
  findEvents,
  finishFanOuts,
  listDeliveries,
  listReplays,
  loadDeliveries,
  loadErasures,
  loadSubscriptions,
  type Matcher,
  makeTestDelivery,
  newSubscription,
  partitionPrefix,
  replayDelivery,
  type Store,
  type StoredDelivery,
  saveSubscription,
  startBatch,
  startErasure,
  startReplay,
  tryNow,
} from '@posthorn/store';
import type { FakeClock } from '@posthorn/testing';
import { fakeClock, jobIdOf } from '@posthorn/testing';
import { EventTurns } from '../../apps/ingest/src/event-turns.ts';
import { InFlight } from '../../apps/ingest/src/in-flight.ts';
import { type IngestContext, ingestEvent } from '../../apps/ingest/src/ingest-event.ts';
import type { AttemptContext } from '../../apps/worker/src/attempts/attempt-delivery.ts';
import { createEventBodies } from '../../apps/worker/src/attempts/event-bodies.ts';
import { handleJob, releaseParked } from '../../apps/worker/src/attempts/handle-job.ts';
import { attemptedLine } from '../../apps/worker/src/attempts/report-attempt.ts';
import { createRequestSigner } from '../../apps/worker/src/attempts/sign-request.ts';
import { createSucceededEvents } from '../../apps/worker/src/attempts/succeeded-events.ts';
import { createUnreadableSecrets } from '../../apps/worker/src/attempts/unreadable-secrets.ts';
import { createAttemptCounts } from '../../apps/worker/src/counts.ts';
import type { DutyContext } from '../../apps/worker/src/maintenance/duty.ts';
import { createDuties } from '../../apps/worker/src/maintenance/maintenance.ts';
import { pruneIndexes } from '../../apps/worker/src/maintenance/prune-indexes.ts';
import { createWorkerMetrics } from '../../apps/worker/src/metrics.ts';
import { Slots } from '../../apps/worker/src/slots/slots.ts';
import { deliveryKey, prefixOfId } from '../../packages/store/src/keys.ts';
import { storedText } from '../stored-text.ts';
import { createConsumers, type TakeJob } from './consumers.ts';
import { explain, forget, type Model } from './explain.ts';
import { activity, createProcess, never, type Process, resend, storeOf, type Task } from './processes.ts';
import {
  isOver,
  keptUntilMs,
  type Delivery as ModelDelivery,
  mayBegin,
  type Operation,
  OVERDUE_PER_SECOND,
  operations,
  PAUSE_AFTER,
  RETRY_DELAYS_MS,
} from './rules.ts';

export const WORKERS = 2;
export const ADDRESSES = ['sub_model00000000000000a', 'sub_model00000000000000b'] as const;
const PARTITIONS = 2;
const logger = createLogger({ app: 'model', level: 'silent' });
const metrics = createWorkerMetrics(createMetrics('model'));
const PUBLISHER = { name: 'publisher', environment: 'both' } as const;
const box = createSecretBox([Buffer.alloc(32, 3)]);
const NO_FILTER = { eventType: null, error: null, failedFromMs: null, failedToMs: null };

/** `outage`: nothing could be reached at that moment, and everything can be a moment later. */
export type Outcome = 'ok' | 'error' | 'timeout' | 'outage';
const RESULTS: Record<Outcome, SendResult> = {
  ok: { kind: 'responded', statusCode: 204, ip: null },
  error: { kind: 'responded', statusCode: 500, ip: null },
  timeout: { kind: 'timed_out', isConnected: true, ip: null },
  outage: { kind: 'connection_failed', error: 'dns', detail: 'ETIMEOUT', ip: null },
};

/** The user of an event. No name is part of another one. */
const personOf = (event: number) => `person-${String(Math.floor(event / 3)).padStart(5, '0')}`;

function idOf(event: number): string {
  const hex = event.toString(16).padStart(15, '0');
  return `evt_00000000-0000-7${hex.slice(0, 3)}-8000-${hex.slice(3)}`;
}

const nameOf = ({ eventId, address }: Pick<ModelDelivery, 'eventId' | 'address'>) =>
  `${eventIdOf(eventId as EventRef)} ${address}`;

/** The keys whose expiry follows from the test's clock. */
const EXPIRING = /:(event|event_succeeded|delivery|responses|replay):/;

interface RequestInFlight {
  process: Process;
  deliveryId: string;
  answer(outcome: Outcome): void;
}

interface Worker {
  process: Process;
  context: AttemptContext;
  store: Store;
  takeJob: TakeJob;
}

export class System {
  readonly clock: FakeClock = fakeClock(Date.now());
  readonly model: Model = {
    addresses: new Map(
      ADDRESSES.map((id) => [id, { status: 'active', resuming: false, trial: null, reason: null, failures: 0 }]),
    ),
    deliveries: new Map(),
    replays: new Map(),
    operation: () => undefined,
    triedNow: new Set(),
    tryIds: new Set(),
    recorded: new Map(),
    replaced: new Set(),
    pauses: 0,
  };
  /** Requests that receivers have not responded to yet, oldest first. */
  inFlight: RequestInFlight[] = [];
  /** References of the events that publishers know to be accepted, with the addresses that existed then. */
  readonly accepted = new Map<string, string[]>();
  published = 0;
  /** Ids of the erasures that were begun, with the person whose events they erase. */
  readonly erasures: { id: string; person: string }[] = [];
  /** When each person's last event was published. */
  private readonly persons = new Map<string, number>();
  private readonly environments = new Map<string, SubscriptionEnvironment>();
  /** The addresses that got each event, whichever of the tries to publish it was stored. */
  private readonly receivers = new Map<number, string[]>();
  /** Deliveries whose job a stopped or dead process had: two attempts may be in flight at once. */
  private readonly disturbed = new Set<string>();
  /** Deliveries that a receiver accepted. */
  private readonly taken = new Set<string>();
  private readonly workers: Worker[];
  private readonly raw: Store;
  private readonly jobs: ReturnType<typeof createConsumers>;
  /** Of a long-lived ingest process, which never reads again because of the time. */
  private readonly matcher: Matcher;
  private nonce = 0;
  /** Deliveries that have outlived their event, with their times of creation. */
  private readonly outlived = new Map<string, number>();
  /** Events and addresses of the deliveries that were made and may have expired, until the event expires too. */
  private readonly made = new Set<string>();

  constructor(store: Store) {
    this.raw = store;
    this.matcher = createMatcher(store, () => 0);
    this.jobs = createConsumers(store, this.clock.now);
    this.workers = Array.from({ length: WORKERS }, () => this.newWorker());
  }

  async start(): Promise<void> {
    activity.failure = undefined;
    resend.after = undefined;
    await this.jobs.ready();
    const operator = this.processStore().store;
    for (const id of ADDRESSES) {
      const fields = {
        id,
        url: `https://${id}.example/`,
        eventTypes: 'all' as const,
        // Those of production have a single delivery.
        environment: id === ADDRESSES[0] ? ('both' as const) : ('sandbox' as const),
        description: '',
        sealedSecret: box.seal(newSigningSecret(), id),
      };
      const active = nextAddressState(newSubscription(fields, this.clock.now()), { kind: 'acceptable' });
      this.environments.set(id, fields.environment);
      this.model.operation = (now) => now;
      expect(await saveSubscription(operator, active)).toBe(true);
    }
  }

  async stop(): Promise<void> {
    for (const { process } of this.workers) process.dead = true;
    await this.jobs.close();
    // An erasure would look at them in every later story.
    await this.raw.redis.unlink(await this.raw.redis.keys(`${this.raw.prefix}:*`));
  }

  // Steps.

  /** Publishes an event with an ingest process that dies after `steps` steps, unless it has responded by then. */
  async publish(number: number, steps: number): Promise<void> {
    const { process, store } = this.processStore(steps);
    const context: IngestContext = {
      turns: new EventTurns(),
      inFlight: new InFlight(),
      store,
      matcher: this.matcher,
      logger,
      clock: this.clock,
      isSearchOn: true,
      maxEventBytes: 1_000,
      replicaWait: undefined,
      sandboxFeed: { published: () => undefined },
      quota: { count: () => undefined },
    };
    const environment = number % 2 === 0 ? 'sandbox' : 'production';
    const isWanted = (id: string) => ['both', environment].includes(this.environments.get(id)!);
    const there = (this.receivers.get(number) ?? ADDRESSES).filter(
      (id) => this.model.addresses.get(id)!.status !== 'deleted' && isWanted(id),
    );
    this.receivers.set(number, there);
    const person = personOf(number);
    this.persons.set(person, this.clock.now());
    const event = {
      id: idOf(number),
      type: 'session.approved',
      created_at: '2026-01-01T00:00:00.000Z',
      environment,
      data: { id: 's', status: 'x', metadata: { user_id: person } },
    };
    process.run(undefined, async () => {
      const { kind, event: accepted } = await ingestEvent(context, event, PUBLISHER);
      // The content of an erased event can't be compared.
      if (this.erasures.length === 0) expect(kind).not.toBe('conflict');
      const ref = eventRef(accepted);
      if (!this.accepted.has(ref)) this.accepted.set(ref, there);
    });
    await this.settle();
    process.dead = true;
  }

  /** Resumes interrupted fan-outs, as each ingest does every few seconds. */
  async sweepFanOuts(): Promise<void> {
    const { process, store } = this.processStore();
    const context = { store, clock: this.clock, logger };
    process.run(undefined, async () => {
      await finishFanOuts(context);
    });
    await this.settle();
  }

  /** A worker takes a job; it stops after `steps` steps. */
  async take(index: number, steps: number): Promise<boolean> {
    const { process, takeJob } = this.workers[index]!;
    if (process.stepsLeft !== Number.POSITIVE_INFINITY) return false;
    const { size } = process.tasks;
    const begin = await takeJob();
    if (begin) {
      process.stepsLeft = steps;
      begin();
    }
    // The script may have parked deliveries, which the worker looks at.
    if (process.tasks.size > size) await this.settle();
    this.mindJobs(process);
    return begin !== undefined;
  }

  /** A receiver responds to one of the requests in flight. */
  async answer(index: number, outcome: Outcome): Promise<void> {
    const [request] = this.inFlight.splice(index % this.inFlight.length, 1);
    if (outcome === 'ok') this.taken.add(request!.deliveryId);
    request!.answer(outcome);
    await this.settle();
    this.mindJobs(request!.process);
  }

  /** Runs each duty of maintenance once. No lease: two processes may run the same duty at once. */
  async maintain(index: number, steps: number): Promise<void> {
    const { process, context, store } = this.workers[index]!;
    if (process.stepsLeft !== Number.POSITIVE_INFINITY) return;
    process.stepsLeft = steps;
    const duties = createDuties({
      store,
      jobQueues: this.jobs.jobQueues,
      clock: context.clock,
      logger,
      secretBox: box,
      releasePerSecond: OVERDUE_PER_SECOND,
      rollbackWindowMs: 0,
    });
    process.run(undefined, async () => {
      for (let partition = 0; partition < PARTITIONS; partition++) for (const duty of duties) await duty.run(partition);
    });
    await this.settle();
    this.mindJobs(process);
  }

  /** Continues a stopped process; has no effect on a running one. */
  async goOn(index: number): Promise<void> {
    const { process } = this.workers[index]!;
    process.goOn();
    this.jobs.keep(process);
    await this.settle();
  }

  /** Kills a worker and starts another in its place. */
  kill(index: number): void {
    const { process } = this.workers[index]!;
    process.dead = true;
    this.lose(process);
    this.inFlight = this.inFlight.filter((request) => request.process !== process);
    this.workers[index] = this.newWorker();
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.jobs.putBackLost();
    if (ms >= DAY_MS) await this.expire();
  }

  /** Removes what has expired by the test's clock. Redis has its own, which is behind. */
  private async expire(): Promise<void> {
    const { redis, prefix } = this.raw;
    const keys = (await redis.keys(`${prefix}:*`)).filter((key) => EXPIRING.test(key));
    const times = await Promise.all(keys.map((key) => redis.pexpiretime(key)));
    const gone = keys.filter((_, i) => times[i]! > 0 && times[i]! <= this.clock.now());
    if (gone.length === 0) return;
    await redis.unlink(gone);
    for (const [id, one] of this.model.deliveries) if (!this.hasOutlivedEvent(id, one)) this.made.add(nameOf(one));
    for (const key of gone) {
      const [, ref] = /:event:(.+)$/.exec(key) ?? [];
      if (ref === undefined) continue;
      for (const [id, one] of this.model.deliveries) {
        if (one.eventId !== ref || this.hasOutlivedEvent(id, one)) continue;
        expect([id, one, keptUntilMs(one) <= this.clock.now()]).toEqual([id, one, true]);
        this.outlived.set(id, one.createdAtMs);
      }
    }
    for (const [id, one] of this.model.deliveries) {
      if (!isOver(one) || keptUntilMs(one) > this.clock.now()) continue;
      if ((await redis.exists(deliveryKey(prefixOfId(this.raw, id), id))) === 0) forget(this.model, id);
    }
    for (let number = 0; number < this.published; number++) {
      const id = idOf(number);
      if ((await findEvents(this.raw, id)).length > 0) continue;
      this.receivers.delete(number);
      for (const [ref, addresses] of this.accepted) {
        if (eventIdOf(ref as EventRef) !== id) continue;
        for (const address of addresses) this.expectMade(ref, address);
        this.accepted.delete(ref);
      }
      for (const address of ADDRESSES) this.made.delete(`${id} ${address}`);
    }
  }

  private hasOutlivedEvent(id: string, { createdAtMs }: ModelDelivery): boolean {
    return this.outlived.get(id) === createdAtMs;
  }

  private expectMade(ref: string, address: string): void {
    const made = this.made.has(nameOf({ eventId: ref, address }));
    // An address that was deleted between matching and making gets no delivery.
    const gone = this.model.addresses.get(address)!.status === 'deleted';
    expect([ref, address, made || gone]).toEqual([ref, address, true]);
  }

  /** Sends a test delivery, with a console that dies after `steps` steps. */
  async test(address: string, steps: number): Promise<void> {
    const [subscription] = await loadSubscriptions(this.raw, [address]);
    if (subscription?.status !== 'active') return;
    const request = { environment: undefined, operator: 'model', trace: undefined };
    await this.call(steps, async (store) => {
      const context = { store, clock: this.clock, logger };
      await makeTestDelivery(context, subscription, request, this.clock.now());
    });
  }

  /** Binds an address to an environment. */
  async listen(address: string, environment: SubscriptionEnvironment): Promise<void> {
    this.model.operation = (now) => now;
    await this.call(Number.POSITIVE_INFINITY, async (store) => {
      if (await changeSubscription(store, address, (now) => ({ ...now, environment })))
        this.environments.set(address, environment);
    });
  }

  async rotate(address: string): Promise<void> {
    this.model.operation = (now) => now;
    const sealedSecret = box.seal(newSigningSecret(), address);
    const next = { sealedSecret, previousSecretUntilMs: this.clock.now() + DAY_MS };
    await this.call(Number.POSITIVE_INFINITY, async (store) => {
      await changeSubscription(store, address, (now) => ({
        ...now,
        ...next,
        previousSealedSecret: now.sealedSecret,
      }));
    });
  }

  /** Begins the erasure of a person's events, with a console that dies after `steps` steps. */
  async erase(which: number, unsent: UnsentChoice, isConfirmed: boolean, steps: number): Promise<void> {
    const person = personOf(which % this.published);
    const seal = (id: string) => {
      this.erasures.push({ id, person });
      return box.seal(person, id);
    };
    const wanted = { field: 'user_id', environment: undefined, unsent, valueHmac: 'h', seal, isConfirmed } as const;
    await this.call(steps, async (store) => void (await startErasure(store, wanted, this.clock.now(), 'model')));
  }

  /** Confirms or cancels one of the erasures, with a console that dies after `steps` steps. */
  async decideErasure(which: number, what: 'confirm' | 'cancel', unsent: UnsentChoice, steps: number): Promise<void> {
    const [erasure] = await loadErasures(this.raw, [this.erasures[which % this.erasures.length]!.id]);
    if (!erasure) return;
    await this.call(steps, async (store) => {
      if (what === 'confirm') await confirmErasure(store, erasure, unsent, this.clock.now(), 'model');
      else await cancelErasure(store, erasure, this.clock.now());
    });
  }

  async operate(address: string, operation: Operation): Promise<void> {
    const { store } = this.processStore();
    const rule = operations[operation];
    const before = this.model.addresses.get(address)!;
    if (before.status === 'deleted') return;
    this.model.operation = rule;
    const event: AddressEvent = operation === 'refused' ? { kind: operation, reason: 'redirect' } : { kind: operation };
    const changed = changeSubscription(store, address, (now) => nextAddressState(now, event));
    if (rule(before) === undefined) await expect(changed).rejects.toThrow(AppError);
    else await changed;
  }

  async remove(address: string, steps: number): Promise<void> {
    const nowMs = this.clock.now();
    await this.call(steps, async (store) => {
      await deleteSubscription(store, address, nowMs, { operator: 'model' });
      await closeSubscription(store, address, nowMs);
    });
  }

  /** Replays one of the failed deliveries, or sometimes another one, with a console that dies after `steps` steps. */
  async replay(which: number, steps: number): Promise<void> {
    const all = [...this.model.deliveries.keys()];
    const failed = all.filter((id) => this.model.deliveries.get(id)!.status === 'failed');
    const among = which % 8 === 0 ? all : failed;
    const id = among[which % among.length]!;
    const nonce = String(this.nonce++);
    await this.call(steps, async (store) => {
      const [present] = await loadDeliveries(store, [id]);
      if (present) await replayDelivery(store, present, this.clock.now(), 'model', nonce);
    });
  }

  /**
   * Tries one of the waiting deliveries now, or sometimes another one, with a console that dies after `steps` steps.
   */
  async tryNow(which: number, steps: number): Promise<void> {
    const all = [...this.model.deliveries.keys()];
    const waiting = all.filter((id) => this.model.deliveries.get(id)!.status === 'waiting_for_retry');
    const among = which % 8 === 0 || waiting.length === 0 ? all : waiting;
    await this.call(steps, async (store) => {
      await tryNow(store, among[which % among.length]!, this.clock.now(), { operator: 'model' });
    });
  }

  async replayAll(address: string, canary: boolean): Promise<void> {
    const { store } = this.processStore();
    const nowMs = this.clock.now();
    const wanted = { subscriptionId: address, fromMs: 0, toMs: nowMs, filter: NO_FILTER, canary };
    await startReplay(store, wanted, nowMs, 'model');
  }

  /** Replays all failed deliveries of all addresses, with a console that dies after `steps` steps. */
  async replayBatch(canary: boolean, steps: number): Promise<void> {
    const nowMs = this.clock.now();
    const wanted = { subscriptionIds: ADDRESSES, fromMs: 0, toMs: nowMs, filter: NO_FILTER, canary };
    await this.call(steps, async (store) => {
      await startBatch(store, wanted, nowMs, 'model');
    });
  }

  /**
   * Cancels or continues one of the bulk replays, or cancels its whole batch, with a console that dies after `steps`
   * steps.
   */
  async decide(which: number, decision: 'cancel' | 'cancelBatch' | 'continue', steps: number): Promise<void> {
    const { items } = await listReplays(this.raw, {}, { limit: 20 });
    const one = items[which % Math.max(1, items.length)];
    if (!one) return;
    const nowMs = this.clock.now();
    await this.call(steps, async (store) => {
      if (decision === 'continue') await continueReplay(store, one.id, nowMs, 'model');
      else if (decision === 'cancel' || one.batchId === null) await cancelReplay(store, one.id, nowMs, 'model');
      else await cancelBatch(store, one.batchId, nowMs, 'model');
    });
  }

  /** Runs maintenance, workers and receivers for some rounds; receivers respond with `outcome`. */
  async live(rounds: number, outcome: Outcome): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      await this.maintain(round % WORKERS, Number.POSITIVE_INFINITY);
      const hasDue = async () => ((await this.jobs.nextDueAtMs()) ?? Number.POSITIVE_INFINITY) <= this.clock.now();
      const takeAny = async () =>
        (await this.take(0, Number.POSITIVE_INFINITY)) || (await this.take(1, Number.POSITIVE_INFINITY));
      while ((await hasDue()) && (await takeAny()));
      while (this.inFlight.length > 0) await this.answer(0, outcome);
      const dueInMs = ((await this.jobs.nextDueAtMs()) ?? 0) - this.clock.now();
      await this.advance(dueInMs > 0 ? dueInMs : 31_000);
    }
  }

  // Checks.

  /** Checks that the stored state follows the rules. */
  async check(): Promise<void> {
    if (activity.failure !== undefined) throw activity.failure;
    const { deliveries, addresses } = this.model;
    const ids = [...deliveries.keys()];
    const stored = await loadDeliveries(this.raw, ids);
    // An attempt of the delivery before may be recorded for the new one, if its worker stood still for a month. Its
    // times then count from the wrong creation.
    const hasExactEnd = (id: string) => !this.model.replaced.has(id);
    const seen = stored.map(
      (one) =>
        one && [
          one.id,
          one.status,
          one.attemptCount,
          one.nextAttemptAtMs,
          hasExactEnd(one.id) ? one.finishedAtMs : null,
          one.failureReason,
          one.erased,
          one.createdAtMs,
        ],
    );
    // A record that is kept for a replay hides its delivery, once that would have expired.
    const isHidden = (one: ModelDelivery, i: number) =>
      stored[i] === undefined && isOver(one) && keptUntilMs(one) + DAY_MS <= this.clock.now();
    const shown = [...deliveries].filter(([, one], i) => !isHidden(one, i));
    expect(seen.filter((_, i) => !isHidden(deliveries.get(ids[i]!)!, i))).toEqual(
      shown.map(([id, one]) => [
        id,
        one.status,
        one.attempts,
        one.dueAtMs,
        hasExactEnd(id) ? one.endedAtMs : null,
        one.reason,
        one.erased,
        one.createdAtMs,
      ]),
    );
    for (const [id, address] of addresses) {
      const [found] = await loadSubscriptions(this.raw, [id]);
      const expected =
        address.status === 'deleted' ? undefined : [address.status, address.resuming, address.reason, address.failures];
      expect(found && [found.status, found.resuming, found.statusReason, found.consecutiveFailures]).toEqual(expected);
    }
    await this.checkIndexes();
    await this.checkPlaces(stored.filter((one) => one !== undefined));
    await this.checkEvents();
  }

  /** Checks that each event is kept as long as any of its deliveries may need it. */
  private async checkEvents(): Promise<void> {
    const dependent = [...this.model.deliveries].filter(([id, one]) => !this.hasOutlivedEvent(id, one));
    const byEvent = Map.groupBy(dependent, ([, { eventId }]) => eventId);
    for (const [ref, deliveries] of byEvent) {
      const prefix = partitionPrefix(this.raw, partitionOf(eventIdOf(ref as EventRef), PARTITIONS));
      const expiryMs = await this.raw.redis.pexpiretime(`${prefix}:event:${ref}`);
      // The record of an unfinished delivery has no expiry, and it may have its event too.
      const untilMs = expiryMs === -1 ? Number.POSITIVE_INFINITY : expiryMs;
      const neededUntilMs = Math.max(...deliveries.map(([, delivery]) => keptUntilMs(delivery)));
      expect([ref, Math.min(untilMs, neededUntilMs)]).toEqual([ref, neededUntilMs]);
    }
  }

  /** Checks that each unfinished delivery waits: with a job, or in a lane. One that is held is in no other lane. */
  private async checkPlaces(stored: readonly StoredDelivery[]): Promise<void> {
    const jobs = new Set(await this.jobs.jobs());
    const lanes = await Promise.all(
      ADDRESSES.flatMap((id) => {
        const prefix = partitionPrefix(this.raw, partitionOf(id, PARTITIONS));
        return (['held', 'parked', 'overdue'] as const).map(async (lane) => ({
          lane,
          ids: new Set(await this.raw.redis.zrange(`${prefix}:${lane}:${id}`, '0', '-1')),
        }));
      }),
    );
    for (const { id, status, generation } of stored.filter((one) => !isFinished(one.status))) {
      const places: string[] = lanes.filter(({ ids }) => ids.has(id)).map(({ lane }) => lane);
      if (jobs.has(jobIdOf({ deliveryId: id, generation }))) places.push('job');
      if (status === 'held') expect([id, places.filter((place) => place !== 'job')]).toEqual([id, ['held']]);
      else expect([id, places]).not.toEqual([id, []]);
    }
  }

  private async checkIndexes(): Promise<void> {
    const pruning = pruneIndexes({ store: this.raw, clock: this.clock } as unknown as DutyContext);
    for (let partition = 0; partition < PARTITIONS; partition++) await pruning.run(partition);
    const all = [...this.model.deliveries];
    const partitionPrefixes = Array.from({ length: PARTITIONS }, (_, i) => partitionPrefix(this.raw, i));
    const members = async (key: string) =>
      (
        await Promise.all(
          partitionPrefixes.map((partitionPrefix) => this.raw.redis.zrange(`${partitionPrefix}:${key}`, '0', '-1')),
        )
      )
        .flat()
        .sort();
    const inStream = async (prefixes: string[]) => {
      const streams = await Promise.all(prefixes.map((each) => this.raw.redis.xrange(`${each}:succeeded`, '-', '+')));
      return streams.flat().map(([, [, end = '']]) => `dlv_${end}`);
    };
    for (const status of ['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed']) {
      const expected = all.filter(([, one]) => one.status === status).map(([id]) => id);
      const found = await members(`by_status:${status}`);
      if (status === 'succeeded') found.push(...(await inStream(partitionPrefixes)));
      expect([status, found.sort()]).toEqual([status, expected.sort()]);
    }
    for (const [address, { status }] of this.model.addresses) {
      // What a deletion has not removed yet may still be there.
      if (status === 'deleted') continue;
      const held = all.filter(([, one]) => one.address === address && one.status === 'held').map(([id]) => id);
      expect(['held', await members(`held:${address}`)]).toEqual(['held', held.sort()]);
    }
  }

  /** From now on nothing fails: everything must finish by itself, and every guarantee must hold. */
  async comeToRest(): Promise<void> {
    for (let i = 0; i < WORKERS; i++) this.kill(i);
    const left = async () => {
      const keys = [
        'closing',
        'release_held',
        'release_parked',
        'release_overdue',
        'replays_active',
        'replay_batches_active',
        'resuming',
        'fanning_out',
        'erasures_open',
      ];
      const partitionPrefixes = Array.from({ length: PARTITIONS }, (_, i) => partitionPrefix(this.raw, i));
      const all = partitionPrefixes.flatMap((partitionPrefix) => keys.map((key) => `${partitionPrefix}:${key}`));
      const there = await Promise.all(all.map((key) => this.raw.redis.exists(key)));
      const unfinished = [...this.model.deliveries].filter(([, one]) => !isOver(one)).map(([id]) => id);
      return [...unfinished, ...(await this.jobs.jobs()), ...all.filter((_, i) => there[i] === 1)];
    };
    for (let round = 0; round < 400; round++) {
      await this.sweepFanOuts();
      for (const address of ADDRESSES) {
        if (this.model.addresses.get(address)!.status === 'paused') await this.operate(address, 'resumed');
        else await this.operate(address, 'acceptable');
      }
      // Whoever asked for it confirms it, unless it is cancelled by now.
      for (const i of this.erasures.keys()) await this.decideErasure(i, 'confirm', 'end', Number.POSITIVE_INFINITY);
      await this.live(1, 'ok');
      if ((await left()).length === 0) break;
    }
    await this.check();
    expect(await left()).toEqual([]);
    await this.checkPromises();
    await this.checkErasures();
  }

  /** Nothing that is stored names a person who was erased and had no event since. */
  private async checkErasures(): Promise<void> {
    const redis = this.raw.redis;
    const stored = await storedText(redis, this.raw.prefix);
    const erasures = await loadErasures(
      this.raw,
      this.erasures.map(({ id }) => id),
    );
    for (const [i, erasure] of erasures.entries()) {
      if (!erasure || erasure.status === 'cancelled') continue;
      expect(erasure.status).toBe('done');
      const { person } = this.erasures[i]!;
      if (this.persons.get(person)! < erasure.confirmedAtMs!)
        expect([person, stored.includes(person)]).toEqual([person, false]);
    }
  }

  /**
   * Every bulk replay of which something is left counts the outcome of its deliveries, and has decided about each
   * failed one.
   */
  private async checkReplays(): Promise<void> {
    const { items } = await listReplays(this.raw, {}, { limit: 250 });
    for (const { id, status, total, replayed, skipped, outcome } of items) {
      expect(['done', 'failed', 'halted', 'cancelled']).toContain(status);
      expect([id, outcome.waiting, outcome.unknown]).toEqual([id, 0, 0]);
      if (status === 'done') expect([id, replayed + skipped]).toEqual([id, total]);
      const made = await listDeliveries(this.raw, { replayId: id }, { limit: 250 });
      const count = (wanted: (delivery: Delivery) => boolean) => made.items.filter(wanted).length;
      // What has succeeded is kept for a shorter time than the replay, and a replay may go on for long.
      expect(outcome.delivered).toBeGreaterThanOrEqual(count((one) => one.status === 'succeeded'));
      const cancelled = count((one) => one.failureReason === 'cancelled');
      if (made.items.length === replayed) expect(outcome.cancelled).toBe(cancelled);
      else expect(outcome.cancelled).toBeGreaterThanOrEqual(cancelled);
    }
  }

  private async checkPromises(): Promise<void> {
    await this.checkReplays();
    const deliveries = [...this.model.deliveries];
    for (const [id, one] of deliveries) if (!this.hasOutlivedEvent(id, one)) this.made.add(nameOf(one));
    for (const [ref, addresses] of this.accepted) for (const address of addresses) this.expectMade(ref, address);
    const stored = await loadDeliveries(
      this.raw,
      deliveries.map(([id]) => id),
    );
    for (const one of stored.filter((each) => each !== undefined)) {
      if (one.status === 'succeeded') expect(this.taken.has(one.id)).toBe(true);
      else if (one.failureReason === 'status' || one.failureReason === 'timeout') expect(one.attemptCount).toBe(6);
      else expect(['expired', 'subscription_deleted', 'cancelled', 'erased']).toContain(one.failureReason);
      // A cancellation ends only what was never sent; a worker that died may have sent it.
      if (one.failureReason === 'cancelled' && !this.disturbed.has(one.id)) expect(this.taken.has(one.id)).toBe(false);
      for (const [i, attempt] of one.attempts.slice(1).entries()) {
        const before = one.attempts[i]!;
        if (this.model.triedNow.has(`${one.id} ${i + 2}`) || this.model.replaced.has(one.id)) continue;
        const gapMs = attempt.startedAtMs - (before.startedAtMs + before.durationMs);
        expect(gapMs).toBeGreaterThanOrEqual(RETRY_DELAYS_MS[i]!);
      }
    }
  }

  // Construction.

  /** Makes a call of a process that dies after `steps` steps. */
  private async call(steps: number, work: (store: Store) => Promise<void>): Promise<void> {
    const { process, store } = this.processStore(steps);
    process.run(undefined, () => work(store));
    await this.settle();
    process.dead = true;
  }

  /** A process of ingest, the console or an operator that stops after `steps` steps. */
  private processStore(steps = Number.POSITIVE_INFINITY) {
    const process = createProcess();
    process.stepsLeft = steps;
    return { process, store: storeOf(this.raw, process, this.observe) };
  }

  private readonly observe = (command: string, args: readonly unknown[], answer: unknown): void => {
    const [, script] = /^script_(\w+)$/.exec(command) ?? [];
    if (!script) return;
    try {
      explain(this.model, script, args.flat().map(String), answer);
    } catch (error) {
      activity.failure ??= error;
    }
  };

  private newWorker(): Worker {
    const { process, store } = this.processStore();
    let outageEndedAtMs = 0;
    const context: AttemptContext = {
      store,
      sender: { send: never, close: () => undefined },
      logAttempted: attemptedLine(logger),
      signRequest: createRequestSigner(box),
      unreadableSecrets: createUnreadableSecrets(this.clock, logger),
      eventBodies: createEventBodies(store),
      slots: new Slots({ total: 4, perAddress: 2, perHost: 2, now: () => this.clock.now(), shortWaitMs: 0 }),
      metrics,
      counts: createAttemptCounts(store, this.clock),
      succeededEvents: createSucceededEvents(store, this.clock),
      tail: { attempted: () => undefined },
      clock: this.clock,
      logger,
      retryDelaysMs: RETRY_DELAYS_MS,
      limits: { pauseAfter: PAUSE_AFTER, maxAttempts: RETRY_DELAYS_MS.length + 1 },
      excerptBytes: 1_024,
      sendsTraceparent: false,
      giveUp: new AbortController().signal,
      onError(error) {
        activity.failure ??= error;
      },
      outages: {
        current: () => undefined,
        endedAtMs: () => outageEndedAtMs,
        isOurs: async (result) => {
          if (result !== RESULTS.outage) return false;
          outageEndedAtMs = this.clock.now();
          return true;
        },
      },
    };
    const takeJob = this.jobs.consumerOf({
      process,
      store,
      view: {
        knownEvent: context.eventBodies.latest,
        room: () => ({ ...context.slots.room(), dueBeforeMs: outageEndedAtMs }),
        parked: (ids) => process.run(undefined, () => releaseParked(context, ids)),
      },
      handle: async (job, taken, task) => {
        const sender = this.senderOf(process, task);
        const outcome = await handleJob({ ...context, sender }, job, taken);
        await Promise.all(allPartitions(store).map(context.succeededEvents.flush));
        return outcome;
      },
    });
    return { process, context, store, takeJob };
  }

  /** The sender of one job, whose requests get their response from `answer`. */
  private senderOf(process: Process, task: Task): Sender {
    const deliveryId = task.deliveryId!;
    const send: Sender['send'] = async ({ mayStart }) => {
      if (!mayStart!()) return { kind: 'aborted', ip: null };
      const delivery = this.model.deliveries.get(deliveryId)!;
      // An attempt begins by the rules, unless its process was stopped after it had read the record.
      if (!task.stoodStill) {
        const address = this.model.addresses.get(delivery.address)!;
        expect([delivery, mayBegin(deliveryId, delivery, address, this.clock.now())]).toEqual([delivery, true]);
      }
      const twice = this.inFlight.some((request) => request.deliveryId === deliveryId);
      expect([deliveryId, twice && !this.disturbed.has(deliveryId) && !this.model.replaced.has(deliveryId)]).toEqual([
        deliveryId,
        false,
      ]);
      const outcome = await new Promise<Outcome>((answer) => {
        this.inFlight.push({ process, deliveryId, answer });
      });
      return RESULTS[outcome];
    };
    return { send, close: () => undefined };
  }

  private lose(process: Process): void {
    for (const { deliveryId } of process.tasks) if (deliveryId) this.disturbed.add(deliveryId);
    this.jobs.lose(process);
  }

  /** A stopped worker keeps no job for long; one that has taken all its steps runs normally again. */
  private mindJobs(process: Process): void {
    if (process.stepsLeft > 0) process.stepsLeft = Number.POSITIVE_INFINITY;
    else this.lose(process);
  }

  /** Waits until every process is stopped, waits for a receiver, or has nothing to do. */
  private async settle(): Promise<void> {
    for (let quiet = 0, seen = -1; quiet < 2; ) {
      await this.raw.redis.ping();
      await new Promise((resolve) => setImmediate(resolve));
      quiet = seen === activity.steps && activity.underWay === 0 ? quiet + 1 : 0;
      seen = activity.steps;
    }
  }
}
