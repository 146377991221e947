/** The notifier posts the notices of the partitions whose lease it holds, on a real Redis. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { DAY_MS, HOUR_MS, type NoticeType, newReplayId, partitionOfId } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import type { Sender, SendResult } from '@posthorn/sender';
import { addOutageNotice, reportedDropped, waitingNotices } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { Registry } from 'prom-client';
import { store, subscribe } from '../../../packages/store/src/test-deliveries.ts';
import { createWorkerMetrics } from './metrics.ts';
import { createNoticeService, createNotifier, type NoticeContext } from './notices.ts';

const waiting = () => waitingNotices(store, 0, 100, {});
/** When the notifiers begin: just after the notices that wait before each test. */
let begunAtMs: number;
beforeEach(async () => {
  const notice = { type: 'outage.ended', atMs: Date.now(), reason: 'dns', worker: 'w', sinceMs: 0 } as const;
  for (let i = 0; i < 25; i++) await addOutageNotice(store, { ...notice, id: `${i}` });
  begunAtMs = 1 + Number.parseInt((await waiting()).at(-1)!.entryId, 10);
});
afterEach(() => void jest.restoreAllMocks());

type Send = (id: string, headers: Record<string, string>) => Promise<number | SendResult>;
type Report = Partial<Pick<NoticeContext, 'logger' | 'metrics' | 'clock'>>;

function contextOf(send: Send, report: Report = {}): NoticeContext {
  const sender: Sender = {
    async send({ headers }) {
      const result = await send(headers['Service-Event-Id']!, headers);
      return typeof result === 'number' ? { kind: 'responded', statusCode: result, ip: '127.0.0.1' } : result;
    },
    close: () => undefined,
  };
  return {
    store,
    clock: { now: () => begunAtMs },
    logger: createLogger({ app: 'test', level: 'silent' }),
    metrics: { notice: () => undefined, noticeGivenUp: () => undefined },
    holder: 'this',
    to: { url: 'https://example.com/', secret: 'secret', sender },
    isCutOff: () => false,
    ...report,
  };
}

/** Adds a notice that is newer than the notifiers. */
const addAfterBegin = (type: NoticeType = 'outage.ended', sequence = 0) =>
  store.redis.xadd(`${store.prefix}:{0}:notices`, `${begunAtMs + 1}-${sequence}`, 'k', type, 'at', begunAtMs);

/** One run of the service. */
async function runOnce(send: Send, report?: Report, stopping = new AbortController().signal): Promise<void> {
  await createNotifier(contextOf(send, report), [0])(stopping);
}

it('leaves the other notices to the process that has got the lease while a batch was posted', async () => {
  await runOnce(async () => {
    await store.redis.set(`${store.prefix}:{0}:notifier`, 'another');
    return 200;
  });
  expect(await waiting()).toHaveLength(15);
});

it('posts the others where some are refused', async () => {
  const all = (await waiting()).map(({ id }) => id);
  const refused = [all[0]!, all[12]!];
  const posted: string[] = [];
  await runOnce(async (id) => {
    posted.push(id);
    return refused.includes(id) ? 400 : 200;
  });
  expect(posted.sort()).toEqual(all.sort());
  expect((await waiting()).map(({ id }) => id)).toEqual(refused);
});

it('posts the others where posting one throws', async () => {
  const [broken] = (await waiting()).map(({ id }) => id);
  const post = async (id: string) => {
    if (id === broken) throw new Error('broken');
    return 200;
  };
  await expect(runOnce(post)).rejects.toThrow('broken');
  expect(await waiting()).toHaveLength(16);
});

it('posts one whose replay cannot be read', async () => {
  const replayId = newReplayId((await subscribe()).id);
  const partition = partitionOfId(replayId, store.partitions);
  await store.redis.set(`${store.prefix}:{${partition}}:replay:${replayId}`, 'wrong');
  const fields = ['k', 'replay.done', 'at', Date.now(), 'r', replayId];
  await store.redis.xadd(`${store.prefix}:{0}:notices`, `${begunAtMs - 1}-999`, ...fields);
  await runOnce(async () => 200);
  expect(await waiting()).toEqual([]);
});

it('waits with all others where none of a batch is accepted', async () => {
  const posted: string[] = [];
  await runOnce(async (id) => {
    posted.push(id);
    return 503;
  });
  expect(posted).toHaveLength(10);
  expect(await waiting()).toHaveLength(25);
});

it.each([408, 429, 503])('waits longer each time with all of them where the response is %i', async (status) => {
  let posts = 0;
  const send = async () => {
    posts += 1;
    return status;
  };
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const run = createNotifier(contextOf(send), [0]);
  const postsAt = async (ms: number) => {
    nowMs = ms;
    posts = 0;
    await run(new AbortController().signal);
    return posts;
  };
  expect([await postsAt(0), await postsAt(999), await postsAt(1_000)]).toEqual([10, 0, 10]);
  // 25 are two batches and a half.
  expect([await postsAt(2_999), await postsAt(3_000)]).toEqual([0, 5]);
});

