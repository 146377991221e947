/** Deliveries that find no free slot, on a real Redis. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type DeliveryJob, type Event, eventRef, newEventId } from '@posthorn/core';
import { type Claim, createJobQueues, type JobQueues } from '@posthorn/queue';
import { createLogger, createMetrics, systemClock } from '@posthorn/runtime';
import { createSender, parseNetworks } from '@posthorn/sender';
import { createSecretBox, SealBroken } from '@posthorn/signing';
import {
  changeSubscription,
  connectRedis,
  endDeliveries,
  type FoundJob,
  laneLength,
  loadDeliveries,
  newSubscription,
  openStore,
  type Store,
  saveSubscription,
  storeEvent,
  takeJobs,
} from '@posthorn/store';
import { eventually, fakeClock, HUNG_MS, startReceiver, testPrefix, testRedisUrl } from '@posthorn/testing';
import { createAttemptCounts } from '../counts.ts';
import { createWorkerMetrics } from '../metrics.ts';
import { Slots } from '../slots/slots.ts';
import type { AttemptContext } from './attempt-delivery.ts';
import type { TakenJob } from './attempt-in-flight.ts';
import { createEventBodies } from './event-bodies.ts';
import { handleJob } from './handle-job.ts';
import { attemptedLine } from './report-attempt.ts';
import { createRequestSigner } from './sign-request.ts';
import { createSucceededEvents } from './succeeded-events.ts';
import { createUnreadableSecrets } from './unreadable-secrets.ts';

let context: AttemptContext;
let store: Store;
let jobQueues: JobQueues;
let close: () => Promise<void>;
/** No name resolves: receivers are at IPs. */
const resolve = async () => [];

beforeEach(async () => {
  const onError = (error: Error) => {
    throw error;
  };
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: testPrefix(), PARTITIONS: 1, RETENTION: 3_600_000 };
  const storage = openStore(settings, { onError });
  await storage.start();
  store = storage.store;
  const queueRedis = connectRedis(settings);
  jobQueues = createJobQueues({ redis: queueRedis, partitionPrefixes: storage.partitionPrefixes, onError });
  const secretBox = createSecretBox([Buffer.alloc(32, 1)]);
  const giveUp = new AbortController().signal;
  const logger = createLogger({ app: 'test', level: 'silent' });
  context = {
    store,
    sender: createSender({
      timeoutMs: 1_000,
      userAgent: 'test',
      resolve,
      allowedNetworks: [],
      signal: giveUp,
      onConnected: () => undefined,
    }),
    logAttempted: attemptedLine(logger),
    signRequest: createRequestSigner(secretBox),
    unreadableSecrets: createUnreadableSecrets(systemClock, logger),
    eventBodies: createEventBodies(store),
    slots: new Slots({ total: 1, perAddress: 1, perHost: 1, now: () => performance.now() }),
    outages: { current: () => undefined, endedAtMs: () => 0, isOurs: async () => false },
    metrics: createWorkerMetrics(createMetrics('worker')),
    counts: createAttemptCounts(store, systemClock),
    succeededEvents: createSucceededEvents(store, systemClock),
    tail: { attempted: () => undefined },
    clock: systemClock,
    logger,
    retryDelaysMs: [],
    limits: { pauseAfter: 20, maxAttempts: 1 },
    excerptBytes: 1_024,
    sendsTraceparent: false,
    giveUp,
    onError,
  };
  close = async () => {
    await jobQueues.close();
    queueRedis.disconnect();
    context.sender.close();
    for (const key of await store.redis.keys(`${store.prefix}:*`)) await store.redis.del(key);
    await storage.stop();
  };
});
afterEach(() => close());

/** Stores an active subscription and a delivery to it, and takes its first job. */
async function pendingJob(url = 'https://example.com/') {
  const nowMs = Date.now();
  const fields = { url, eventTypes: 'all', environment: 'both', description: '' } as const;
  const fresh = newSubscription({ ...fields, sealedSecret: 'sealed' }, nowMs);
  await saveSubscription(store, { ...fresh, status: 'active', takesEvents: true });
  return await deliver(fresh.id, newEventId(nowMs));
}

