/**
 * The duty that erases: what it finds and erases, in which order, and what it leaves for later; also if it dies between
 * any two steps.
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CameBack,
  DAY_MS,
  deliveryId,
  type ErasureField,
  type Event,
  type EventRef,
  eventIdOf,
  eventRef,
  HOUR_MS,
  newEventId,
  partitionOf,
  searchTermsOf,
  type UnsentChoice,
  type Verdict,
} from '@posthorn/core';
import { createJobQueues, type JobQueues } from '@posthorn/queue';
import { createSecretBox } from '@posthorn/signing';
import {
  beginAttempt,
  cancelErasure,
  cancelRunningErasure,
  confirmErasure,
  erasureProgress,
  eventsToErase,
  finishFanOuts,
  listAudit,
  loadDeliveries,
  loadErasures,
  loadEvent,
  loadResponses,
  MAX_OPEN_ERASURES,
  makeDeliveries,
  newSubscription,
  openErasures,
  openStore,
  partitionPrefix,
  replayDelivery,
  type Store,
  saveSubscription,
  searchEvents,
  startErasure,
  storeEvent,
} from '@posthorn/store';
import { fakeClock, testPrefix, testRedisUrl } from '@posthorn/testing';
import { recordVerdict } from '../../../../packages/store/src/test-attempts.ts';
import { createEventBodies } from '../attempts/event-bodies.ts';
import type { DutyContext } from './duty.ts';
import { eraseEvents } from './erase-events.ts';

const PARTITIONS = 3;
const box = createSecretBox([Buffer.alloc(32, 5)]);
const logger = { info() {}, warn() {}, error() {} } as unknown as DutyContext['logger'];
const onError = (error: Error) => {
  throw error;
};
const anna = 'anna';

let store: Store;
let jobQueues: JobQueues;
let clock: ReturnType<typeof fakeClock>;
let close: () => Promise<void>;
let context: DutyContext & { store: Store };
beforeEach(async () => {
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: testPrefix(), PARTITIONS, RETENTION: 30 * DAY_MS };
  const opened = openStore(settings, { onError });
  await opened.start();
  ({ store } = opened);
  clock = fakeClock(Date.now());
  jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes: opened.partitionPrefixes, onError });
  await jobQueues.ready();
  context = { store, jobQueues, clock, logger, secretBox: box, releasePerSecond: 50, rollbackWindowMs: 0 };
  close = async () => {
    const keys = await store.redis.keys(`${store.prefix}:*`);
    if (keys.length > 0) await store.redis.del(keys);
    await jobQueues.close();
    await opened.stop();
  };
});
afterEach(() => close());

async function subscribe(status: 'active' | 'paused' = 'active'): Promise<string> {
  const fresh = newSubscription(
    { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '', sealedSecret: 'sealed' },
    clock.now(),
  );
  expect(await saveSubscription(store, { ...fresh, status, takesEvents: true })).toBe(true);
  return fresh.id;
}

const PERSON = 'Zoë "Q" Ångström';
const data = { id: 'ses-1', status: 'approved', reference: 'ref 1', metadata: { user_id: PERSON, name: PERSON } };
async function publish(subscriptionIds: string[], change: Partial<Event> & { data?: object } = {}) {
  const { data: payload = data, ...fields } = change;
  const event: Event = {
    id: newEventId(clock.now()),
    type: 'session.approved',
    createdAt: new Date(clock.now()).toISOString(),
    environment: 'sandbox',
    dataJson: JSON.stringify(payload),
    ...fields,
  };
  const stored = { ref: eventRef(event), event, acceptedAtMs: clock.now(), subscriptionIds };
  await storeEvent(store, stored, { searchTerms: searchTermsOf(JSON.parse(event.dataJson)) });
  await makeDeliveries(context, stored);
  await new Promise((resolve) => setImmediate(resolve));
  return stored;
}
const came: CameBack = {
  response: { headers: {}, body: `unknown person ${PERSON}`, isBodyTruncated: false },
  connection: null,
};
/** Records the next attempt of a delivery. */
async function attempt(id: string, verdict: Verdict): Promise<void> {
  const [delivery] = await loadDeliveries(store, [id]);
  const isOk = verdict.kind === 'succeeded';
  const made = {
    number: delivery!.attemptCount + 1,
    startedAtMs: clock.now(),
    durationMs: 5,
    statusCode: isOk ? 200 : 500,
    error: isOk ? null : ('status' as const),
  };
  await recordVerdict(store, {
    delivery: delivery!,
    attempt: made,
    verdict,
    limits: { pauseAfter: 20, maxAttempts: 6 },
    cameBack: isOk ? undefined : () => came,
  });
}
const failed: Verdict = { kind: 'failed', reason: 'status' };
const load = async (id: string) => (await loadDeliveries(store, [id]))[0];

async function start(field: ErasureField, value: string, unsent: UnsentChoice = 'end', isConfirmed = true) {
  const request = { field, environment: undefined, unsent, valueHmac: 'hmac', isConfirmed };
  const erasure = await startErasure(store, { ...request, seal: (id) => box.seal(value, id) }, clock.now(), anna);
  return erasure!;
}
const stateOf = async (id: string) => (await loadErasures(store, [id]))[0]!;
async function confirm(id: string): Promise<void> {
  expect(await confirmErasure(store, await stateOf(id), 'end', clock.now(), anna)).toBe('advanced');
}
async function findAndConfirm(id: string): Promise<void> {
  await runUntil(id, 'counted');
  await confirm(id);
}
/** A connection whose calls of one script go through `around`, with their arguments. */
function observed(
  script: string,
  around: (run: () => Promise<unknown>, args: unknown[]) => Promise<unknown>,
): Store['redis'] {
  const redis: Store['redis'] = Object.create(store.redis);
  const original = Reflect.get(store.redis, `script_${script}`) as (...args: unknown[]) => Promise<unknown>;
  const value = (...args: unknown[]) => around(() => original.apply(store.redis, args), args);
  return Object.defineProperty(redis, `script_${script}`, { value });
}
/** The duty, and the erasures that each step of a pass has moved on, as their places in `ids`. */
function watchMoves(ids: string[]) {
  const moved: string[] = [];
  const redis = observed('moveScan', async (run, args) => {
    moved.push([...ids.keys()].filter((i) => args.includes(ids[i])).join(' '));
    return await run();
  });
  return { duty: eraseEvents({ ...context, store: { ...store, redis } }), moved };
}
/** Stores keys that are no events, so that a pass has more steps. */
async function storeOtherKeys(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1_000) {
    const others = Array.from({ length: 1_000 }, (_, j) => [`${store.prefix}:another:${i + j}`, ''] as const);
    await store.redis.mset(...others.flat());
  }
}
/** A function that calls another one the first time only. */
function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}
/** Runs the duty once in each partition. */
async function runOnce(duty = eraseEvents(context)) {
  for (let partition = 0; partition < PARTITIONS; partition++) await duty.run(partition);
}
/** Runs the duty until the erasure has this status. The scan goes over the keys of all tests of the run. */
async function runUntil(id: string, ...statuses: string[]) {
  for (let runs = 0; runs < 500; runs++) {
    const erasure = await stateOf(id);
    if (statuses.includes(erasure.status)) return erasure;
    await runOnce();
    if (erasure.confirmedAtMs !== null) clock.advance(61_000);
  }
  throw new Error(`Still ${(await stateOf(id)).status}`);
}

