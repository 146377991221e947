/** Processes that are killed under load: accepted events arrive, and a bulk replay finishes. */
import { describe, expect, it, jest } from '@jest/globals';
import { deliveriesWith, eventually, isDelivery, testRedisUrl } from '@posthorn/testing';
import { ownApis, ownClient, ownEnv, ownProcess, ownProxy, ownReceiver } from './own.ts';
import { redisServer } from './redis-servers.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent, worldEnv } from './world.ts';

/** So much work takes minutes on a busy machine. */
const HUNG_AFTER_MS = 600_000;
jest.setTimeout(2 * HUNG_AFTER_MS);

describe('a worker that is killed', () => {
  it('loses none of 10,000 deliveries when it is one of four', async () => {
    const events = 10_000;
    const env = ownEnv({ PARTITIONS: '2', LOG_LEVEL: 'warn' });
    const { publishBatch, subscribe, deliveries, operate } = await ownApis({ ...env, LOG_LEVEL: 'info' });
    const to = await ownReceiver();
    await subscribe(to.url);
    await subscribe(to.url, { event_types: ['session.expired'] });
    const workers = Array.from({ length: 4 }, () =>
      ownProcess('eager-worker', { ...env, LOG_LEVEL: 'info', ADDRESS_CONCURRENCY: '50' }),
    );
    await Promise.all(workers.map(({ ready }) => ready));
    const accepted = new Set<string>();
    for (let batch = 0; batch < events / 500; batch++) {
      const answer = await publishBatch(Array.from({ length: 500 }, () => sampleEvent()));
      for (const result of answer.body.results) {
        expect(result).toMatchObject({ status: 202, deliveries: 1 });
        accepted.add(result.id);
      }
      if (batch === 10) workers[0]!.child.kill('SIGKILL');
    }
    expect(accepted.size).toBe(events);
    const arrived = () => new Set(to.requests.map((request) => request.headers['service-event-id']).filter(Boolean));
    await eventually(
      'every event to arrive',
      () => to.requests.length >= events && arrived().size === events,
      HUNG_AFTER_MS,
    );
    const there = arrived();
    expect([...accepted].filter((id) => !there.has(id))).toEqual([]);
    await eventually(
      'every delivery to be recorded',
      async () => (await deliveries('status=pending&limit=1')).length === 0,
      HUNG_AFTER_MS,
    );
    expect((await operate('GET', '/v1/deliveries?status=failed')).body.data).toEqual([]);
    // Only attempts that the killed worker had in flight may have arrived twice.
    expect(to.requests.filter(isDelivery).length - events).toBeLessThanOrEqual(200);
  });
});

