/** The stored format in Redis: who creates it, who may open it, how it is raised, and how a process learns of that. */
import { once } from 'node:events';
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { deliveryId, type Event, eventRef, StartError, StorageUnavailable } from '@posthorn/core';
import { eventually, testPrefix, testRedisUrl } from '@posthorn/testing';
import {
  advanceFormat,
  connectRedis,
  newSubscription,
  openStore,
  readFormat,
  sendHeartbeat,
  storeEvent,
} from '../index.ts';
import { byStatusKey, installationKey, partitionPrefix, queueKey, subscriptionKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { WorkersSettings } from './differing-settings.ts';
import type { FormatRange } from './formats.ts';

const DAY = 86_400_000;
const BOTH: FormatRange = { oldest: 1, newest: 2 };
const FIRST: FormatRange = { oldest: 1, newest: 1 };
const redis = connectRedis({ REDIS_URL: testRedisUrl() });
let prefix: string;
let key: string;
let ends: (() => unknown)[] = [];
beforeEach(() => {
  prefix = testPrefix();
  key = installationKey(prefix);
});
afterEach(async () => {
  jest.useRealTimers();
  for (const end of ends.reverse()) await end();
  ends = [];
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(keys);
});
afterAll(() => redis.disconnect());

const OLD_WORKER = {
  host: 'h',
  pid: 3,
  version: '0.1.0',
  startedAtMs: 0,
  concurrency: 1,
  addressConcurrency: 1,
  inFlight: 0,
  outageSinceMs: null,
};

async function redisNowMs(): Promise<number> {
  const [s, us] = await redis.time();
  return Number(s) * 1000 + Math.floor(Number(us) / 1000);
}

interface Opening {
  formats?: FormatRange;
  id?: string;
  settings?: ({ RETENTION?: number } & WorkersSettings) | undefined;
  onMismatch?: (error: Error) => void;
  onWarning?: (text: string) => void;
}
/** Opens the store as a process does. */
async function open({ formats = BOTH, id = 'one', settings, ...options }: Opening = {}) {
  const opened = openStore(
    { REDIS_URL: testRedisUrl(), KEY_PREFIX: prefix, PARTITIONS: 1, RETENTION: DAY, ...settings },
    {
      onError(error) {
        throw error;
      },
      identity: { id, app: 'worker', version: '9.9.9' },
      formats,
      ...options,
    },
  );
  ends.push(() => opened.stop());
  await opened.start();
  return opened;
}
/** What 0.1.0 leaves: it names no format. */
const leaveFirstRelease = () => redis.hset(key, { record_format: 2, partitions: 1, event_search: 'on' });
/** As if nothing had been in the way for as long as it takes. */
async function letWindowPass() {
  const longAgo = Date.now() - 2 * DAY;
  await redis.hset(key, { settled_since: longAgo, checked_since: longAgo, looked_at: Date.now() });
  await redis.hdel(key, 'event_search');
}
const advance = (opened: Awaited<ReturnType<typeof open>>, windowMs = DAY) =>
  advanceFormat(opened.store, { windowMs, version: '9.9.9', readable: BOTH });

it('processes warn once of each setting that a running one has with another value, whoever started first', async () => {
  const warnings: Record<string, string[]> = { a: [], b: [], c: [] };
  const start = (id: string, settings: Opening['settings']) =>
    open({ id, settings, onWarning: (text) => warnings[id]?.push(/^.* but \S+/.exec(text)?.[0] ?? '') });
  const state = { app: 'ingest', seenAtMs: Date.now() - 60_000, settings: { RETENTION: '7d' } };
  await redis.hset(key, {
    partitions: 1,
    'process:gone': JSON.stringify(state),
    'process:bad': '{',
    'process:null': 'null',
  });
  const first = await start('a', { RETRY_DELAYS: [60_000, 90_500], PAUSE_AFTER: 20, RELEASE_RATE: 50 });
  await start('b', { RETENTION: 36 * 3_600_000, RETRY_DELAYS: [60_000], PAUSE_AFTER: 3, RELEASE_RATE: 5 });
  await start('c', {});
  const toA = ['RETENTION is 1d here, but 36h', 'RETENTION_SUCCEEDED is 1d here, but 36h'];
  // As if Redis was reached again: the process registers at once, not only after 5 s.
  first.store.format.doubt();
  await first.store.format.confirm();
  await eventually('the warnings', () => (warnings.a?.length ?? 0) >= 5);
  // Redis stores them in any order.
  const warned = (id: string) => warnings[id]?.filter((text) => text !== '').toSorted();
  expect(warned('a')).toEqual([
    'PAUSE_AFTER is 20 here, but 3',
    'RELEASE_RATE is 50 here, but 5',
    ...toA,
    'RETRY_DELAYS is 1m,90500ms here, but 1m',
  ]);
  expect(warned('b')).toEqual([
    'PAUSE_AFTER is 3 here, but 20',
    'RELEASE_RATE is 5 here, but 50',
    'RETENTION is 36h here, but 1d',
    'RETENTION_SUCCEEDED is 36h here, but 1d',
    'RETRY_DELAYS is 1m here, but 1m,90500ms',
  ]);
  expect(warned('c')).toEqual(toA);
});

describe('the stored format', () => {
  it('of an empty Redis is the newest, whoever starts first, also if many start at once', async () => {
    const opened = await Promise.all(['a', 'b', 'c', 'd'].map((id) => open({ id })));
    expect(opened.map(({ store }) => store.format.current())).toEqual([2, 2, 2, 2]);
    expect(await redis.hmget(key, 'format', 'oldest_format', 'raised_by')).toEqual(['2', '2', '9.9.9']);
    expect(await redis.hget(key, 'registrations')).toBe('4');
  });
  it('of data from 0.1.0, which says none, is the first', async () => {
    await leaveFirstRelease();
    const { store } = await open();
    expect(store.format.current()).toBe(1);
    expect(await readFormat(store)).toMatchObject({ current: 1, oldestStored: 1 });
    expect(await redis.hget(key, 'partitions')).toBe('1');
  });
  it('is the first where data lost their record of the installation', async () => {
    await redis.zadd(byStatusKey(partitionPrefix({ prefix }, 0), 'held'), 1, 'dlv_1');
    expect((await open()).store.format.current()).toBe(1);
  });
  it('that is newer than a release reads makes it refuse, with its own exit code, and leaves everything as it is', async () => {
    await redis.hset(key, { format: 3, partitions: 1, raised_by: '1.2.3' });
    const before = await redis.hgetall(key);
    const error: unknown = await open().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StartError);
    expect(error).toMatchObject({ exitCode: 78, message: expect.stringContaining('Start release 1.2.3 or a later') });
    expect(await redis.hgetall(key)).toEqual(before);
  });
  it('of records that a release no longer reads makes it refuse', async () => {
    await redis.hset(key, { format: 2, oldest_format: 1, partitions: 1 });
    const error: unknown = await open({ formats: { oldest: 2, newest: 2 } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ exitCode: 78, message: expect.stringContaining('records of stored format 1') });
  });
});