/** Runs the duty until this many passes over the events are done, and once more. */
async function runPasses(id: string, passes: number) {
  while ((await erasureProgress(store, id)).passes < passes) await runOnce();
  await runOnce();
}

/** Everything stored under the prefix, as text: keys and values of every type, and the events as they are read. */
async function everything(): Promise<string> {
  // All at once: after many erasures these are thousands of commands.
  return (await Promise.all((await store.redis.keys(`${store.prefix}:*`)).map(textOf))).join('\n');
}

async function textOf(key: string): Promise<string> {
  const [, ref] = /:event:(.+)$/.exec(key) ?? [];
  const stored = ref === undefined ? undefined : await loadEvent(store, ref as ReturnType<typeof eventRef>);
  return `${key}\n${JSON.stringify(await readValue(key))}\n${stored?.event.dataJson ?? ''}`;
}

async function readValue(key: string): Promise<unknown> {
  switch (await store.redis.type(key)) {
    case 'string':
      return await store.redis.get(key);
    case 'hash':
      return await store.redis.hgetall(key);
    case 'list':
      return await store.redis.lrange(key, 0, -1);
    case 'set':
      return await store.redis.smembers(key);
    case 'zset':
      return await store.redis.zrange(key, '0', '-1', 'WITHSCORES');
    default:
      return await store.redis.xrange(key, '-', '+');
  }
}
/** A value as it stands inside of JSON inside of JSON, or alone. */
const formsOf = (value: string) => {
  const once = JSON.stringify(value).slice(1, -1);
  return [
    value,
    once,
    JSON.stringify(once).slice(1, -1),
    Buffer.from(value).toString('base64'),
    encodeURIComponent(value),
  ];
};
async function expectNowhere(...values: string[]) {
  const text = await everything();
  for (const value of values) for (const form of formsOf(value)) expect(text).not.toContain(form);
}

