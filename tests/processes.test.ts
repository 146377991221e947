/**
 * Processes seen from outside: start, stop, a Redis that is away or full, and secrets that must not appear anywhere.
 */
import { describe, expect, it } from '@jest/globals';
import { connectRedis } from '@posthorn/store';
import { deliveriesWith, eventually, isDelivery, testPrefix } from '@posthorn/testing';
import { ownApis, ownClient, ownDir, ownEnv, ownProcess, ownReceiver } from './own.ts';
import type { Process } from './processes.ts';
import { accepted, redisServer } from './redis-servers.ts';
import { storedText } from './stored-text.ts';
import { apiClients, ENCRYPTION_KEY, OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, worldEnv } from './world.ts';

/** The lines of the log with this message. */
const linesOf = ({ output }: Process, msg: string) =>
  output.filter((line) => line.includes(`"msg":"${msg}"`)).map((line) => JSON.parse(line));

describe('a process', () => {
  it.each(['ingest', 'worker', 'console'] as const)(
    'of %s exits at once with bad settings, naming each and no value',
    async (app) => {
      const process = ownProcess(app, {
        PORT: 'hunter2',
        RETENTION: 'hunter2',
        PUBLISHER_KEYS: 'hunter2',
        SECRET_ENCRYPTION_KEY: 'hunter2',
      });
      expect(await process.ended).toBe(1);
      const said = process.output.join('\n');
      for (const name of ['PORT', 'RETENTION', app === 'ingest' ? 'PUBLISHER_KEYS' : 'SECRET_ENCRYPTION_KEY'])
        expect(said).toContain(name);
      if (app === 'console') expect(said).toContain('OPERATOR_TOKENS: is required');
      expect(said).not.toContain('hunter2');
    },
  );
  it.each(['ingest', 'worker', 'console'] as const)(
    'of %s logs ready once, and exits with 0 on SIGTERM, on SIGINT and on SIGHUP',
    async (app) => {
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
        const process = ownProcess(app, ownEnv());
        await process.ready;
        process.child.kill(signal);
        expect(await process.ended).toBe(0);
        expect(process.output.filter((line) => line.includes('"msg":"ready"'))).toHaveLength(1);
      }
    },
  );
  it('of worker finishes the attempt in flight when stopped, or passes it on when its grace ends', async () => {
    const env = ownEnv();
    const { publish, subscribe, deliveries } = await ownApis(env);
    const to = await ownReceiver();
    await subscribe(to.url);
    const finish = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void finish.promise.then(() => response.end()));
    const first = ownProcess('worker', env);
    await first.ready;
    await publish(sampleEvent());
    await to.received(1, isDelivery);
    first.child.kill('SIGTERM');
    await eventually('it to begin to stop', () => first.output.some((line) => line.includes('"msg":"stopping"')));
    finish.resolve();
    expect(await first.ended).toBe(0);
    expect(await deliveries('status=succeeded')).toHaveLength(1);

    to.answerWith(() => undefined);
    // It aborts the attempt after 2 s, and has the rest of the time to put the job back.
    const second = ownProcess('eager-worker', { ...env, SHUTDOWN_GRACE: '12s' });
    await second.ready;
    await publish(sampleEvent());
    await to.received(2, isDelivery);
    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect(await deliveries('status=pending')).toMatchObject([{ attempt_count: 0 }]);
    to.answerWith(200);
    const third = ownProcess('worker', env);
    await third.ready;
    await eventually('another worker to take it', async () => (await deliveries('status=succeeded')).length === 2);
  });
  it.each(['ingest', 'worker', 'console'] as const)(
    'of %s works and stops when nobody reads its log any more',
    async (app) => {
      const process = ownProcess(app, ownEnv({ LOG_LEVEL: 'trace' }));
      const { url } = await process.ready;
      process.child.stdout!.destroy();
      for (let i = 0; i < 3; i++) await eventually('it to be ready', async () => (await fetch(`${url}/readyz`)).ok);
      process.child.kill('SIGTERM');
      expect(await process.ended).toBe(0);
    },
  );
  it('of ingest warns if it accepts events that are larger than 1 MiB, which receivers refuse', async () => {
    const warnsWith = async (bytes: number) => {
      const ingest = ownProcess('ingest', ownEnv({ LOG_LEVEL: 'info', MAX_EVENT_BYTES: String(bytes) }));
      await ingest.ready;
      return ingest.output.join('\n').includes('MAX_EVENT_BYTES');
    };
    expect([await warnsWith(1_048_576), await warnsWith(1_048_577)]).toEqual([false, true]);
  });
});