it('gives one up that was not accepted for a day', async () => {
  const times = (await waiting()).map(({ atMs }) => atMs);
  const given: (number | undefined)[] = [];
  const metrics = { notice: () => undefined, noticeGivenUp: (count?: number) => void given.push(count) };
  const runAt = (nowMs: number) => runOnce(async () => 503, { metrics, clock: { now: () => nowMs } });
  await runAt(Math.min(...times) + DAY_MS);
  expect([(await waiting()).length, given.length]).toEqual([25, 0]);
  await runAt(Math.max(...times) + DAY_MS + 1);
  expect([(await waiting()).length, given.length]).toEqual([0, 25]);
});

it('signs one with the time at which it is posted: receivers refuse what is old', async () => {
  const nowMs = Date.now() + HOUR_MS;
  const signed = new Set<string | undefined>();
  const send: Send = async (_id, headers) => {
    signed.add(headers['Service-Signature']?.split(',')[0]);
    return 200;
  };
  await runOnce(send, { clock: { now: () => nowMs } });
  expect([...signed]).toEqual([`t=${Math.floor(nowMs / 1000)}`]);
});

it('posts the others behind more than a batch of those that are always refused', async () => {
  const all = (await waiting()).map(({ id }) => id);
  const refused = all.slice(0, 20);
  const service = createNoticeService(contextOf(async (id) => (refused.includes(id) ? 400 : 200)));
  await service.start();
  await eventually('the others to be posted', async () => (await waiting()).length === refused.length);
  await service.stop(0);
  expect((await waiting()).map(({ id }) => id)).toEqual(refused);
});

it('posts a new one before it repeats those that are always refused, however many they are', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  let lastId = '';
  const run = createNotifier(
    contextOf(async (id) => (id === lastId ? 200 : 400)),
    [0],
  );
  const runAt = async (ms: number) => {
    nowMs = ms;
    await run(new AbortController().signal);
  };
  // One batch in each run.
  for (const ms of [0, 1_000, 2_000]) await runAt(ms);
  await addAfterBegin();
  lastId = (await waiting()).at(-1)!.id;
  // The first batch is due again.
  await runAt(3_000);
  expect((await waiting()).map(({ id }) => id)).not.toContain(lastId);
});

it('posts a new one before those that waited when the process started, which may all have been refused', async () => {
  const posted: string[] = [];
  const refuse = async (id: string) => {
    posted.push(id);
    return 400;
  };
  const run = createNotifier(contextOf(refuse), [0]);
  await addAfterBegin();
  await run(new AbortController().signal);
  expect(posted).toEqual([`ntc_0-${begunAtMs + 1}-0`]);
});

it('posts a pause before the failed deliveries of a large incident, and logs all of them at once', async () => {
  for (let i = 0; i < 300; i++) await addAfterBegin('delivery.failed', i);
  await addAfterBegin('subscription.failures', 300);
  await addAfterBegin('subscription.paused', 301);
  const logged: NoticeType[] = [];
  const metrics = { notice: (type: NoticeType) => void logged.push(type), noticeGivenUp: () => undefined };
  const posted: (string | undefined)[] = [];
  const send: Send = async (_id, headers) => {
    posted.push(headers['Service-Event']);
    return 200;
  };
  const run = createNotifier(contextOf(send, { metrics }), [0]);
  await run(new AbortController().signal);
  expect(posted.indexOf('subscription.paused')).toBe(0);
  expect(logged.slice(-2)).toEqual(['subscription.failures', 'subscription.paused']);
  while ((await waiting()).length > 0) await run(new AbortController().signal);
  expect(posted.filter((type) => type === 'subscription.paused')).toHaveLength(1);
  expect(posted).toHaveLength(25 + 302);
});

it('repeats a pause that failed before it goes on with the failed deliveries of a large incident', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  for (let i = 0; i < 300; i++) await addAfterBegin('delivery.failed', i);
  await addAfterBegin('subscription.paused', 300);
  const posted: (string | undefined)[] = [];
  const send: Send = async (_id, headers) => {
    posted.push(headers['Service-Event']);
    return nowMs === 0 ? 503 : 200;
  };
  const run = createNotifier(contextOf(send), [0]);
  await run(new AbortController().signal);
  const before = posted.length;
  nowMs = 1_000;
  await run(new AbortController().signal);
  expect(posted.slice(before, before + 10)).toContain('subscription.paused');
});