describe('a raise', () => {
  it('comes once the window is over; a start of 0.1.0 finds no number of partitions from then on', async () => {
    await leaveFirstRelease();
    const opened = await open();
    expect(await advance(opened)).toMatchObject({ kind: 'settling' });
    expect((await readFormat(opened.store)).raisesAtMs).toBeGreaterThan(Date.now() + DAY / 2);
    await letWindowPass();
    expect(await advance(opened)).toMatchObject({ raisedTo: 2 });
    expect(await advance(opened)).toEqual({ kind: 'newest' });
    expect(Number(await redis.hget(key, 'partitions'))).toBeNaN();
    expect(await readFormat(opened.store)).toMatchObject({ current: 2, oldestStored: 1, raisesAtMs: undefined });
    // Later processes find the number elsewhere.
    expect((await open({ id: 'two' })).store.format.current()).toBe(2);
  });
  it('waits for a registered process that does not read the next format, and comes once it has stopped', async () => {
    await leaveFirstRelease();
    const [opened, old] = [await open(), await open({ id: 'old', formats: FIRST })];
    await letWindowPass();
    expect(await advance(opened)).toMatchObject({ kind: 'waiting' });
    expect((await readFormat(opened.store)).waitsFor).toEqual([expect.stringContaining('(release 9.9.9)')]);
    await old.stop();
    // The window has begun again.
    expect(await advance(opened)).toMatchObject({ kind: 'settling' });
    await letWindowPass();
    expect(await advance(opened)).toMatchObject({ raisedTo: 2 });
  });
  it('waits for a worker that sends heartbeats and is not registered', async () => {
    await leaveFirstRelease();
    const opened = await open();
    await sendHeartbeat(opened.store, { id: 'unknown', ...OLD_WORKER });
    await sendHeartbeat(opened.store, { id: 'one', ...OLD_WORKER });
    await letWindowPass();
    expect(await advance(opened)).toEqual({ kind: 'waiting', processes: ['worker h:3 (release 0.1.0)'] });
  });
  it('is said to wait for a worker of 0.1.0 also while that one does the maintenance, so that nobody looks', async () => {
    await leaveFirstRelease();
    const opened = await open();
    await advance(opened);
    expect(await readFormat(opened.store)).toMatchObject({ waitsFor: [], raisesAtMs: expect.any(Number) });
    await sendHeartbeat(opened.store, { id: 'unknown', ...OLD_WORKER });
    const waiting = { waitsFor: ['worker h:3 (release 0.1.0)'], raisesAtMs: undefined };
    expect(await readFormat(opened.store)).toMatchObject(waiting);
  });
  it('has no time once nobody has looked for a minute', async () => {
    await leaveFirstRelease();
    const opened = await open();
    await advance(opened);
    await redis.hset(key, 'looked_at', (await redisNowMs()) - 60_000);
    expect(await readFormat(opened.store)).toMatchObject({ waitsFor: [], raisesAtMs: undefined });
  });
  it('removes the sign of an ingest process of 0.1.0, and waits where it comes back', async () => {
    await leaveFirstRelease();
    const opened = await open();
    await letWindowPass();
    await redis.hset(key, 'event_search', 'on');
    await redis.hdel(key, 'checked_since');
    expect(await advance(opened)).toMatchObject({ kind: 'checking' });
    expect(await redis.hexists(key, 'event_search')).toBe(0);
    await redis.hset(key, 'event_search', 'on');
    expect(await advance(opened)).toMatchObject({ kind: 'waiting' });
    expect(await redis.hmget(key, 'settled_since', 'checked_since')).toEqual([null, null]);
  });
  it('is refused if a process has registered since the record was read, or another has raised it', async () => {
    await leaveFirstRelease();
    const { store } = await open();
    const registrations = (await redis.hget(key, 'registrations')) ?? '';
    await open({ id: 'old', formats: FIRST });
    expect(await runScript(store, 'raiseFormat', key, { from: 1, registrations, version: '' })).toBe(false);
    const newer = (await redis.hget(key, 'registrations')) ?? '';
    const raise = () => runScript(store, 'raiseFormat', key, { from: 1, registrations: newer, version: '' });
    expect([await raise(), await raise()]).toEqual([true, false]);
  });
  it('forgets processes that have been silent for ten minutes', async () => {
    const { store } = await open();
    const silent = { app: 'worker', version: '0', host: 'h', pid: 1, ...BOTH };
    await redis.hset(key, 'process:a', JSON.stringify({ ...silent, seenAtMs: Date.now() - 601_000 }));
    await redis.hset(key, 'process:b', JSON.stringify({ ...silent, seenAtMs: Date.now() - 540_000 }));
    await advanceFormat(store, { windowMs: 0, version: '', readable: BOTH });
    expect((await readFormat(store)).processes.map(({ id }) => id).sort()).toEqual(['b', 'one']);
  });
});