describe('an erasure', () => {
  it('finds a value that was cut off within a character', async () => {
    const cut = 'Zoë \u{1f600}'.slice(0, -1);
    const { ref } = await publish([], { data: { ...data, metadata: { user_id: cut } } });
    const { id } = await start('user_id', 'Zoë \ufffd');
    expect(await runUntil(id, 'done')).toMatchObject({ counts: { events: 1, erasedEvents: 1 } });
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeDefined();
  });
  it.each([
    ['session_id', 'ses-1'],
    ['reference', 'ref 1'],
    ['user_id', PERSON],
    ['event_id', 'order:1~a'],
  ] as const)('by %s erases the payload everywhere, and nothing else', async (field, value) => {
    const [a, b] = [await subscribe(), await subscribe('paused')];
    const { ref } = await publish([a, b], { id: 'order:1~a' });
    await attempt(deliveryId(ref, a), failed);
    const other = await publish([a], { data: { id: 'ses-2', status: 'x', reference: 'ses-1', metadata: {} } });
    expect(await everything()).toContain('unknown person');
    const { id } = await start(field, value);
    const done = await runUntil(id, 'done');
    expect(done).toMatchObject({
      sealedValue: undefined,
      counts: {
        events: 1,
        deliveries: 2,
        unsent: 1,
        erasedEvents: 1,
        erasedDeliveries: 2,
        endedDeliveries: 1,
        erasedResponses: 1,
      },
    });
    await expectNowhere(PERSON, 'ref 1');
    expect(await loadEvent(store, ref)).toMatchObject({ erasedAtMs: expect.any(Number), event: { dataJson: '{}' } });
    expect(await load(deliveryId(ref, a))).toMatchObject({ status: 'failed', failureReason: 'status', erased: true });
    expect(await load(deliveryId(ref, b))).toMatchObject({ status: 'failed', failureReason: 'erased', erased: true });
    expect(await loadResponses(store, deliveryId(ref, a))).toEqual(new Map());
    // No entry of the search index names it any more; those of the other event are left.
    expect(JSON.stringify(await everything())).not.toMatch(/"[A-Za-z0-9_-]{4}sorder:1~a"/);
    const found = await searchEvents(store, [{ field: 'session_id', value: 'ses-2' }], undefined, 10, clock.now());
    expect(found.events.map((one) => one.ref)).toEqual([other.ref]);
    expect((await loadEvent(store, other.ref))?.erasedAtMs).toBeUndefined();
    expect(await load(deliveryId(other.ref, a))).toMatchObject({ status: 'pending', erased: false });
    expect(await openErasures(store)).toEqual([]);
  });

  it('counts first, and erases nothing until it is confirmed', async () => {
    const a = await subscribe();
    const { ref } = await publish([a]);
    await publish([a], { environment: 'production' });
    const { id } = await start('user_id', PERSON, 'end', false);
    const counted = await runUntil(id, 'counted');
    expect(counted.counts).toMatchObject({ events: 2, deliveries: 2, unsent: 2, erasedEvents: 0 });
    await runOnce();
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeUndefined();
    expect(await confirmErasure(store, counted, 'end', clock.now(), 'ben')).toBe('advanced');
    expect(await confirmErasure(store, counted, 'end', clock.now(), 'ben')).toBe('running');
    expect(await cancelErasure(store, counted, clock.now())).toBe('running');
    await runUntil(id, 'done');
    const { items } = await listAudit(store, {}, { limit: 10 }, clock.now());
    const detail = {
      erasure_id: id,
      field: 'user_id',
      value_hmac: 'hmac',
      unsent: 'end',
      environment: 'both',
      events: 2,
    };
    expect(items).toEqual([
      expect.objectContaining({
        action: 'erasure.done',
        operator: 'ben',
        detail: expect.objectContaining({ ...detail, erased_events: 2, ended_deliveries: 2 }),
      }),
      expect.objectContaining({ action: 'erasure.started', operator: 'ben', detail: expect.objectContaining(detail) }),
    ]);
    expect(JSON.stringify(items)).not.toContain('ngstr');
  });

  it('erases nothing more once it is cancelled while it is running, and then counts what it has erased', async () => {
    const address = await subscribe('paused');
    for (let i = 0; i < 4; i++) await publish([address]);
    const { id } = await start('user_id', PERSON, 'end', false);
    const counted = await runUntil(id, 'counted');
    expect(await confirmErasure(store, counted, 'end', clock.now(), anna)).toBe('advanced');
    // A worker has read what it is to erase.
    const { zrangebyscore } = store.redis;
    store.redis.zrangebyscore = (async (...args: Parameters<typeof zrangebyscore>) => {
      const found = await zrangebyscore.apply(store.redis, args);
      if (found.length > 0) await cancelRunningErasure(store, await stateOf(id), clock.now(), 'ben');
      return found;
    }) as typeof zrangebyscore;
    await runOnce();
    expect(await stateOf(id)).toMatchObject({ status: 'running', cancelledBy: 'ben' });
    clock.advance(10_000);
    await runOnce();
    const { status, counts } = await stateOf(id);
    expect([status, counts.events, counts.erasedEvents, counts.endedDeliveries]).toEqual(['cancelled', 4, 0, 0]);
    const { items } = await listAudit(store, { action: 'erasure.cancelled' }, { limit: 1 }, clock.now());
    expect(items).toMatchObject([{ operator: 'ben', detail: { erasure_id: id, events: 4, erased_events: 0 } }]);
    expect(await openErasures(store)).toEqual([]);
    expect((await store.redis.keys(`${store.prefix}:*erasure_*`)).filter((key) => key.includes(id))).toEqual([]);
  });

  it('leaves nothing if it ends just after a run has read that it is open', async () => {
    const { id } = await start('user_id', PERSON, 'end', false);
    const counted = await runUntil(id, 'counted');
    const redis: Store['redis'] = Object.create(store.redis);
    const read = async (key: string) => {
      const record = await store.redis.hgetall(key);
      if (key.endsWith(`:erasure:${id}`)) await cancelErasure(store, counted, clock.now());
      return record;
    };
    Object.defineProperty(redis, 'hgetall', { value: read });
    await runOnce(eraseEvents({ ...context, store: { ...store, redis } }));
    expect((await stateOf(id)).status).toBe('cancelled');
    expect(await store.redis.keys(`${store.prefix}:*erasure_*`)).toEqual([]);
  });

  it('is cancelled if nobody confirms it within an hour of its count, and forgets what it has found', async () => {
    await publish([await subscribe()]);
    const { id } = await start('user_id', PERSON, 'end', false);
    clock.advance(3 * HOUR_MS);
    await runUntil(id, 'counted');
    clock.advance(HOUR_MS);
    await runOnce();
    expect((await stateOf(id)).status).toBe('counted');
    clock.advance(1);
    expect(await runUntil(id, 'cancelled')).toMatchObject({ sealedValue: undefined, counts: { events: 1 } });
    expect(await store.redis.keys(`${store.prefix}:*:erasure_*:${id}`)).toEqual([]);
    expect(await openErasures(store)).toEqual([]);
  });

  it('forgets what it has found, which may be millions of events, with UNLINK', async () => {
    await publish([await subscribe()]);
    const { id } = await start('user_id', PERSON, 'end', false);
    await runUntil(id, 'counted');
    const del = () => Promise.reject(new Error('DEL'));
    const redis: Store['redis'] = Object.create(store.redis, { del: { value: del } });
    expect(await cancelErasure({ ...store, redis }, await stateOf(id), clock.now())).toBe('advanced');
    expect(await store.redis.keys(`${store.prefix}:*:erasure_*:${id}`)).toEqual([]);
  });

  it.each([
    ['notes', 'findEvent', async () => undefined],
    ['erases', 'eraseEvent', findAndConfirm],
  ])(
    '%s several events at once: one by one, most of the time would pass between commands',
    async (_, script, begin) => {
      const a = await subscribe();
      const { event } = await publish([a]);
      await publish([a], { id: event.id, environment: 'production' });
      const { id } = await start('event_id', event.id, 'end', false);
      await begin(id);
      let [running, most] = [0, 0];
      const redis = observed(script, async (run) => {
        running += 1;
        most = Math.max(most, running);
        return await run().finally(() => {
          running -= 1;
        });
      });
      await runOnce(eraseEvents({ ...context, store: { ...store, redis } }));
      expect((await stateOf(id)).counts.events).toBe(2);
      expect(most).toBe(2);
    },
  );
  it('shares each step of a pass with those that begin it too', async () => {
    for (let i = 0; i < 3; i++) await publish([], { data: { ...data, id: `ses-${i}` } });
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await start('session_id', `ses-${i}`, 'end', false)).id);
    const { duty, moved } = watchMoves(ids);
    while ((await stateOf(ids[0]!)).status === 'counting') await runOnce(duty);
    expect(new Set(moved)).toEqual(new Set(['0 1 2 3']));
    const states = await loadErasures(store, ids);
    expect(states.map((erasure) => [erasure?.status, erasure?.counts.events])).toEqual([
      ['counted', 1],
      ['counted', 1],
      ['counted', 1],
      ['counted', 0],
    ]);
  });
  it('waits for a pass that is under way, and shares the next one with others that need it', async () => {
    // A run goes over 20,000.
    await storeOtherKeys(40_000);
    await publish([], { data: { ...data, id: 'ses-2' } });
    const first = await start('session_id', 'ses-1');
    await runOnce();
    const second = await start('session_id', 'ses-2');
    const { duty, moved } = watchMoves([first.id, second.id]);
    while ((await openErasures(store)).length > 0) {
      await runOnce(duty);
      clock.advance(61_000);
    }
    expect(moved.filter((ids, i) => ids !== moved[i - 1])).toEqual(['0', '0 1', '1']);
    expect((await stateOf(second.id)).counts.erasedEvents).toBe(1);
  });
  it('goes on from the cursor of each where an earlier release has left them at different ones', async () => {
    await storeOtherKeys(40_000);
    await publish([]);
    const [a, b] = [await start('user_id', PERSON, 'end', false), await start('reference', 'ref 1', 'end', false)];
    const prefix = partitionPrefix(store, 0);
    const progress = [a, b].map(({ id }) => `${prefix}:erasure_progress:${id}`);
    await runOnce();
    // One of them is where it has begun.
    await store.redis.hset(progress[1]!, { cursor: '0' });
    const { duty, moved } = watchMoves([a.id, b.id]);
    for (let runs = 0; runs < 500 && (await stateOf(b.id)).status !== 'counted'; runs++) await runOnce(duty);
    expect(moved).not.toContain('0 1');
    const states = await loadErasures(store, [a.id, b.id]);
    expect(states.map((erasure) => [erasure?.status, erasure?.counts.events])).toEqual([
      ['counted', 1],
      ['counted', 1],
    ]);
  });
  it('makes more steps of its pass in a run than another one that finds very many events', async () => {
    await storeOtherKeys(4_000);
    await Promise.all(Array.from({ length: 1_500 }, () => publish([])));
    const ids = [(await start('user_id', PERSON)).id, (await start('user_id', 'nobody')).id];
    const { duty, moved } = watchMoves(ids);
    await duty.run(0);
    expect(moved).toContain('0 1');
    expect(moved).toContain('1');
    expect(moved).not.toContain('0');
  });
  it('does not wait for a pass that very many events, or an error, hold up', async () => {
    await Promise.all(Array.from({ length: 6_000 }, () => publish([])));
    const many = await start('user_id', PERSON, 'end', false);
    await eraseEvents(context).run(0);
    const ids = [many.id, (await start('user_id', 'nobody', 'end', false)).id];
    const { duty, moved } = watchMoves(ids);
    await duty.run(0);
    expect(new Set(moved)).toEqual(new Set(['0', '1']));
    ids.push((await start('user_id', 'another', 'end', false)).id);
    const failing = observed('moveScan', async (run, args) => {
      if (!args.includes(ids[2])) throw new Error('wrong');
      moved.push('2');
      return await run();
    });
    await expect(eraseEvents({ ...context, store: { ...store, redis: failing } }).run(0)).rejects.toThrow('wrong');
    expect(moved.at(-1)).toBe('2');
  });
  it('is not slowed down by others that wait to be confirmed', async () => {
    for (let i = 0; i < 90; i++) await publish([]);
    const { id } = await start('user_id', PERSON, 'end', false);
    for (let i = 0; i < 4; i++) await runUntil((await start('user_id', `u${i}`, 'end', false)).id, 'counted');
    await findAndConfirm(id);
    await runOnce();
    expect((await stateOf(id)).counts.erasedEvents).toBe(90);
  });
  it('erases the oldest events first: their entries are the first ones of the search index', async () => {
    const names = ['c', 'b', 'a'].map((letter) => {
      const suffixes = Array.from({ length: 50 }, (_, i) => `${letter}${i}`);
      return suffixes.find((name) => partitionOf(name, PARTITIONS) === 0)!;
    });
    const refs: string[] = [];
    for (const id of names) {
      refs.push((await publish([], { id })).ref);
      clock.advance(1);
    }
    const { id } = await start('user_id', PERSON, 'end', false);
    await runUntil(id, 'counted');
    expect(await eventsToErase(store, 0, id, clock.now(), 10)).toEqual(refs);
  });
  it('ends its run after events with very many deliveries', async () => {
    const addresses = await Promise.all(Array.from({ length: 200 }, () => subscribe('paused')));
    const names = Array.from({ length: 100 }, (_, i) => `e${i}`).filter((name) => partitionOf(name, PARTITIONS) === 0);
    for (const id of names.slice(0, 10)) await publish(addresses, { id });
    const { id } = await start('user_id', PERSON, 'end', false);
    await findAndConfirm(id);
    await eraseEvents(context).run(0);
    expect((await stateOf(id)).counts).toMatchObject({ erasedEvents: 5, erasedDeliveries: 1_000 });
  });
  it('erases an event at once that was accepted by a clock that is ahead', async () => {
    clock.advance(DAY_MS);
    const { ref } = await publish([]);
    clock.advance(-DAY_MS);
    const { id } = await start('user_id', PERSON, 'end', false);
    await findAndConfirm(id);
    await runOnce();
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeDefined();
  });
  it('is read with the counts of all partitions only where its status changes', async () => {
    const { id } = await start('user_id', PERSON, 'end', false);
    const read: string[] = [];
    const hgetall = async (key: string) => {
      read.push(key.slice(key.indexOf('{')));
      return await store.redis.hgetall(key);
    };
    const redis: Store['redis'] = Object.create(store.redis, { hgetall: { value: hgetall } });
    await eraseEvents({ ...context, store: { ...store, redis } }).run(1);
    expect(read).toEqual([`{0}:erasure:${id}`]);
  });

  it('keeps to one environment, if one is given', async () => {
    const a = await subscribe();
    const [sandbox, production] = [await publish([a]), await publish([a], { environment: 'production' })];
    const request = { field: 'session_id', environment: 'production', unsent: 'end', valueHmac: 'h' } as const;
    const seal = (id: string) => box.seal('ses-1', id);
    const erasure = await startErasure(store, { ...request, seal, isConfirmed: true }, clock.now(), anna);
    await runUntil(erasure!.id, 'done');
    expect((await loadEvent(store, sandbox.ref))?.erasedAtMs).toBeUndefined();
    expect((await loadEvent(store, production.ref))?.erasedAtMs).toBeDefined();
  });

  it('also erases an event that was being accepted when it was confirmed', async () => {
    const a = await subscribe();
    const { id } = await start('user_id', PERSON);
    await runPasses(id, 1);
    expect((await stateOf(id)).status).toBe('running');
    const late = await publish([a]);
    await runOnce();
    expect((await loadEvent(store, late.ref))?.erasedAtMs).toBeUndefined();
    clock.advance(61_000);
    await runUntil(id, 'done');
    expect((await loadEvent(store, late.ref))?.erasedAtMs).toBeDefined();
  });

  it('lets unsent deliveries be sent first, if asked to: it waits until all of them have ended', async () => {
    const [a, b] = [await subscribe(), await subscribe('paused')];
    const { ref } = await publish([a, b]);
    const { id } = await start('session_id', 'ses-1', 'deliver');
    const waiting = await runUntil(id, 'waiting');
    expect(waiting).toMatchObject({ sealedValue: undefined, counts: { events: 1, unsent: 2, erasedEvents: 0 } });
    await attempt(deliveryId(ref, a), failed);
    clock.advance(11_000);
    await runOnce();
    expect(await load(deliveryId(ref, a))).toMatchObject({ erased: false });
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeUndefined();
    await attempt(deliveryId(ref, b), { kind: 'succeeded' });
    clock.advance(11_000);
    const done = await runUntil(id, 'done');
    expect(done.counts).toMatchObject({ erasedEvents: 1, erasedDeliveries: 2, endedDeliveries: 0, erasedResponses: 1 });
    expect(await load(deliveryId(ref, b))).toMatchObject({ status: 'succeeded', erased: true });
    await expectNowhere(PERSON, 'ref 1');
  });

  it('waits for the outcome of an attempt in flight, and ends the delivery before its retry', async () => {
    const a = await subscribe();
    const { ref } = await publish([a]);
    const id = deliveryId(ref, a);
    const queue = `${partitionPrefix(store, partitionOf(a, PARTITIONS))}:deliveries:`;
    // A worker has taken the job: it holds the job's lock.
    await store.redis.lrem(`${queue}wait`, 0, id);
    await store.redis.set(`${queue}${id}:lock`, 'token');
    const erasure = await start('session_id', 'ses-1');
    clock.advance(61_000);
    await runPasses(erasure.id, 2);
    expect(await load(id)).toMatchObject({ status: 'pending', erased: false });
    await attempt(id, { kind: 'retry', nextAttemptAtMs: clock.now() + 60_000 });
    await store.redis.zadd(`${queue}delayed`, (clock.now() + 60_000) * 0x1000, id);
    await store.redis.del(`${queue}${id}:lock`);
    await runUntil(erasure.id, 'done');
    expect(await load(id)).toMatchObject({ status: 'failed', failureReason: 'erased', attemptCount: 1, erased: true });
    expect(await jobQueues.all[partitionOf(a, PARTITIONS)]!.getJob(id)).toBeUndefined();
    await expectNowhere(PERSON);
  });

  it('waits for a fan-out that is not confirmed', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => subscribe()));
    const stored = await publish(ids);
    await store.redis.zadd(
      `${partitionPrefix(store, partitionOf(stored.event.id, PARTITIONS))}:fanning_out`,
      clock.now(),
      stored.ref,
    );
    const { id } = await start('session_id', 'ses-1');
    clock.advance(61_000);
    await runPasses(id, 2);
    expect((await loadEvent(store, stored.ref))?.erasedAtMs).toBeUndefined();
    await finishFanOuts({ ...context, logger: { info() {}, warn() {} } });
    expect((await runUntil(id, 'done')).counts).toMatchObject({ erasedEvents: 1, endedDeliveries: 8 });
  });

  it('begins a pass again after a restart of Redis: a cursor of another server would miss events', async () => {
    await publish([await subscribe()]);
    const { id } = await start('session_id', 'ses-1', 'end', false);
    const progress = `${partitionPrefix(store, 0)}:erasure_progress:${id}`;
    // As if another server had given the cursor, after the place of every event.
    await store.redis.hset(progress, { cursor: '0', run: 'another' });
    await eraseEvents(context).run(0);
    const run = await store.redis.hget(progress, 'run');
    expect(run === null || run !== 'another').toBe(true);
    expect((await runUntil(id, 'counted')).counts.events).toBe(1);
  });

  it('is refused while too many have not ended', async () => {
    for (let i = 0; i < MAX_OPEN_ERASURES; i++) expect(await start('session_id', `s${i}`, 'end', false)).toBeDefined();
    expect(await start('session_id', 'one more')).toBeUndefined();
  });

  it('erases the other events if the first one cannot be read, and fails the run', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `e${i + 10}`).filter(
      (name) => partitionOf(name, PARTITIONS) === 0,
    );
    const broken = await publish([], { id: names[0]! });
    const other = await publish([], { id: names[1]! });
    const { id } = await start('session_id', data.id, 'end', false);
    await runPasses(id, 1);
    await confirmErasure(store, await stateOf(id), 'end', clock.now(), anna);
    const key = `${partitionPrefix(store, 0)}:event:${broken.ref}`;
    await store.redis.del(key);
    await store.redis.hset(key, 'wrong', 1);
    await expect(eraseEvents(context).run(0)).rejects.toThrow('WRONGTYPE');
    expect((await loadEvent(store, other.ref))?.erasedAtMs).toBeDefined();
  });
  it.each([
    ['an event', () => publish([])],
    ['an event with its only delivery', async () => publish([await subscribe()])],
  ])('counts %s once, although another process finds and erases it at the same moment', async (_, publishOne) => {
    const { ref } = await publishOne();
    const { id } = await start('session_id', 'ses-1');
    const other = once(async () => {
      while ((await stateOf(id)).counts.erasedEvents === 0) await runOnce();
    });
    const redis = observed('findEvent', async (run) => {
      await other();
      return await run();
    });
    const duty = eraseEvents({ ...context, store: { ...store, redis } });
    await runOnce(duty);
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeDefined();
    expect((await stateOf(id)).counts).toMatchObject({ events: 1, erasedEvents: 1 });
    expect((await runUntil(id, 'done')).counts).toMatchObject({ events: 1, erasedEvents: 1 });
  });
  describe('with an event that cannot be read', () => {
    const keyOf = (ref: string) =>
      `${partitionPrefix(store, partitionOf(eventIdOf(ref as EventRef), PARTITIONS))}:event:${ref}`;
    /** Makes an event unreadable; the result makes it readable again. */
    async function breakEvent(ref: string, text?: string): Promise<() => Promise<unknown>> {
      const [key, away] = [keyOf(ref), `${keyOf(ref)}`.replace(':event:', ':away:')];
      await store.redis.rename(key, away);
      if (text === undefined) await store.redis.sadd(key, 'wrong');
      else await store.redis.set(key, text);
      return () => store.redis.rename(away, key);
    }
    /** Runs the duty in each partition. Returns what it has thrown. */
    async function runInSpite(): Promise<string[]> {
      const errors: string[] = [];
      for (let partition = 0; partition < PARTITIONS; partition++)
        await eraseEvents(context)
          .run(partition)
          .catch((error: Error) => errors.push(error.message));
      return errors;
    }
    async function runInSpiteUntil(id: string, isReached: (state: Awaited<ReturnType<typeof stateOf>>) => boolean) {
      const errors: string[] = [];
      for (let runs = 0; runs < 500; runs++) {
        const state = await stateOf(id);
        if (isReached(state)) return { state, errors };
        errors.push(...(await runInSpite()));
        clock.advance(61_000);
      }
      throw new Error(`Still ${JSON.stringify(await stateOf(id))}`);
    }
    const passesOf = async (id: string) => (await erasureProgress(store, id)).passes;

    it.each<[string, 'end' | 'deliver', string | undefined]>([
      ['of another type', 'end', undefined],
      ['that no decoder takes', 'end', 'zzz 1 2 \n{}'],
      ['without a time of acceptance', 'deliver', '0 1\n{}'],
      ['the data of which end too early', 'end', '0 1 1 \n{"id":"ses-1"'],
    ])('%s goes on past it, says so, and ends once it is known whose it is (%s)', async (_, unsent, text) => {
      const [a, b, other] = [
        await publish([]),
        await publish([]),
        await publish([], { data: { ...data, id: 'ses-2' } }),
      ];
      const repairs = [await breakEvent(a.ref, text), await breakEvent(other.ref, text)];
      const { id } = await start('session_id', 'ses-1', unsent, false);
      const counted = await runInSpiteUntil(id, ({ status }) => status === 'counted');
      const ids = [a.event.id, other.event.id];
      expect(counted.state).toMatchObject({ counts: { events: 1 }, unreadable: { events: 2 } });
      expect(counted.state.unreadable.ids.toSorted()).toEqual(ids.toSorted());
      await confirmErasure(store, counted.state, unsent, clock.now(), anna);
      const late = await publish([]);
      const ran = await runInSpiteUntil(id, ({ counts }) => counts.erasedEvents === 2);
      while ((await passesOf(id)) < 2) await runInSpite();
      clock.advance(61_000);
      expect([...ran.errors, ...(await runInSpite())].join()).toMatch(/The record of event \S+ can't be read: /);
      for (const { ref } of [b, late]) expect((await loadEvent(store, ref))?.erasedAtMs).toBeDefined();
      expect(await stateOf(id)).toMatchObject({ status: 'running', unreadable: { events: 2 } });
      await repairs[0]!();
      const found = await runInSpiteUntil(id, ({ unreadable }) => unreadable.events === 1);
      expect(found.state.status).toBe('running');
      await repairs[1]!();
      const { state } = await runInSpiteUntil(id, ({ status }) => status === 'done');
      expect(state).toMatchObject({ counts: { events: 3, erasedEvents: 3 }, unreadable: { events: 0, ids: [] } });
      expect((await loadEvent(store, a.ref))?.erasedAtMs).toBeDefined();
      expect((await loadEvent(store, other.ref))?.erasedAtMs).toBeUndefined();
      expect((await store.redis.keys(`${store.prefix}:*erasure_*`)).filter((key) => key.includes(id))).toEqual([]);
    });
    it('lets the deliveries of the others be ended meanwhile, and erases those', async () => {
      const held = await subscribe('paused');
      const [broken, other] = [await publish([]), await publish([held])];
      const repair = await breakEvent(broken.ref);
      const { id } = await start('session_id', 'ses-1', 'deliver');
      const confirmAgain = async (unsent: UnsentChoice) =>
        await confirmErasure(store, await stateOf(id), unsent, clock.now(), 'ben');
      // Nothing is known to keep it waiting.
      expect(await confirmAgain('end')).toBe('running');
      await runInSpiteUntil(id, ({ unreadable }) => unreadable.events === 1);
      while ((await passesOf(id)) < 2) await runInSpite();
      clock.advance(11_000);
      await runInSpite();
      expect(await load(deliveryId(other.ref, held))).toMatchObject({ status: 'held' });
      expect(await confirmAgain('deliver')).toBe('running');
      expect(await confirmAgain('end')).toBe('advanced');
      expect(await confirmAgain('end')).toBe('running');
      const { state } = await runInSpiteUntil(id, ({ counts }) => counts.erasedEvents === 1);
      expect(state).toMatchObject({
        status: 'running',
        unsent: 'end',
        confirmedBy: 'anna',
        unreadable: { events: 1 },
        counts: { endedDeliveries: 1 },
      });
      const delivery = await load(deliveryId(other.ref, held));
      expect(delivery).toMatchObject({ status: 'failed', failureReason: 'erased', erased: true });
      await repair();
      const done = await runInSpiteUntil(id, ({ status }) => status === 'done');
      expect(done.state.counts).toMatchObject({ erasedEvents: 2, endedDeliveries: 1 });
      const { items } = await listAudit(store, { target: id }, { limit: 5 }, clock.now());
      expect(items.map(({ action, operator, detail }) => [action, operator, detail?.unsent])).toEqual([
        ['erasure.done', 'anna', 'end'],
        ['erasure.started', 'ben', 'end'],
        ['erasure.started', 'anna', 'deliver'],
      ]);
    });
    it('lets nothing be ended once it is cancelled', async () => {
      const { ref } = await publish([]);
      await breakEvent(ref);
      const { id } = await start('session_id', 'ses-1', 'deliver');
      const { state } = await runInSpiteUntil(id, ({ unreadable }) => unreadable.events === 1);
      expect(await cancelRunningErasure(store, state, clock.now(), anna)).toBe('advanced');
      expect(await confirmErasure(store, await stateOf(id), 'end', clock.now(), anna)).toBe('running');
    });
    it('ends once it is gone', async () => {
      const { ref } = await publish([]);
      await breakEvent(ref);
      const { id } = await start('session_id', 'ses-1');
      await runInSpiteUntil(id, ({ unreadable }) => unreadable.events === 1);
      while ((await passesOf(id)) < 2) await runInSpite();
      expect(await stateOf(id)).toMatchObject({ status: 'running', counts: { events: 0 } });
      await store.redis.del(keyOf(ref));
      clock.advance(61_000);
      expect((await runUntil(id, 'done')).counts.events).toBe(0);
    });
    it('fails seldom because of it, also if there are more than it can try again in a minute', async () => {
      const refs = Array.from({ length: 60 }, () => eventRef({ id: newEventId(clock.now()), environment: 'sandbox' }));
      await store.redis.mset(Object.fromEntries(refs.map((ref) => [keyOf(ref), 'zzz 1 2 \n{}'])));
      const { id } = await start('session_id', 'ses-1');
      await runInSpiteUntil(id, ({ unreadable }) => unreadable.events === 60);
      const event = await publish([]);
      while ((await passesOf(id)) < 2) await runInSpite();
      clock.advance(61_000);
      // All are due, and each run tries 25 of them.
      const duty = eraseEvents(context);
      await expect(duty.run(0)).rejects.toThrow(/can't be read/);
      await duty.run(0);
      await duty.run(0);
      expect((await loadEvent(store, event.ref))?.erasedAtMs).toBeDefined();
      expect(await stateOf(id)).toMatchObject({ status: 'running', unreadable: { events: 60 } });
    });
    it('still names a delivery of another event that cannot be read either', async () => {
      const address = await subscribe();
      const [broken, other] = [await publish([]), await publish([address])];
      await breakEvent(broken.ref);
      const delivery = deliveryId(other.ref, address);
      const [key] = await store.redis.keys(`${store.prefix}:*:delivery:${delivery}`);
      await store.redis.set(key!, 'wrong');
      const { id } = await start('session_id', 'ses-1');
      await runInSpiteUntil(id, ({ unreadable, counts }) => unreadable.events === 1 && counts.events === 1);
      clock.advance(61_000);
      const duty = eraseEvents(context);
      const errors: unknown[] = [];
      for (let partition = 0; partition < PARTITIONS; partition++)
        await duty.run(partition).catch((error: AggregateError) => errors.push(error, ...(error.errors ?? [])));
      expect(errors.join()).toContain(`event ${broken.ref} can't be read`);
      expect(errors.join()).toContain(`delivery ${delivery} can't be read`);
    });
    it('of its own id waits for it', async () => {
      const { ref } = await publish([], { id: 'order:1~a' });
      const repair = await breakEvent(ref);
      const { id } = await start('event_id', 'order:1~a');
      await runInSpiteUntil(id, ({ unreadable }) => unreadable.ids.includes('order:1~a'));
      clock.advance(61_000);
      expect(await runInSpite()).toEqual([expect.stringContaining("can't be read: WRONGTYPE")]);
      expect((await stateOf(id)).status).toBe('running');
      await repair();
      expect((await runInSpiteUntil(id, ({ status }) => status === 'done')).state.counts.erasedEvents).toBe(1);
    });
    it('because of its data only is erased by its own id', async () => {
      const { ref } = await publish([], { id: 'order:2' });
      await breakEvent(ref, '0 1 1 \n{"id":"ses-1"');
      const { id } = await start('event_id', 'order:2');
      expect((await runUntil(id, 'done')).counts).toMatchObject({ events: 1, erasedEvents: 1 });
      expect(await store.redis.get(keyOf(ref))).toMatch(/\n\S*\{\}$/);
    });
    it('of another environment does not wait for it', async () => {
      const { ref } = await publish([], { environment: 'production' });
      await breakEvent(ref);
      const request = { field: 'session_id', environment: 'sandbox', unsent: 'end', valueHmac: 'h' } as const;
      const seal = (id: string) => box.seal('ses-1', id);
      const erasure = await startErasure(store, { ...request, seal, isConfirmed: true }, clock.now(), anna);
      expect((await runUntil(erasure!.id, 'done')).counts.events).toBe(0);
    });
  });
  it('counts an event of which a delivery cannot be read, that delivery as one that is not sent', async () => {
    const addresses = [await subscribe(), await subscribe()];
    const { ref } = await publish(addresses);
    const delivery = deliveryId(ref, addresses[0]!);
    const [key] = (await store.redis.keys(`${store.prefix}:*:delivery:*`)).filter((each) => each.endsWith(delivery));
    await store.redis.set(key!, 'wrong');
    const { id } = await start('session_id', 'ses-1', 'end', false);
    expect((await runUntil(id, 'counted')).counts).toMatchObject({ events: 1, deliveries: 2, unsent: 2 });
  });
  it('begins and ends its last pass though an event that it has found fails in every run', async () => {
    const addresses = [await subscribe(), await subscribe()];
    const broken = await publish(addresses);
    const { id } = await start('session_id', 'ses-1', 'end', false);
    await findAndConfirm(id);
    const delivery = deliveryId(broken.ref, addresses[0]!);
    const [key] = (await store.redis.keys(`${store.prefix}:*:delivery:*`)).filter((each) => each.endsWith(delivery));
    await store.redis.set(key!, 'wrong');
    const late = await publish([]);
    clock.advance(61_000);
    for (let runs = 0; runs < 500 && !(await loadEvent(store, late.ref))?.erasedAtMs; runs++) {
      for (let partition = 0; partition < PARTITIONS; partition++) {
        await eraseEvents(context)
          .run(partition)
          .catch((error: Error) => expect(error.message).toContain('WRONGTYPE'));
      }
    }
    expect((await loadEvent(store, late.ref))?.erasedAtMs).toBeDefined();
    expect(await erasureProgress(store, id)).toEqual({ passes: 2, left: 1 });
    expect((await stateOf(id)).status).toBe('running');
  });
  it('erases an event though as many older ones as one run erases cannot be erased, and tries those again', async () => {
    const address = await subscribe();
    const ids = Array.from({ length: 1_000 }, (_, i) => `order:${i}`).filter((id) => partitionOf(id, PARTITIONS) === 0);
    const keys: string[] = [];
    for (const id of ids.slice(0, 100)) {
      const { ref } = await publish([address], { id });
      const prefix = partitionPrefix(store, partitionOf(address, PARTITIONS));
      const key = `${prefix}:delivery:${deliveryId(ref, address)}`;
      await store.redis.rename(key, `${key}:away`);
      await store.redis.set(key, 'wrong');
      keys.push(key);
    }
    clock.advance(1);
    const last = await publish([address], { id: ids[100]! });
    const { id } = await start('session_id', 'ses-1');
    const runInSpite = async () => {
      for (let partition = 0; partition < PARTITIONS; partition++)
        await eraseEvents(context)
          .run(partition)
          .catch((error: Error) => expect(error.message).toContain('WRONGTYPE'));
    };
    for (let runs = 0; runs < 50 && (await stateOf(id)).counts.events < 101; runs++) await runInSpite();
    for (let runs = 0; runs < 5; runs++) await runInSpite();
    expect((await loadEvent(store, last.ref))?.erasedAtMs).toBeDefined();
    expect((await stateOf(id)).counts).toMatchObject({ events: 101, erasedEvents: 1 });
    for (const key of keys) await store.redis.rename(`${key}:away`, key);
    clock.advance(61_000);
    expect((await runUntil(id, 'done')).counts.erasedEvents).toBe(101);
  });
  it('is cancelled after a day without a confirmation if its value cannot be opened', async () => {
    const request = { field: 'session_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
    const broken = { ...request, seal: () => 'v1.broken', isConfirmed: false };
    const { id } = (await startErasure(store, broken, clock.now(), anna))!;
    clock.advance(DAY_MS + 1);
    await expect(eraseEvents(context).run(0)).rejects.toThrow();
    expect((await stateOf(id)).status).toBe('cancelled');
    await eraseEvents(context).run(0);
  });
  it('does not stop others if its value cannot be opened, and fails the run', async () => {
    const { ref } = await publish([await subscribe()]);
    const request = { field: 'session_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
    await startErasure(store, { ...request, seal: () => 'v1.broken', isConfirmed: true }, clock.now(), anna);
    const { id } = await start('session_id', 'ses-1');
    clock.advance(61_000);
    while ((await stateOf(id)).status !== 'done') {
      await expect(eraseEvents(context).run(0)).rejects.toThrow('opens the secret of ers_');
      for (const partition of [1, 2]) await eraseEvents(context).run(partition);
    }
    expect((await loadEvent(store, ref))?.erasedAtMs).toBeDefined();
  });
});

describe('an erasure does not wait for hours because', () => {
  const consoleAhead = () => clock.now() + 10 * HOUR_MS;
  it('the clock of the console was ahead that confirmed it', async () => {
    await publish([await subscribe()]);
    const { id } = await start('user_id', PERSON, 'end', false);
    await runUntil(id, 'counted');
    expect(await confirmErasure(store, await stateOf(id), 'end', consoleAhead(), anna)).toBe('advanced');
    const duty = eraseEvents(context);
    await runOnce(duty);
    clock.advance(59_999);
    for (let runs = 0; runs < 20; runs++) await runOnce(duty);
    expect((await stateOf(id)).status).toBe('running');
    clock.advance(1);
    for (let runs = 0; runs < 500 && (await stateOf(id)).status !== 'done'; runs++) await runOnce(duty);
    expect(await stateOf(id)).toMatchObject({ status: 'done', counts: { erasedEvents: 1 } });
  });
  it('the clock of the console was ahead that cancelled it', async () => {
    const { id } = await start('user_id', PERSON);
    expect(await cancelRunningErasure(store, await stateOf(id), consoleAhead(), anna)).toBe('advanced');
    const duty = eraseEvents(context);
    await runOnce(duty);
    clock.advance(10_000);
    await runOnce(duty);
    expect((await stateOf(id)).status).toBe('cancelled');
  });
  it('the clock of the worker was ahead that left an event for later', async () => {
    const a = await subscribe('paused');
    const { ref } = await publish([a]);
    const { id } = await start('session_id', 'ses-1', 'deliver');
    await runUntil(id, 'waiting');
    clock.advance(10 * HOUR_MS);
    await runOnce();
    clock.advance(-10 * HOUR_MS);
    await attempt(deliveryId(ref, a), { kind: 'succeeded' });
    await runOnce();
    await runOnce();
    expect(await stateOf(id)).toMatchObject({ status: 'done', counts: { erasedEvents: 1 } });
  });
  it('the clock of the worker was ahead that could not read an event', async () => {
    const { ref } = await publish([await subscribe()]);
    const [key] = await store.redis.keys(`${store.prefix}:*:event:${ref}`);
    await store.redis.rename(key!, `${key}:away`);
    await store.redis.set(key!, 'no event');
    const { id } = await start('session_id', 'ses-1');
    clock.advance(10 * HOUR_MS);
    while ((await stateOf(id)).unreadable.events === 0) await runOnce().catch(() => undefined);
    await runOnce().catch(() => undefined);
    await store.redis.rename(`${key}:away`, key!);
    clock.advance(-10 * HOUR_MS);
    for (let runs = 0; runs < 20; runs++) await runOnce();
    expect(await stateOf(id)).toMatchObject({ unreadable: { events: 0 }, counts: { events: 1 } });
  });
});

describe('after an erasure', () => {
  it('no replay is made of its deliveries, and the worker sends nothing that was made in spite of it', async () => {
    const a = await subscribe();
    const { ref } = await publish([a]);
    const id = deliveryId(ref, a);
    await attempt(id, failed);
    const bodies = createEventBodies(store);
    await runUntil((await start('session_id', 'ses-1')).id, 'done');
    expect(await replayDelivery(store, (await load(id))!, clock.now(), 'anna')).toEqual({
      refused: 'erased',
    });
    expect(await bodies.load(ref)).toBe('erased');
    const begun = await beginAttempt(store, { deliveryId: id, generation: 0, subscriptionId: a }, clock.now());
    expect(begun).toEqual({ kind: 'over' });
  });

  it('a body that a worker had read before is forgotten', async () => {
    const { ref } = await publish([await subscribe(), await subscribe()]);
    const bodies = createEventBodies(store);
    expect(await bodies.load(ref)).toMatchObject({ body: expect.stringContaining('ses-1') });
    await runUntil((await start('session_id', 'ses-1')).id, 'done');
    bodies.forgetAll();
    expect(await bodies.load(ref)).toBe('erased');
  });
});

describe('a process that dies between any two steps of an erasure', () => {
  /** The context of a process that dies before its step number `steps`. */
  function dying(steps: number): DutyContext {
    let left = steps;
    const redis = new Proxy(store.redis, {
      get(target, name: string) {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          left -= 1;
          if (left < 0) throw new Error('died');
          return await value.apply(target, args);
        };
      },
    });
    return { ...context, store: { ...store, redis } };
  }

  it('leaves work that the next one does, and everything counts once', async () => {
    const [a, b, c] = [await subscribe(), await subscribe(), await subscribe('paused')];
    let hasDied = true;
    for (let steps = 0; hasDied; steps += 1) {
      const value = `session ${steps}`;
      const { ref } = await publish([a, b, c], { data: { ...data, id: value } });
      await attempt(deliveryId(ref, a), { kind: 'succeeded' });
      await attempt(deliveryId(ref, b), failed);
      const { id } = await start('session_id', value);
      let duty = eraseEvents(dying(steps));
      hasDied = false;
      for (let runs = 0; (await stateOf(id)).status !== 'done'; runs++) {
        if (runs > 500) throw new Error(`Not done after it died before step ${steps}`);
        await runOnce(duty).catch((error: Error) => {
          if (error.message !== 'died') throw error;
          hasDied = true;
          duty = eraseEvents(context);
        });
        clock.advance(61_000);
      }
      // Whatever was left of the end of the work.
      await runOnce();
      expect([steps, (await stateOf(id)).counts]).toEqual([
        steps,
        {
          events: 1,
          deliveries: 3,
          unsent: 1,
          erasedEvents: 1,
          erasedDeliveries: 3,
          endedDeliveries: 1,
          erasedResponses: 1,
        },
      ]);
      const { items } = await listAudit(store, { action: 'erasure.done' }, { limit: 1 }, clock.now());
      expect(items[0]?.detail).toMatchObject({ erasure_id: id });
      await expectNowhere(PERSON, value);
      // The next one has as many steps.
      await store.redis.del(await store.redis.keys(`${store.prefix}:*:event:*`));
    }
    const { items } = await listAudit(store, { action: 'erasure.done' }, { limit: 250 }, clock.now());
    expect(new Set(items.map(({ detail }) => detail?.erasure_id)).size).toBe(items.length);
    // About 90 erasures, each of which scans the keys of all tests of the run.
  }, 600_000);
});

describe('after a failover of the master that has the deliveries of an erased event', () => {
  it.each(['user_id', 'event_id'] as const)('a repeated erasure by %s erases them again', async (field) => {
    const sub = await subscribe();
    let event = await publish([sub]);
    while (partitionOf(event.event.id, PARTITIONS) === partitionOf(sub, PARTITIONS)) event = await publish([sub]);
    const id = deliveryId(event.ref, sub);
    await attempt(id, failed);
    const prefix = partitionPrefix(store, partitionOf(sub, PARTITIONS));
    const names = [`${prefix}:delivery:${id}`, `${prefix}:responses:${id}`] as const;
    const before = await Promise.all(names.map((key) => store.redis.hgetall(key)));
    context = { ...context, store: { ...store, spansPartitions: false } };
    const value = field === 'user_id' ? PERSON : event.event.id;
    await runUntil((await start(field, value)).id, 'done');
    expect(await load(id)).toMatchObject({ erased: true });
    await store.redis.del(...names);
    for (const [i, key] of names.entries()) await store.redis.hset(key, before[i]!);

    await runUntil((await start(field, value)).id, 'done');
    expect(await load(id)).toMatchObject({ erased: true });
    expect(await store.redis.exists(names[1])).toBe(0);
  });
});
