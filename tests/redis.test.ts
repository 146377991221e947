/**
 * Redis as in production: encrypted, with a restricted user; and a Redis that is slow, breaks connections, is full, or
 * hangs.
 */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import type { OwnRedis } from '../scripts/redis/server.ts';
import { ownClient, ownProcess, ownProxy } from './own.ts';
import { complaintsOf } from './processes.ts';
import { accepted, asArguments, redisServer, system, tls } from './redis-servers.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent, worldEnv } from './world.ts';

/** More than the reply to one command. */
const SEVERAL_ANSWERS_BYTES = 150;
/** Replies to ingest that are broken off. */
const BROKEN_REPLIES = 5;

describe('TLS and users', () => {
  it('work over rediss:// with a user that may touch only its own keys; an unknown certificate is refused', async () => {
    const [tlsPort, { cert, settings }] = [await freePort(), tls()];
    const rights = ['on', '>p@ss:w/rd', '~posthorn:*', '&*', '+@all', '-@admin', '-@dangerous', '+info'];
    await redisServer(['--tls-port', String(tlsPort), ...asArguments(settings), '--user', 'posthorn', ...rights]);
    const env = { REDIS_URL: `rediss://posthorn:${encodeURIComponent('p@ss:w/rd')}@127.0.0.1:${tlsPort}` };
    const { publish, deliveries, to, ingest, worker, operator } = await system({ ...env, NODE_EXTRA_CA_CERTS: cert });
    await accepted(() => publish(sampleEvent()));
    await to.received(1, isDelivery);
    await eventually('its record', async () => (await deliveries('status=succeeded')).length === 1);
    const { url } = await operator.ready;
    const viewer = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };
    for (const path of ['/queues/api/queues?activeQueue=deliveries', '/v1/overview', '/v1/audit', '/metrics']) {
      expect([path, (await fetch(`${url}${path}`, viewer)).status]).toEqual([path, 200]);
    }
    for (const line of [...ingest.output, ...worker.output, ...operator.output]) {
      expect(line).not.toContain('NOPERM');
      expect(line).not.toContain('p@ss');
    }

    const stranger = ownProcess('ingest', { ...worldEnv('posthorn', env.REDIS_URL), LOG_LEVEL: 'info' });
    await eventually('an error about the certificate', () =>
      stranger.output.some((line) => line.includes('self-signed certificate')),
    );
    expect(stranger.output.join('')).not.toContain('"msg":"ready"');
  });
});