describe('apps without a usable Redis', () => {
  it('answer 503, are not ready and wait while Redis is away, and continue by themselves after its return', async () => {
    const dir = ownDir();
    const redis = await redisServer([], { dir });
    const env = { ...worldEnv('outage', redis.url), LOG_LEVEL: 'info' };
    const { publish, publishBatch, subscribe, ingest, operator } = await ownApis(env);
    const worker = ownProcess('worker', env);
    await worker.ready;
    const to = await ownReceiver();
    await subscribe(to.url);
    await accepted(() => publish(sampleEvent({ id: 'evt_before' })));
    await to.received(1, isDelivery);
    await redis.stop();
    const refused = await publish(sampleEvent());
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const bearer = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };
    const ofBullBoard = await fetch(`${(await operator.ready).url}/queues/api/queues`, bearer);
    expect([ofBullBoard.status, await ofBullBoard.json()]).toMatchObject([503, { code: 'unavailable' }]);
    expect((await publishBatch(Array.from({ length: 500 }, (_, i) => sampleEvent({ id: `evt_${i}` })))).status).toBe(
      503,
    );
    // Each try may have taken seconds: of the batch, only those were made that had begun when the first one failed.
    const failed = () => linesOf(ingest, 'event.ingest_failed');
    await eventually('the number of events that have no line', () => failed().some(({ suppressed }) => suppressed > 0));
    expect(failed().reduce((sum, { suppressed }) => sum + (suppressed ?? 1), 0)).toBeLessThanOrEqual(100);
    expect(failed().filter((line) => !(line.suppressed || line.event_id.startsWith('evt_')))).toEqual([]);
    // The line of a call is of its latest, at most once a second.
    const ofBatch = () => linesOf(ingest, 'request.rejected').filter(({ path }) => path === '/v1/events/batch');
    await eventually('the reason of a batch', async () => {
      await publishBatch([sampleEvent()]);
      return ofBatch().length > 0;
    });
    for (const { err } of ofBatch()) expect(err.type).toBe('StorageUnavailable');
    const { url } = await ingest.ready;
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await redisServer([], { dir, port: redis.port });
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await to.received(1, (request) => request.headers['service-event-id'] === 'evt_after');
  });

  it('answer 503 and store nothing in part while Redis is full, and continue when there is room again', async () => {
    const redis = await redisServer();
    const env = { ...worldEnv('full', redis.url), LOG_LEVEL: 'info' };
    const { publish, subscribe, deliveries, operate } = await ownApis(env);
    const worker = ownProcess('worker', env);
    await worker.ready;
    const to = await ownReceiver();
    const { id } = await subscribe(to.url);
    const client = ownClient({ REDIS_URL: redis.url });
    const overview = async () => (await operate('GET', '/v1/overview')).body;
    await eventually('all to be well', async () => (await overview()).all_well);
    expect(worker.output.join('\n')).not.toContain('memory limit');
    // From here on, the worker can't add any.
    await client.config('SET', 'maxmemory', '1mb');
    const keysBefore = await client.keys('full:*');
    const event = sampleEvent({ id: 'evt_full' });
    expect((await publish(event)).status).toBe(503);
    // Operators still read, and are told that waiting does not help.
    const { memory, not_well, why_not_well } = await eventually('not all to be well', async () => {
      const now = await overview();
      return !now.all_well && now;
    });
    expect(why_not_well).toEqual([
      expect.stringMatching(/^Redis refuses changes: OOM command not allowed/),
      expect.stringMatching(/^Redis uses \d+ % of its memory$/),
    ]);
    expect(not_well).toMatchObject([{ kind: 'writes_refused' }, { kind: 'memory' }]);
    expect([memory.capacity_bytes, memory.used_bytes > memory.capacity_bytes]).toEqual([2 ** 20, true]);
    const { status, body } = await operate('POST', `/v1/subscriptions/${id}/pause`);
    expect([status, body.detail]).toEqual([503, 'Storage is full: it takes no changes. Nothing was changed.']);
    expect((await client.keys('full:*event:*')).length).toBe(0);
    expect((await client.keys('full:*')).length).toBeLessThanOrEqual(keysBefore.length);
    await client.config('SET', 'maxmemory', '0');
    // A replica from now on, of a master that nobody has started.
    await client.call('REPLICAOF', '127.0.0.1', '1');
    const { writes_refused } = await eventually('it to refuse writes as a replica', async () => {
      const now = await overview();
      return now.writes_refused?.startsWith('READONLY') && now;
    });
    expect(writes_refused).toBe("READONLY You can't write against a read only replica");
    await client.call('REPLICAOF', 'NO', 'ONE');
    await accepted(() => publish(event));
    await to.received(1, isDelivery);
    await eventually('its record', async () => (await deliveries('status=succeeded')).length === 1);
  });
});