/** Stores an event with this id and its delivery to the address, and takes its first job. */
async function deliver(subscriptionId: string, eventId: string): Promise<{ job: DeliveryJob; found: FoundJob }> {
  const nowMs = Date.now();
  const event: Event = {
    id: eventId,
    type: 'session.created',
    createdAt: new Date(nowMs).toISOString(),
    environment: 'sandbox',
    dataJson: '{"id":"s"}',
  };
  const ref = eventRef(event);
  const stored = { ref, event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  const result = await storeEvent(store, stored, { withDeliveries: true });
  const [created] = 'created' in result ? result.created : [];
  const job = { deliveryId: created!.deliveryId, generation: 0, subscriptionId, event: ref };
  const [taken] = await takeJobs(store, [{ partition: 0, token: TOKEN, limit: 1 }], [], LOCK);
  const { job: found } = (taken as { job: FoundJob }[])[0]!;
  return { job, found };
}

const TOKEN = 'token';
const LOCK = { lockMs: HUNG_MS, nowMs: Date.now() };
const SURE: Claim = { isSure: () => true, confirm: async () => true };

/** Handles a job that `pendingJob` has taken, and takes no further one. */
function handle(job: DeliveryJob, { claim = SURE, found }: Partial<TakenJob> = {}) {
  const lock = { ...LOCK, jobId: job.deliveryId, token: TOKEN, nextToken: undefined };
  return handleJob(context, job, { found, claim, end: (move) => move(lock, 0) });
}

/** Waits until a delivery of the address has left its lane. */
const untilReleased = ({ subscriptionId }: DeliveryJob) =>
  eventually('the release', async () => (await laneLength(store, 'parked', subscriptionId)) === 0);

it('parks a delivery whose address has no free slot', async () => {
  const { job } = await pendingJob();
  context.slots.acquire(job.subscriptionId);
  expect(await handle(job)).toEqual({ kind: 'done' });
  expect(await laneLength(store, 'parked', job.subscriptionId)).toBe(1);
  expect(await jobQueues.counts()).toMatchObject({ waiting: 0 });
});

it('releases a delivery again if its slot became free before it was in the lane', async () => {
  const { job } = await pendingJob();
  const slot = context.slots.acquire(job.subscriptionId)!;
  const handled = handle(job);
  // The job has been refused, and its delivery is on its way into the lane: nobody else will release it.
  expect(context.slots.release(slot, false, 0)).toEqual([]);
  expect(await handled).toEqual({ kind: 'done' });
  await untilReleased(job);
  expect(await jobQueues.counts()).toMatchObject({ waiting: 1 });
});

it('releases what waits for the slot of an attempt that ends with an error', async () => {
  const [{ job }, { job: waiting }] = [await pendingJob(), await pendingJob()];
  const sending = Promise.withResolvers<never>();
  const send = jest.fn(() => sending.promise);
  context.sender = { ...context.sender, send };
  context.signRequest = () => ({ url: 'https://example.com/', headers: {}, body: '' });
  const handled = handle(job);
  await eventually('the attempt to begin', () => send.mock.calls.length === 1);
  expect(await handle(waiting)).toEqual({ kind: 'done' });
  expect(await laneLength(store, 'parked', waiting.subscriptionId)).toBe(1);
  sending.reject(new Error('a bug'));
  await expect(handled).rejects.toThrow('a bug');
  await untilReleased(waiting);
  expect(context.counts.inFlight).toBe(0);
});

it('keeps no slot for a parked delivery that follows it but whose event can not be read', async () => {
  const { job, found } = await pendingJob();
  const { job: parked } = await deliver(job.subscriptionId, 'order-1');
  const slot = context.slots.acquire(job.subscriptionId)!;
  expect(await handle(parked)).toEqual({ kind: 'done' });
  context.slots.release(slot, undefined, 0);
  const eventKey = `${store.prefix}:{0}:event:${parked.event}`;
  await store.redis.del(eventKey);
  await store.redis.rpush(eventKey, 'of another type');
  context.sender = { ...context.sender, send: async () => ({ kind: 'responded', statusCode: 200, ip: null }) };
  context.signRequest = () => ({ url: 'https://example.com/', headers: {}, body: '' });
  let followed: readonly FoundJob[] = [];
  const lock = { ...LOCK, jobId: job.deliveryId, token: TOKEN, nextToken: undefined, laneToken: 'lane' };
  const end: TakenJob['end'] = async (move) => {
    const ended = await move(lock, 1);
    followed = ended.parkedJobs ?? [];
    return ended;
  };
  expect(await handleJob(context, job, { found, claim: SURE, end })).toEqual({ kind: 'done' });
  // The queue reports it, and hands it to nobody.
  expect(followed).toMatchObject([{ error: expect.any(Error) }]);
  expect(context.slots.acquire(job.subscriptionId)).toBeDefined();
});

it('ends no process if the event can not be read while Redis fails', async () => {
  const { job, found } = await pendingJob();
  const redis = new Proxy(store.redis, {
    get: (target, name) =>
      name === 'script_parkOverdue'
        ? () => Promise.reject(new Error('Redis has failed'))
        : (Reflect.get(target, name) as unknown),
  });
  context.store = { ...store, redis };
  // Its attempt is overdue, so Redis is asked while the event is decoded.
  context.outages = { ...context.outages, endedAtMs: () => Date.now() + 1_000 };
  await expect(handle(job, { found: { ...found, event: 'of another program' } })).rejects.toThrow();
  // At the end of this turn, Node throws a rejection that nobody has handled.
  await new Promise(setImmediate);
});

it('does not count an attempt if the process must stop while a probe looks for an outage: it is made again', async () => {
  const { job } = await pendingJob();
  const stop = new AbortController();
  context.giveUp = stop.signal;
  context.sender = { ...context.sender, send: async () => ({ kind: 'timed_out', isConnected: false, ip: null }) };
  context.signRequest = () => ({ url: 'https://example.com/', headers: {}, body: '' });
  const isOurs = jest.fn(() => new Promise<boolean>(() => undefined));
  context.outages = { ...context.outages, isOurs };
  const handled = handle(job);
  await eventually('the probe', () => isOurs.mock.calls.length === 1);
  stop.abort();
  expect(await handled).toMatchObject({ kind: 'snoozed' });
  expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ status: 'pending', attemptCount: 0 }]);
});