describe('a process that runs', () => {
  it('registers what it reads, and deregisters when it stops', async () => {
    const [, two] = [await open(), await open({ id: 'two' })];
    const { processes } = await readFormat(two.store);
    expect(processes.map(({ id }) => id).sort()).toEqual(['one', 'two']);
    expect(processes[0]).toMatchObject({ app: 'worker', version: '9.9.9', pid: process.pid, ...BOTH });
    await two.stop();
    expect(await redis.hexists(key, 'process:two')).toBe(0);
    expect(await redis.hexists(key, 'process:one')).toBe(1);
  });
  it('learns of a raise, and so do its scripts that name the format', async () => {
    await leaveFirstRelease();
    const { store } = await open();
    const fields = { eventTypes: 'all' as const, environment: 'both' as const, description: '', sealedSecret: 's' };
    const { id: to } = newSubscription({ url: 'https://example.com/', ...fields }, 1);
    await redis.hset(subscriptionKey(partitionPrefix(store, 0), to), 'status', 'active');
    /** Stores an event with a delivery. Returns the name and the data of its job, which has some in format 1 only. */
    const jobOf = async (id: string) => {
      const sent: Event = { id, type: 'session.created', createdAt: '', environment: 'sandbox', dataJson: '{}' };
      const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: Date.now(), subscriptionIds: [to] };
      await storeEvent(store, stored, { withDeliveries: true });
      return await redis.hmget(queueKey(partitionPrefix(store, 0), deliveryId(stored.ref, to)), 'name', 'data');
    };
    expect(await jobOf('evt_1')).toEqual([to, '{"event_id":"evt_1/s"}']);
    await redis.hset(key, 'format', 2);
    expect(store.format.current()).toBe(1);
    jest.useFakeTimers({ now: Date.now() + 30_000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout'] });
    expect(await jobOf('evt_2')).toEqual([to, null]);
    expect(store.format.current()).toBe(2);
  });
  it('does nothing on what it knows for too long: it asks first, and runs no script on data that it cannot read', async () => {
    const told = jest.fn();
    const { store } = await open({ onMismatch: told });
    expect(store.format.confirm()).toBeUndefined();
    await redis.hset(key, { format: 3, raised_by: '3.0.0' });
    jest.useFakeTimers({ now: Date.now() + 30_000, doNotFake: ['nextTick', 'setImmediate', 'setTimeout'] });
    const lease = () =>
      runScript(store, 'lease', partitionPrefix(store, 0), { key: `${prefix}:x`, holder: 'a', lifeMs: 1000 });
    await expect(lease()).rejects.toThrow('Start release 3.0.0 or a later one');
    await expect(lease()).rejects.toThrow(StartError);
    expect(told).toHaveBeenCalledTimes(1);
    expect(await redis.exists(`${prefix}:x`)).toBe(0);
  });
  it('does nothing while its clock is off by more than half of a short retention', async () => {
    const { store } = await open({ settings: { RETENTION: 2 * 3_600_000 } });
    const first = partitionPrefix(store, 0);
    const lease = () => runScript(store, 'lease', first, { key: `${prefix}:x`, holder: 'a', lifeMs: 1000 });
    const setBack = (ms: number) =>
      jest.useFakeTimers({ now: Date.now() - ms, doNotFake: ['nextTick', 'setImmediate', 'setTimeout'] });
    setBack(50 * 60_000);
    await lease();
    setBack(40 * 60_000);
    await expect(lease()).rejects.toThrow('the clock of this process is 90 minutes behind that of Redis');
    jest.useRealTimers();
    await lease();
  });
  it.each([
    ['behind', -1, 'behind that of Redis, so what it stores would expire too soon'],
    ['ahead of', 1, 'ahead of that of Redis, so what is held or waits for a retry would be due too soon'],
  ])('does nothing while its clock is more than a day %s that of Redis', async (_side, sign, what) => {
    const { store, checkReady } = await open();
    const first = partitionPrefix(store, 0);
    const lease = () => runScript(store, 'lease', first, { key: `${prefix}:x`, holder: 'a', lifeMs: 1000 });
    jest.useFakeTimers({
      now: Date.now() + sign * (DAY + 60_000),
      doNotFake: ['nextTick', 'setImmediate', 'setTimeout'],
    });
    await expect(lease()).rejects.toThrow(`the clock of this process is 24 hours ${what}`);
    await expect(checkReady()).rejects.toThrow(StorageUnavailable);
    jest.useRealTimers();
    await lease();
    expect(await redis.exists(`${prefix}:x`)).toBe(1);
  });
  it('does nothing on a Redis that was emptied, says why once, and goes on by itself when the data are back', async () => {
    const told = jest.fn();
    const { store, checkReady } = await open({ onWarning: told });
    const before = told.mock.calls.length;
    const first = partitionPrefix(store, 0);
    const lease = () => runScript(store, 'lease', first, { key: `${prefix}:x`, holder: 'a', lifeMs: 1000 });
    const data = await redis.hgetall(key);
    await redis.del(key);
    await eventually('the warning', () => told.mock.calls.length > before);
    const reason = 'Redis has lost the record of this installation';
    await expect(lease()).rejects.toThrow(reason);
    await expect(checkReady()).rejects.toThrow(reason);
    expect(told.mock.calls.slice(before)).toEqual([[expect.stringContaining(reason)]]);
    // What a backup lacks is lost with it, so it comes second; and an app that starts would take the Redis for its own.
    const advice = 'start Redis on the right folder, or restore a backup (docs/redis.md). Start or restart no app';
    expect(told.mock.calls.slice(before)).toEqual([[expect.stringContaining(advice)]]);
    expect(await redis.keys(`${prefix}:*`)).toEqual([]);
    await redis.hset(key, data);
    await lease();
    await checkReady();
  });
  it('asks before its next script whether the data are there when it has reached Redis again', async () => {
    const { store } = await open();
    await redis.del(key);
    store.redis.disconnect(true);
    const first = partitionPrefix(store, 0);
    const lease = { key: `${prefix}:x`, holder: 'a', lifeMs: 1000 };
    await once(store.redis, 'ready');
    await expect(runScript(store, 'lease', first, lease)).rejects.toThrow(StorageUnavailable);
    expect(await redis.keys(`${prefix}:*`)).toEqual([]);
  });
  it('does not join what another process has begun anew after Redis was emptied', async () => {
    const { checkReady, store } = await open();
    const data = await redis.hgetall(key);
    const begunAt = await redis.hget(key, 'begun_at');
    await redis.del(key);
    await eventually('a later begin', async () => Number(begunAt) < (await redisNowMs()));
    const another = await open({ id: 'another' });
    const reconnect = async () => {
      for (const { redis: own } of [store, another.store]) {
        own.disconnect(true);
        await once(own, 'ready');
      }
    };
    await reconnect();
    await expect(checkReady()).rejects.toThrow('another server took its place');
    await another.checkReady();
    // The data are back, for both.
    await redis.del(key);
    await redis.hset(key, data);
    await reconnect();
    await checkReady();
    await another.checkReady();
    expect(await redis.hget(key, 'begun_at')).toBe(begunAt);
  });
  it('notes when an installation began whose record does not say so, the same for all processes', async () => {
    const { checkReady, store } = await open();
    const begunAt = await redis.hget(key, 'begun_at');
    await redis.hdel(key, 'begun_at');
    store.redis.disconnect(true);
    await once(store.redis, 'ready');
    await checkReady();
    expect(await redis.hget(key, 'begun_at')).toBe(begunAt);
    await open({ id: 'another' });
    expect(await redis.hget(key, 'begun_at')).toBe(begunAt);
  });
  it('notices by itself within seconds that it cannot read the data any more', async () => {
    const told = jest.fn();
    await open({ onMismatch: told });
    await redis.hset(key, 'format', 3);
    await eventually('the mismatch', () => told.mock.calls.length === 1);
  });
  it('notices that data of another number of partitions are in place of its own, and is not registered there', async () => {
    const told = jest.fn<(error: Error) => void>();
    await open({ onMismatch: told });
    const other = { format: 2, oldest_format: 2, partitions: 'see docs', partition_count: 4 };
    await redis.multi().del(key).hset(key, other).exec();
    await eventually('the mismatch', () => told.mock.calls.length === 1);
    const message = `PARTITIONS is 1, but the data under KEY_PREFIX "${prefix}" was written with 4. Set PARTITIONS=4, or`;
    expect(told.mock.calls[0]![0]).toMatchObject({ exitCode: 1, message: expect.stringContaining(message) });
    expect(await redis.hexists(key, 'process:one')).toBe(0);
  });
});