describe('the settings of Redis', () => {
  it('lead to a warning if acknowledged writes or keys may be lost, or memory has no limit', async () => {
    const redis = await redisServer(['--appendonly', 'no', '--maxmemory', '0']);
    const env: Record<string, string> = { ...worldEnv(testPrefix(), redis.url), LOG_LEVEL: 'info' };
    const client = ownClient({ REDIS_URL: redis.url });
    const accepted = ownProcess('worker', env);
    await accepted.ready;
    expect(accepted.output.join('\n')).toContain('no append-only file');
    expect(accepted.output.join('\n')).toContain('no memory limit');
    await client.config('SET', 'maxmemory', '1gb');
    await client.config('SET', 'appendonly', 'yes');
    await client.config('SET', 'appendfsync', 'everysec');
    const warned = ownProcess('worker', env);
    await warned.ready;
    expect(warned.output.join('\n')).toContain('appendfsync is not always');
    await client.config('SET', 'appendfsync', 'always');
    const content = ownProcess('console', env);
    const { url } = await content.ready;
    expect(content.output.join('\n')).not.toContain('append-only');
    expect(content.output.join('\n')).not.toContain('memory limit');
    // Changed while they run, or by a failover to a server with other settings.
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { body } = await apiClients('', url).operate('GET', '/v1/overview');
    const message = expect.stringContaining('maxmemory-policy is allkeys-lru');
    expect(body.not_well).toContainEqual({ kind: 'eviction', message });
    expect(body.why_not_well).toContainEqual(message);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually('a warning', () => content.output.join('\n').includes('maxmemory-policy is allkeys-lru'));
  });
});

describe('secrets', () => {
  it('appear in no log, key, job, metric or page', async () => {
    const noticeSecret = 'a-secret-for-notices-987654321';
    const notices = await ownReceiver();
    const env = ownEnv({
      RETRY_DELAYS: '50ms,1h',
      LOG_LEVEL: 'trace',
      NOTICE_URL: notices.url,
      NOTICE_SECRET: noticeSecret,
    });
    const { publish, subscribe, operate, ingest, operator, deliveries } = await ownApis(env);
    const worker = ownProcess('worker', env);
    await worker.ready;
    const to = await ownReceiver(deliveriesWith(500));
    const own = 'my-own-secret-0123456789';
    const secrets = [(await subscribe(to.url)).secret, (await subscribe(to.url, { secret: own })).secret, own];
    await publish(sampleEvent());
    await eventually(
      'two attempts each',
      async () =>
        (await deliveries('status=waiting_for_retry')).filter(
          (one: { attempt_count: number }) => one.attempt_count === 2,
        ).length === 2,
    );
    const [{ id }] = (await operate('GET', '/v1/subscriptions')).body.data;
    secrets.push(noticeSecret, (await operate('POST', `/v1/subscriptions/${id}/rotate-secret`)).body.secret);
    await operate('POST', '/v1/session', { token: OPERATOR_TOKEN });
    await operate('POST', '/v1/session', { token: `${OPERATOR_TOKEN}-wrong` });
    await operate('POST', `/v1/subscriptions/${id}/pause`);
    await notices.received(1);
    await publish('{broken');
    await operate('POST', '/v1/subscriptions', {
      url: 'x',
      secret: `${own}\u0000`,
      event_types: 'all',
      environment: 'both',
    });
    const { url } = await operator.ready;
    const seen = [...ingest.output, ...operator.output, ...worker.output];
    const auth = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };
    for (const path of [
      '/queues/api/queues?activeQueue=deliveries&status=delayed',
      '/metrics',
      '/v1/subscriptions',
      '/v1/deliveries',
      '/v1/audit',
      '/v1/overview',
      '/openapi.json',
    ]) {
      seen.push(await (await fetch(`${url}${path}`, auth)).text());
    }
    const redis = connectRedis({ REDIS_URL: env.REDIS_URL! });
    seen.push(await storedText(redis, env.KEY_PREFIX!));
    redis.disconnect();
    for (const hidden of [...secrets, PUBLISHER_KEY, OPERATOR_TOKEN, ENCRYPTION_KEY]) {
      expect(seen.filter((text) => text.includes(hidden))).toEqual([]);
    }
    expect(seen.some((text) => text.includes('delivery.attempted'))).toBe(true);
  });
});