it('has its own outcome, and is over, whatever becomes of a release that it asks for', async () => {
  const { job } = await pendingJob();
  const slot = context.slots.acquire(job.subscriptionId)!;
  const release = Promise.withResolvers<never>();
  const asked = jest.spyOn(store.redis as unknown as { script_release(): Promise<never> }, 'script_release');
  asked.mockReturnValueOnce(release.promise);
  const reported = jest.fn();
  context.onError = reported;
  const handled = handle(job);
  context.slots.release(slot, false, 0);
  expect(await handled).toEqual({ kind: 'done' });
  await eventually('the release to be asked for', () => asked.mock.calls.length === 1);
  release.reject(new Error('a bug'));
  await eventually('the error to be reported', () => reported.mock.calls.length === 1);
});

it('tries deliveries that it can not sign again later the longer that lasts, and logs it once in that time', async () => {
  const clock = fakeClock(1_000_000);
  const logged = jest.fn();
  context.unreadableSecrets = createUnreadableSecrets(clock, { error: logged });
  const { job } = await pendingJob();
  const waits = async (ms: number) => {
    clock.advance(ms);
    expect(await handle(job)).toEqual({ kind: 'snoozed', untilMs: expect.any(Number) });
    const { untilMs } = (await handle(job)) as { untilMs: number };
    return untilMs - clock.now();
  };
  expect(await waits(0)).toBe(15_000);
  expect(logged.mock.calls).toEqual([
    [{ err: expect.any(SealBroken), subscription_id: job.subscriptionId }, 'secret.unreadable'],
  ]);
  expect(await waits(15_000)).toBe(15_000);
  expect(await waits(25_000)).toBe(40_000);
  expect(logged).toHaveBeenCalledTimes(3);
  expect(await waits(30_000)).toBe(70_000);
  expect(logged).toHaveBeenCalledTimes(3);
  expect(await waits(500_000)).toBe(300_000);
  expect(logged).toHaveBeenCalledTimes(4);
  expect(context.slots.acquire(job.subscriptionId)).toBeDefined();
});