it('posts the others while all pauses of a large incident fail', async () => {
  jest.spyOn(performance, 'now').mockReturnValue(0);
  for (let i = 0; i < 100; i++) await addAfterBegin(i % 2 === 0 ? 'delivery.failed' : 'subscription.paused', i);
  const send: Send = async (_id, headers) => (headers['Service-Event'] === 'subscription.paused' ? 502 : 200);
  await createNotifier(contextOf(send), [0])(new AbortController().signal);
  expect((await waiting()).filter(({ type }) => type === 'delivery.failed')).toEqual([]);
});

it('only logs them where none is to be posted, as many as there are', async () => {
  for (let i = 0; i < 300; i++) await addAfterBegin('delivery.failed', i);
  let logged = 0;
  const metrics = { notice: () => void logged++, noticeGivenUp: () => undefined };
  await createNotifier(
    { ...contextOf(async () => 200, { metrics }), to: undefined },
    [0],
  )(new AbortController().signal);
  expect([logged, await waiting()]).toEqual([325, []]);
});

it.each([0, 1])('leaves those that it would post first to the process that has the lease for %i runs', async (runs) => {
  for (let i = 0; i < 30; i++) await addAfterBegin('subscription.paused', i);
  let posts = 0;
  const send = async () => {
    posts += 1;
    await store.redis.set(`${store.prefix}:{0}:notifier`, 'another');
    return 200;
  };
  const run = createNotifier(contextOf(send), [0]);
  for (let i = 0; i <= runs; i++) await run(new AbortController().signal);
  // The other process has posted them meanwhile.
  await store.redis.del(`${store.prefix}:{0}:notices`, `${store.prefix}:{0}:notifier`);
  await addAfterBegin('subscription.paused', 99);
  await run(new AbortController().signal);
  expect(posts).toBe(11);
});

it('posts none again that another process has posted while this one waited', async () => {
  const now = jest.spyOn(performance, 'now').mockReturnValue(0);
  for (let i = 0; i < 30; i++) await addAfterBegin('subscription.paused', i);
  const posted: string[] = [];
  const send = async (id: string) => {
    posted.push(id);
    return posted.length > 10 ? 200 : 503;
  };
  const run = createNotifier(contextOf(send), [0]);
  await run(new AbortController().signal);
  await store.redis.del(`${store.prefix}:{0}:notices`, `${store.prefix}:{0}:notifier`);
  await run(new AbortController().signal);
  now.mockReturnValue(HOUR_MS);
  await addAfterBegin('subscription.paused', 99);
  await run(new AbortController().signal);
  expect(posted.slice(10)).toEqual([`ntc_0-${begunAtMs + 1}-99`]);
});

it('posts those of another partition while all of one are refused and due again', async () => {
  let nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const run = createNotifier(
    contextOf(async (id) => (id.startsWith('ntc_0-') ? 400 : 200)),
    [0, 1],
  );
  await store.redis.xadd(`${store.prefix}:{1}:notices`, '*', 'k', 'outage.ended', 'at', Date.now());
  for (let i = 0; i < 2; i++) {
    await run(new AbortController().signal);
    nowMs += HOUR_MS;
  }
  expect(await waitingNotices(store, 1, 1, {})).toEqual([]);
});

it('ends with the batch that is being posted when the process stops', async () => {
  const stopping = new AbortController();
  await runOnce(
    async () => {
      stopping.abort();
      return 200;
    },
    {},
    stopping.signal,
  );
  expect(await waiting()).toHaveLength(15);
});

it('logs why one could not be posted', async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ app: 'test', level: 'warn', destination });
  await runOnce(async () => ({ kind: 'connection_failed', error: 'dns', detail: 'ENOTFOUND', ip: null }), { logger });
  const deferred = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'notice.deferred');
  expect(deferred).toMatchObject({ outcome: 'connection_failed', error: 'dns', detail: 'ENOTFOUND' });
});

it('reports once how many were dropped unsent', async () => {
  await store.redis.set(`${store.prefix}:{0}:notices_dropped`, '7');
  const given: (number | undefined)[] = [];
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ app: 'test', level: 'error', destination });
  const metrics = { notice: () => undefined, noticeGivenUp: (count?: number) => void given.push(count) };
  await runOnce(async () => 200, { logger, metrics });
  await addOutageNotice(store, { id: 'o', type: 'outage.ended', atMs: 0, reason: 'dns', worker: 'w', sinceMs: 0 });
  await runOnce(async () => 200, { logger, metrics });
  expect(given).toEqual([7]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: 'notices.dropped', notices: 7, partition: 0 }]);
  expect(lines).toHaveLength(1);
});

it('goes on after dropped notices were reported twice, as when a reply is lost', async () => {
  await store.redis.set(`${store.prefix}:{0}:notices_dropped`, '7');
  for (let i = 0; i < 2; i++) await reportedDropped(store, 0, 7);
  await runOnce(async () => 200, { metrics: createWorkerMetrics(new Registry()) });
  expect(await waiting()).toEqual([]);
});