describe('with a Redis that', () => {
  it('has only keys of others, one process warns that a new installation begins; none where it is empty', async () => {
    const { url } = await redisServer();
    const start = async (prefix: string, names: readonly ('ingest' | 'worker' | 'console')[]) => {
      const env = { ...worldEnv(prefix, url), PARTITIONS: '3', LOG_LEVEL: 'info' };
      const apps = names.map((app) => ownProcess(app, env));
      await Promise.all(apps.map(({ ready }) => ready));
      return apps.flatMap(({ output }) => output).filter((line) => line.includes('a new installation begins'));
    };
    expect(await start('first', ['ingest'])).toEqual([]);
    expect(await start('second', ['ingest', 'worker', 'console'])).toEqual([
      expect.stringContaining('Nothing is stored under KEY_PREFIX \\"second\\"'),
    ]);
    expect(await start('second', ['console'])).toEqual([]);
  });

  it('is emptied, nothing is accepted, and an operator is told why', async () => {
    const redis = await redisServer();
    const { publish, ingest, operator } = await system({ REDIS_URL: redis.url });
    const client = ownClient({ REDIS_URL: redis.url });
    await client.flushall();
    const { url } = await operator.ready;
    const overview = () => fetch(`${url}/v1/overview`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
    await eventually('503', async () => (await overview()).status === 503);
    expect((await (await overview()).json()) as unknown).toMatchObject({
      code: 'unavailable',
      detail: expect.stringMatching(/^Storage is unavailable: Redis has lost the record of this installation .*\.$/),
    });
    await eventually('a refusal', async () => (await publish(sampleEvent())).status === 503);
    expect((await fetch(`${(await ingest.ready).url}/readyz`)).status).toBe(503);
  });

  it.each([
    ['has gone away', (redis: OwnRedis) => redis.stop()],
    ['hangs', (redis: OwnRedis) => process.kill(redis.pid, 'SIGSTOP')],
  ])('%s, apps with nothing in flight exit with 0 on SIGTERM without using up their grace', async (_what, fail) => {
    const redis = await redisServer();
    // Longer than this test may take.
    const { ingest, worker, operator } = await system({ REDIS_URL: redis.url, SHUTDOWN_GRACE: '1h' });
    await fail(redis);
    for (const app of [ingest, worker, operator]) {
      const { url } = await app.ready;
      await eventually('not ready', async () => (await fetch(`${url}/readyz`)).status === 503);
      app.child.kill('SIGTERM');
      expect([await app.ended, complaintsOf(app)]).toEqual([0, []]);
    }
  });

  it('hangs for seconds, each app says so, and when it can be used again', async () => {
    const redis = await redisServer();
    const { ingest, worker, operator } = await system({ REDIS_URL: redis.url });
    const apps = [ingest, worker, operator];
    const allSay = (text: string) => () => apps.every(({ output }) => output.join('').includes(text));
    const where = `Redis at ${new URL(redis.url).host}`;
    process.kill(redis.pid, 'SIGSTOP');
    await eventually('the outage', allSay(`${where} can't be used: No reply within 3 s. Waiting for it.`));
    process.kill(redis.pid, 'SIGCONT');
    await eventually('its end', allSay(`${where} can be used again.`));
  });

  it('has gone away during an attempt, a worker exits with 1 on SIGTERM, since nothing records the attempt', async () => {
    const redis = await redisServer();
    const { publish, to, worker } = await system({ REDIS_URL: redis.url, SHUTDOWN_GRACE: '2s' });
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    await accepted(() => publish(sampleEvent()));
    await to.received(1, isDelivery);
    await redis.stop();
    worker.child.kill('SIGTERM');
    answer.resolve();
    expect([await worker.ended, complaintsOf(worker)]).toEqual([1, [expect.stringContaining('Attempts in flight')]]);
  });

  it('is slow, every accepted event is delivered and none is accepted in part', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const { publish, deliveries, to, ingestUrl } = await system({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
    proxy.delay(50);
    await Promise.all(Array.from({ length: 50 }, (_, i) => accepted(() => publish(sampleEvent({ id: `evt_${i}` })))));
    await to.received(50, isDelivery);
    // There and back, this is longer than ingest waits for a reply.
    proxy.delay(3_000);
    const refused = await publish(sampleEvent({ id: 'evt_slow' }));
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await fetch(`${ingestUrl}/healthz`)).status).toBe(200);
    proxy.delay(0);
    await accepted(() => publish(sampleEvent({ id: 'evt_slow' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_slow');
    // Commands of the console may have been held up too: then it responds with 503 first.
    await eventually('all records', async () => (await deliveries('status=succeeded&limit=100'))?.length === 51);
  });

  it('breaks off replies to ingest, publishers get 503 at worst and each event is delivered once', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const through = { REDIS_URL: `redis://127.0.0.1:${proxy.port}` };
    const { publish, to, ingest } = await system({ REDIS_URL: redis.url }, { ingest: through });
    const statuses = new Set<number>();
    const untilTaken = async (id: string): Promise<void> => {
      const { status } = await publish(sampleEvent({ id }));
      statuses.add(status);
      if (status !== 200 && status !== 202) await untilTaken(id);
    };
    let count = 0;
    while (proxy.brokenOff() < BROKEN_REPLIES) {
      proxy.cutWithin();
      await Promise.all(Array.from({ length: 50 }, () => untilTaken(`evt_${count++}`)));
    }
    await to.received(count, isDelivery);
    // A command whose reply was broken off is sent again: then the event is known (200). Or the publisher repeats it
    // after 503.
    expect([...statuses].filter((status) => ![200, 202, 503].includes(status))).toEqual([]);
    expect(to.requests.filter(isDelivery)).toHaveLength(count);
    expect(complaintsOf(ingest)).toEqual([]);
  });

  it('breaks off replies to a worker, outcomes are stored all the same and nothing is sent twice', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const through = { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, ADDRESS_CONCURRENCY: '40' };
    const { publish, deliveries, to, worker } = await system({ REDIS_URL: redis.url }, { worker: through });
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    await Promise.all(Array.from({ length: 30 }, (_, i) => accepted(() => publish(sampleEvent({ id: `evt_${i}` })))));
    await to.received(30, isDelivery);
    proxy.cutWithin(SEVERAL_ANSWERS_BYTES);
    answer.resolve();
    await eventually('all records', async () => (await deliveries('status=succeeded')).length === 30);
    expect(to.requests.filter(isDelivery)).toHaveLength(30);
    expect(complaintsOf(worker)).toEqual([]);
  });

  it('has lost the locks of many jobs in flight, a few lines say so and outcomes are stored all the same', async () => {
    const redis = await redisServer();
    const settings = { REDIS_URL: redis.url, ADDRESS_CONCURRENCY: '40' };
    const { publish, deliveries, to, worker } = await system(settings);
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    await Promise.all(Array.from({ length: 30 }, (_, i) => accepted(() => publish(sampleEvent({ id: `evt_${i}` })))));
    await to.received(30, isDelivery);
    const client = ownClient({ REDIS_URL: redis.url });
    for (const lock of await client.keys('*:deliveries:*:lock')) await client.del(lock);
    answer.resolve();
    await eventually('all records', async () => (await deliveries('status=succeeded&limit=100')).length === 30);
    const lines = () =>
      worker.output.filter((line) => /"msg":"(job.gone|queue.failed)"/.test(line)).map((line) => JSON.parse(line));
    await eventually('all jobs', () => lines().reduce((sum, { suppressed }) => sum + (suppressed ?? 1), 0) >= 30);
    expect(lines().length).toBeLessThan(30);
    expect(lines().filter(({ msg }) => msg === 'queue.failed')).toEqual([]);
  });

  it('breaks off the reply that gives a busy worker its jobs, they are put back at once and sent once', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const through = { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, LOG_LEVEL: 'info' };
    const { publish, publishBatch, to, worker } = await system({ REDIS_URL: redis.url }, { worker: through });
    const answer = Promise.withResolvers<void>();
    to.answerWith(({ headers }, response) => {
      if (headers['service-event-id'] === 'evt_first') void answer.promise.then(() => response.end());
      else response.end();
    });
    await accepted(() => publish(sampleEvent({ id: 'evt_first' })));
    // While it is in flight, the worker renews the lease on all jobs that it has.
    await to.received(1, isDelivery);
    let count = 1;
    // The next reply may be another one.
    while (!worker.output.some((line) => line.includes('"msg":"jobs.reply_lost"'))) {
      proxy.cutWithin(SEVERAL_ANSWERS_BYTES);
      await accepted(() => publishBatch(Array.from({ length: 20 }, () => sampleEvent({ id: `evt_${count++}` }))));
      await to.received(count, isDelivery);
    }
    expect(to.requests.filter(isDelivery)).toHaveLength(count);
    expect(complaintsOf(worker)).toEqual([]);
    answer.resolve();
  });

  it('is full during attempts, outcomes are kept until there is room and nothing is sent twice', async () => {
    const redis = await redisServer();
    const { publish, deliveries, to, worker } = await system({
      REDIS_URL: redis.url,
      ADDRESS_CONCURRENCY: '40',
    });
    const client = ownClient({ REDIS_URL: redis.url });
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    for (let i = 0; i < 30; i++) await accepted(() => publish(sampleEvent({ id: `evt_${i}` })));
    await to.received(30, isDelivery);
    await client.config('SET', 'maxmemory', '1mb');
    answer.resolve();
    const { url } = await worker.ready;
    const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status;
    await eventually('the worker to say that it is not ready', async () => (await statusOf('/readyz')) === 503);
    expect(await statusOf('/healthz')).toBe(200);
    expect((await deliveries('status=pending')).length).toBeGreaterThan(0);
    await client.config('SET', 'maxmemory', '0');
    await eventually('all records', async () => (await deliveries('status=succeeded&limit=100')).length === 30);
    expect(to.requests.filter(isDelivery)).toHaveLength(30);
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_after');
  });

  it('hangs, or then accepts no more connections, publishers get 503, and everything continues afterwards', async () => {
    const redis = await redisServer();
    const { publish, publishBatch, to, ingest, ingestUrl } = await system({ REDIS_URL: redis.url });
    process.kill(redis.pid, 'SIGSTOP');
    const batch = () => publishBatch(Array.from({ length: 500 }, () => sampleEvent()));
    // Excess calls are refused at once, before they use memory.
    const refused = await eventually('more than there is room for', async () => {
      const answers = await Promise.all([publish(sampleEvent()), ...Array.from({ length: 30 }, batch)]);
      return answers.some(({ body }) => body.code === 'overloaded') && answers;
    });
    expect((await fetch(`${ingestUrl}/readyz`)).status).toBe(503);
    process.kill(redis.pid, 'SIGCONT');
    expect(
      new Set(refused.map(({ status, body, headers }) => [status, body.code, headers.get('retry-after')].join())),
    ).toEqual(new Set(['503,unavailable,5', '503,overloaded,1']));
    await accepted(() => publish(sampleEvent({ id: 'evt_between' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_between');

    const client = ownClient({ REDIS_URL: redis.url });
    const complaints = complaintsOf(ingest);
    await client.config('SET', 'maxclients', '1');
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal');
    expect((await publish(sampleEvent())).status).toBe(503);
    expect(complaintsOf(ingest)).toEqual(complaints);
    await client.config('SET', 'maxclients', '10000');
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_after');
  });

  it('pauses writes, or is a replica, operators get 503, which says whether the change may have been made', async () => {
    const redis = await redisServer();
    const operator = ownProcess('console', {
      ...worldEnv('posthorn', redis.url),
      LOG_LEVEL: 'info',
      OPERATOR_RATE_LIMIT: '0',
    });
    const { operate } = apiClients('', (await operator.ready).url);
    const client = ownClient({ REDIS_URL: redis.url });
    const create = () =>
      operate('POST', '/v1/subscriptions', { url: 'http://127.0.0.1:1/', event_types: 'all', environment: 'both' });
    await client.call('CLIENT', 'PAUSE', '600000', 'WRITE');
    expect(await create()).toMatchObject({
      status: 503,
      body: { detail: expect.stringMatching(/: Command timed out\. The change may have been made: look before/) },
    });
    await client.call('CLIENT', 'UNPAUSE');
    const count = async () => (await operate('GET', '/v1/subscriptions')).body.data.length;
    await eventually('the change', async () => (await count()) === 1);
    // As after a failover.
    await client.call('REPLICAOF', '127.0.0.1', '1');
    expect(await create()).toMatchObject({
      status: 503,
      body: {
        code: 'not_changed',
        detail: "Storage is unavailable: READONLY You can't write against a read only replica. Nothing was changed.",
      },
    });
    await client.call('REPLICAOF', 'NO', 'ONE');
    expect(await count()).toBe(1);
  });

  it('has become the replica of one that was promoted by hand, all processes follow the name that leads to it', async () => {
    const [old, promoted] = [await redisServer(), await redisServer()];
    const [master, replica] = [old, promoted].map(({ url }) => ownClient({ REDIS_URL: url }));
    const name = await ownProxy(old.port);
    const url = `redis://127.0.0.1:${name.port}`;
    const { publish, subscribe, operate, deliveries, to, ...apps } = await system({ REDIS_URL: url });
    await accepted(() => publish(sampleEvent({ id: 'evt_before' })));
    await eventually('its record', async () => (await deliveries('status=succeeded')).length === 1);
    await replica!.call('REPLICAOF', '127.0.0.1', String(old.port));
    await eventually('the replica to be in sync', async () =>
      /master_link_status:up/.test(await replica!.info('replication')),
    );
    await replica!.call('REPLICAOF', 'NO', 'ONE');
    // What the new master does not have, in the memory of the processes too.
    const lost = await subscribe(`${to.url}lost`);
    await accepted(() => publish(sampleEvent({ id: 'evt_lost' })));
    await to.received(3, isDelivery);
    name.leadTo(promoted.port);
    await master!.call('REPLICAOF', '127.0.0.1', String(promoted.port));
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await eventually('its record', async () => (await deliveries('event_id=evt_after'))[0]?.status === 'succeeded');
    const toLost = to.requests.filter(({ path, body }) => path.endsWith('lost') && body.includes('evt_after'));
    expect(toLost).toEqual([]);
    expect((await operate('GET', `/v1/subscriptions/${lost.id}`)).status).toBe(404);
    expect((await operate('GET', '/v1/subscriptions?q=lost')).body.data).toEqual([]);
    expect((await operate('GET', '/v1/events/evt_lost')).status).toBe(404);
    expect([apps.ingest, apps.worker, apps.operator].flatMap(complaintsOf)).toEqual([]);
  });

  it('vanishes without closing a connection, another connection is made', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const { publish, to } = await system({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
    proxy.swallow();
    await accepted(() => publish(sampleEvent({ id: 'evt_later' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_later');
  });
});