it('learns nothing of an address from a delivery that is held: nothing was sent', async () => {
  const clock = fakeClock(0);
  context.slots = new Slots({ total: 10, perAddress: 10, perHost: 10, now: clock.now });
  const { job } = await pendingJob();
  const slow = context.slots.acquire(job.subscriptionId)!;
  clock.advance(8_000);
  context.slots.release(slow, true, 0);
  await changeSubscription(store, job.subscriptionId, (now) => ({ ...now, status: 'paused' }));
  for (let i = 0; i < 20; i++) expect(await handle(job)).toEqual({ kind: 'done' });
  context.slots.acquire(job.subscriptionId);
  // It still counts as slow: those are named with the first attempt in flight.
  expect(context.slots.room().busy).toContain(job.subscriptionId);
});

it('learns that an attempt failed although its delivery ended meanwhile', async () => {
  const { job } = await pendingJob();
  context.sender = {
    ...context.sender,
    async send() {
      const deliveries = [{ id: job.deliveryId, event: job.event }];
      await endDeliveries(store, { partition: 0, deliveries, reason: 'expired', nowMs: Date.now() });
      return { kind: 'responded', statusCode: 500, ip: null };
    },
  };
  context.signRequest = () => ({ url: 'https://example.com/', headers: {}, body: '' });
  const released = jest.spyOn(context.slots, 'release');
  expect(await handle(job)).toEqual({ kind: 'done' });
  expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ status: 'failed', attempts: [] }]);
  expect(released.mock.calls.map(([, failed]) => failed)).toEqual([true]);
});

describe('a host that is known only once a delivery has its slot, and has none', () => {
  let refused: jest.SpiedFunction<Slots['enterHost']>;
  /** Ends the attempt that has the host's only slot. */
  let freeHost: () => void;
  beforeEach(() => {
    // No time passes, and nothing waits in vain.
    context.slots = new Slots({ total: 10, perAddress: 10, perHost: 1, shortWaitMs: HUNG_MS, now: () => 0 });
    const slot = context.slots.acquire('another')!;
    context.slots.enterHost(slot, 'example.com');
    freeHost = () => void context.slots.release(slot, undefined, 0);
    refused = jest.spyOn(context.slots, 'enterHost');
    // An address that is not allowed: the attempt fails without a connection.
    context.signRequest = () => ({ url: 'http://127.0.0.1/', headers: {}, body: '' });
  });
  const untilRefused = () =>
    eventually('the host to refuse it', () => refused.mock.results.some(({ value }) => value === false));

  it('makes it wait, and nothing is parked', async () => {
    const { job } = await pendingJob();
    const handled = handle(job);
    await untilRefused();
    freeHost();
    expect(await handled).toMatchObject({ kind: 'failed' });
    expect(await laneLength(store, 'parked', job.subscriptionId)).toBe(0);
  });

  it('makes it wait again if then its IP has none', async () => {
    const ip = '8.8.8.8';
    context.sender = {
      ...context.sender,
      send: async ({ admit }) =>
        admit?.(ip) ? { kind: 'responded', statusCode: 200, ip } : { kind: 'not_admitted', ip },
    };
    const slot = context.slots.acquire('a third')!;
    context.slots.enterIp(slot, ip);
    const notAdmitted = jest.spyOn(context.slots, 'enterIp');
    const { job } = await pendingJob();
    const handled = handle(job);
    await untilRefused();
    freeHost();
    await eventually('the IP to refuse it', () => notAdmitted.mock.results.some(({ value }) => value === false));
    context.slots.release(slot, undefined, 0);
    expect(await handled).toEqual({ kind: 'done' });
    expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ status: 'succeeded' }]);
  });

  it('has its address read again: a change of url waits for one attempt, and this is the next', async () => {
    const { job, found } = await pendingJob();
    const handled = handle(job, { found });
    await untilRefused();
    await changeSubscription(store, job.subscriptionId, (now) => ({
      ...now,
      url: 'https://new.example/',
      status: 'awaiting_validation',
    }));
    freeHost();
    expect(await handled).toEqual({ kind: 'done' });
    expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ status: 'held', attempts: [] }]);
  });
});