describe('a bulk replay', () => {
  const COUNT = 5_000;
  it(`of ${COUNT} is completed when the console is killed in the middle, and sends each delivery once`, async () => {
    const env = ownEnv({ RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000000', ADDRESS_CONCURRENCY: '100' });
    const { publishBatch, subscribe, operator } = await ownApis(env);
    ownProcess('worker', env);
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await subscribe(to.url);
    for (let sent = 0; sent < COUNT; sent += 500) {
      await publishBatch(Array.from({ length: 500 }, () => sampleEvent()));
    }
    const redis = ownClient({ REDIS_URL: testRedisUrl() });
    const at = (name: string) => `${env.KEY_PREFIX}:{0}:${name}`;
    const countOf = async (status: string) =>
      (await redis.zcard(at(`by_status:${status}`))) + (status === 'succeeded' ? await redis.xlen(at(status)) : 0);
    await eventually('all to fail', async () => (await countOf('failed')) === COUNT, HUNG_AFTER_MS);
    to.answerWith(200);
    const before = to.requests.length;
    const started = await fetch(`${(await operator.ready).url}/v1/replays`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ subscription_id: id }),
    });
    const { id: replayId, total } = (await started.json()) as { id: string; total: number };
    expect(total).toBe(COUNT);
    operator.child.kill('SIGKILL');
    await operator.ended;
    const next = ownProcess('console', env);
    const { operate } = apiClients('', (await next.ready).url);
    const replay = await eventually('it to end', async () => {
      const { body } = await operate('GET', `/v1/replays/${replayId}`);
      return body.status !== 'running' && body;
    });
    expect(replay).toMatchObject({ status: 'done', total: COUNT, replayed: COUNT, skipped: 0 });
    await eventually('all to succeed', async () => (await countOf('succeeded')) === COUNT, HUNG_AFTER_MS);
    const arrived = to.requests.slice(before).filter(isDelivery);
    expect(arrived).toHaveLength(COUNT);
    expect(new Set(arrived.map(({ headers }) => headers['service-event-id'])).size).toBe(COUNT);
    expect(new Set(arrived.map(({ headers }) => headers['service-delivery-id'])).size).toBe(COUNT);
  });

  it('is completed when the worker that runs it is killed, and replays each delivery once', async () => {
    const server = await redisServer();
    const way = await ownProxy(server.port);
    const env: Record<string, string> = {
      ...worldEnv('posthorn', server.url),
      LOG_LEVEL: 'info',
      RETRY_DELAYS: '5ms',
      PAUSE_AFTER: '1000000',
      ADDRESS_CONCURRENCY: '100',
    };
    const { publishBatch, subscribe, operate } = await ownApis(env);
    const worker = ownProcess('worker', { ...env, REDIS_URL: `redis://127.0.0.1:${way.port}` });
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await subscribe(to.url);
    for (let sent = 0; sent < 2_000; sent += 500) {
      await publishBatch(Array.from({ length: 500 }, () => sampleEvent()));
    }
    const redis = ownClient({ REDIS_URL: server.url });
    const failed = () => redis.zcard(`${env.KEY_PREFIX}:{0}:by_status:failed`);
    await eventually('all to fail', async () => (await failed()) === 2_000, HUNG_AFTER_MS);
    // Slow enough to be killed halfway.
    way.delay(300);
    const { body } = await operate('POST', '/v1/replays', { subscription_id: id });
    const look = async () => (await operate('GET', `/v1/replays/${body.id}`)).body;
    await eventually('it to have begun', async () => (await look()).replayed > 0);
    worker.child.kill('SIGKILL');
    expect((await look()).status).toBe('running');
    ownProcess('worker', env);
    const replay = await eventually(
      'it to end',
      async () => (await look()).status !== 'running' && (await look()),
      HUNG_AFTER_MS,
    );
    expect(replay).toMatchObject({ status: 'done', total: 2_000, replayed: 2_000, skipped: 0 });
    const chains = await redis.keys(`${env.KEY_PREFIX}:{0}:replays_of:*`);
    expect(chains).toHaveLength(2_000);
    const counts = await Promise.all(chains.map((key) => redis.zcard(key)));
    expect(counts.every((count) => count === 1)).toBe(true);
  });

  it('of several addresses is completed when the console is killed while it starts it; its cancellation, when the worker is', async () => {
    const EVENTS = 40;
    const ADDRESSES = 6;
    const server = await redisServer();
    const way = await ownProxy(server.port);
    const env: Record<string, string> = {
      ...worldEnv('posthorn', server.url),
      LOG_LEVEL: 'info',
      RETRY_DELAYS: '5ms',
      PAUSE_AFTER: '1000000',
      ADDRESS_CONCURRENCY: '2',
    };
    const slow = { ...env, REDIS_URL: `redis://127.0.0.1:${way.port}` };
    const ingest = ownProcess('ingest', env);
    const operator = ownProcess('console', slow);
    const first = ownProcess('eager-worker', env);
    const { publishBatch, subscribe } = apiClients((await ingest.ready).url, (await operator.ready).url);
    const to = await ownReceiver(deliveriesWith(500));
    const ids: string[] = [];
    for (let i = 0; i < ADDRESSES; i++) ids.push((await subscribe(`${to.url}${i}`)).id);
    await publishBatch(Array.from({ length: EVENTS }, () => sampleEvent()));
    const redis = ownClient({ REDIS_URL: server.url });
    const key = (name: string) => `${env.KEY_PREFIX}:{0}:${name}`;
    const total = EVENTS * ADDRESSES;
    await eventually('all to fail', async () => (await redis.zcard(key('by_status:failed'))) === total, HUNG_AFTER_MS);
    first.child.kill('SIGKILL');
    await first.ended;
    const answer = Promise.withResolvers<void>();
    to.answerWith((_, response) => void answer.promise.then(() => response.end()));
    const before = to.requests.length;
    // So slow that the console is killed between the starts of two replays.
    way.delay(300);
    const { url } = await operator.ready;
    const body = JSON.stringify({ subscription_ids: ids });
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' };
    const call = fetch(`${url}/v1/replays`, { method: 'POST', headers, body }).catch(() => undefined);
    await eventually('the first to have started', async () => (await redis.zcard(key('replays'))) > 0);
    operator.child.kill('SIGKILL');
    expect(await call).toBeUndefined();
    expect(await redis.scard(key('replay_batches_active'))).toBe(1);
    expect(await redis.zcard(key('replays'))).toBeLessThan(ADDRESSES);
    way.delay(0);
    const second = ownProcess('eager-worker', slow);
    const { operate } = apiClients('', (await ownProcess('console', env).ready).url);
    const [{ batch_id: batchId }] = (await operate('GET', '/v1/replays')).body.data;
    const look = async () => (await operate('GET', `/v1/replay-batches/${batchId}`)).body;
    await eventually('all to be made', async () => (await look()).status === 'done', HUNG_AFTER_MS);
    expect(await look()).toMatchObject({ addresses: ADDRESSES, total, replayed: total, skipped: 0 });
    await to.received(before + 1);
    way.delay(150);
    expect((await operate('POST', `/v1/replay-batches/${batchId}/cancel`)).body.status).toBe('cancelled');
    await eventually('the cancellation to have begun', async () => (await look()).outcome.cancelled > 0, HUNG_AFTER_MS);
    second.child.kill('SIGKILL');
    await second.ended;
    expect((await look()).outcome.waiting).toBeGreaterThan(0);
    ownProcess('eager-worker', env);
    answer.resolve();
    const { outcome } = await eventually(
      'nothing to wait',
      async () => {
        const batch = await look();
        return batch.outcome.waiting === 0 && batch;
      },
      HUNG_AFTER_MS,
    );
    expect(outcome).toMatchObject({ failed: 0, unknown: 0, cancelled: total - outcome.delivered });
    // Of what was cancelled, only what the killed worker had in flight was sent.
    const sent = new Set(to.requests.slice(before).map((request) => request.headers['service-delivery-id']));
    expect(outcome.delivered).toBeLessThanOrEqual(sent.size);
    expect(sent.size - outcome.delivered).toBeLessThanOrEqual(2 * ADDRESSES);
    await eventually('no work to be left', async () => (await redis.exists(key('replays_active'))) === 0);
  });
});