it('ends a delivery whose event has expired, after one look for it', async () => {
  const { job } = await pendingJob();
  const gone = eventRef({ id: 'gone', environment: 'sandbox' });
  const get = jest.spyOn(store.redis, 'get');
  expect(await handle({ ...job, event: gone })).toEqual({ kind: 'done' });
  expect(get.mock.calls.filter(([key]) => String(key).includes(gone))).toHaveLength(1);
  expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ failureReason: 'expired', attempts: [] }]);
});

it('does not end the delivery of an event that is published again at the moment when it has expired', async () => {
  const { subscriptionId } = (await pendingJob()).job;
  const { job } = await deliver(subscriptionId, 'order-1');
  jest.spyOn(context.eventBodies, 'load').mockImplementation(async () => {
    await store.redis.del(...(await store.redis.keys(`${store.prefix}:*:event:order-1*`)));
    await deliver(subscriptionId, 'order-1');
    return 'expired' as const;
  });
  expect(await handle(job)).toEqual({ kind: 'done' });
  expect(await loadDeliveries(store, [job.deliveryId])).toMatchObject([{ status: 'pending', failureReason: null }]);
});

describe('a worker that was suspended', () => {
  const lost = { isSure: () => false, confirm: async () => false };
  const receivers: Awaited<ReturnType<typeof startReceiver>>[] = [];
  afterEach(async () => {
    for (const receiver of receivers.splice(0)) await receiver.close();
  });
  /** A delivery to a receiver of its own that can be reached. */
  async function reachableJob(status: number) {
    const receiver = await startReceiver(status);
    receivers.push(receiver);
    context = {
      ...context,
      sender: createSender({
        timeoutMs: 60_000,
        userAgent: 'test',
        resolve,
        allowedNetworks: parseNetworks('127.0.0.0/8'),
      }),
      signRequest: () => ({ url: receiver.url, headers: {}, body: '{}' }),
    };
    return { receiver, ...(await pendingJob(receiver.url)) };
  }
  const attemptsOf = async ({ deliveryId }: { deliveryId: string }) =>
    (await loadDeliveries(store, [deliveryId]))[0]?.attempts.length;

  it('sends nothing for a job that it may have lost, records nothing, and puts it back', async () => {
    const { receiver, job } = await reachableJob(200);
    expect(await handle(job, { claim: lost })).toMatchObject({ kind: 'snoozed' });
    expect(receiver.requests).toEqual([]);
    expect(await attemptsOf(job)).toBe(0);
  });

  it('records what became of an attempt that was under way: a success always, a failure only if the job is still its own', async () => {
    let isSure = true;
    const suspended = { isSure: () => isSure, confirm: async () => false };
    for (const [status, attempts] of [
      [200, 1],
      [500, 0],
    ] as const) {
      const { receiver, job } = await reachableJob(status);
      receiver.answerWith((_request, response) => {
        isSure = false;
        response.writeHead(status).end();
      });
      isSure = true;
      const outcome = await handle(job, { claim: suspended });
      expect(outcome.kind).toBe(status === 200 ? 'done' : 'snoozed');
      expect(receiver.requests).toHaveLength(1);
      expect([status, await attemptsOf(job)]).toEqual([status, attempts]);
    }
    const { job } = await reachableJob(500);
    expect(await handle(job)).toMatchObject({ kind: 'failed' });
    expect(await attemptsOf(job)).toBe(1);
  });
});
