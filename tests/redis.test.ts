/** Redis as it is run in production: encrypted, with a user of its own, with replicas and a failover; and one that is slow or stands still. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, testCertificate } from '@posthorn/testing';
import { freePort, type OwnRedis, startRedis, startServer } from '../scripts/redis/server.ts';
import { atEnd, ownApps, ownClient, ownProcess, ownProxy, ownReceiver } from './own.ts';
import { complaintsOf } from './processes.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent, worldEnv } from './world.ts';

const say = () => undefined;
/** More than one command is answered with. */
const SEVERAL_ANSWERS_BYTES = 150;
let folders = 0;
function newDir(): string {
  const dir = join(import.meta.dirname, `../.posthorn/redis-${process.pid}-${folders++}`);
  mkdirSync(dir, { recursive: true });
  atEnd(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
async function redisServer(extra: string[] = []): Promise<OwnRedis> {
  const redis = await startRedis(newDir(), { say, extra });
  atEnd(() => redis.stop());
  return redis;
}
/** The settings of a server that speaks TLS, and the certificate to trust it by. */
function tls() {
  const dir = newDir();
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
  writeFileSync(cert, testCertificate.cert);
  writeFileSync(key, testCertificate.key);
  const settings = { 'tls-cert-file': cert, 'tls-key-file': key, 'tls-ca-cert-file': cert, 'tls-auth-clients': 'no' };
  return { cert, settings };
}
const asArguments = (settings: Record<string, string>) =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
/** Sentinels that watch a master by the name of posthorn, once they know its replicas and each other. */
async function startSentinels(
  masterPort: number,
  { count, replicas, settings = {}, password = '' }: SentinelOptions,
): Promise<OwnRedis[]> {
  const sentinels: OwnRedis[] = [];
  for (let i = 0; i < count; i++) {
    const [dir, port] = [newDir(), await freePort()];
    const config = join(dir, 'sentinel.conf');
    const lines = [
      `port ${port}`,
      `dir ${dir}`,
      ...Object.entries(settings).map(([name, value]) => `${name} ${value}`),
      `sentinel monitor posthorn 127.0.0.1 ${masterPort} ${Math.ceil((count + 1) / 2)}`,
      'sentinel down-after-milliseconds posthorn 1000',
      'sentinel failover-timeout posthorn 10000',
      ...(password ? [`requirepass ${password}`, `sentinel auth-pass posthorn ${password}`] : []),
    ];
    writeFileSync(config, lines.join('\n'));
    const sentinel = await startServer(dir, { port, args: [config, '--sentinel'], say });
    atEnd(() => sentinel.stop());
    sentinels.push(sentinel);
  }
  const asked = ownClient({ REDIS_URL: `redis://:${password}@127.0.0.1:${sentinels[0]!.port}` });
  await eventually('the sentinels to know all', async () => {
    const [fields] = (await asked.call('SENTINEL', 'MASTERS')) as string[][];
    const of = (name: string) => Number(fields?.[fields.indexOf(name) + 1]);
    return of('num-slaves') === replicas && of('num-other-sentinels') === count - 1;
  });
  return sentinels;
}
interface SentinelOptions {
  count: number;
  replicas: number;
  settings?: Record<string, string>;
  /** Theirs, and that of the servers they watch. */
  password?: string;
}
async function system(change: Record<string, string>, changeOf?: Parameters<typeof ownApps>[1]) {
  const env = { ...worldEnv('posthorn', 'redis://127.0.0.1'), LOG_LEVEL: 'info', ...change };
  const apps = await ownApps(env, changeOf);
  const to = await ownReceiver();
  await apps.subscribe(to.url);
  return { ...apps, to };
}
/** A master with a replica, under `count` sentinels. */
async function watchedPair(count: number) {
  const master = await redisServer(['--repl-diskless-sync-delay', '0']);
  await redisServer(['--replicaof', '127.0.0.1', String(master.port)]);
  return { master, sentinels: await startSentinels(master.port, { count, replicas: 1 }) };
}
const throughSentinels = (ports: number[]) => ({
  REDIS_URL: 'redis://anywhere',
  REDIS_SENTINELS: ports.map((port) => ({ host: '127.0.0.1', port })),
  REDIS_SENTINEL_NAME: 'posthorn',
});
const accepted = (publish: () => Promise<{ status: number }>) =>
  eventually('an event to be accepted', async () => (await publish()).status === 202, 30_000);

describe('TLS and users', () => {
  it('works over rediss:// with a user that may touch nothing but its own keys; an unknown certificate is refused', async () => {
    const [tlsPort, { cert, settings }] = [await freePort(), tls()];
    const rights = ['on', '>p@ss:w/rd', '~posthorn:*', '&*', '+@all', '-@admin', '-@dangerous', '+info'];
    await redisServer(['--tls-port', String(tlsPort), ...asArguments(settings), '--user', 'posthorn', ...rights]);
    const env = { REDIS_URL: `rediss://posthorn:${encodeURIComponent('p@ss:w/rd')}@127.0.0.1:${tlsPort}` };
    const { publish, deliveries, to, ingest, worker, operator } = await system({ ...env, NODE_EXTRA_CA_CERTS: cert });
    expect((await publish(sampleEvent())).status).toBe(202);
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
    await eventually('a complaint', () => stranger.output.some((line) => line.includes('self-signed certificate')));
    expect(stranger.output.join('')).not.toContain('"msg":"ready"');
  }, 60_000);
});

describe('Sentinel', () => {
  it.each([
    ['dies', 'SIGKILL'],
    ['stands still, and comes back as if nothing had been', 'SIGSTOP'],
  ] as const)(
    'loses nothing that was accepted when the master %s, and all go on with the new one',
    async (_how, signal) => {
      const careful = [
        '--min-replicas-to-write',
        '1',
        '--min-replicas-max-lag',
        '2',
        '--repl-diskless-sync-delay',
        '0',
      ];
      const master = await redisServer(careful);
      for (let i = 0; i < 2; i++) await redisServer(['--replicaof', '127.0.0.1', String(master.port), ...careful]);
      const sentinels = await startSentinels(master.port, { count: 3, replicas: 2 });
      const { publish, deliveries, to, ingest } = await system({
        REDIS_SENTINELS: sentinels.map(({ port }) => `127.0.0.1:${port}`).join(','),
        REDIS_SENTINEL_NAME: 'posthorn',
        ACK_REPLICAS: '1',
      });
      expect(ingest.output.join('')).not.toContain('min-replicas-to-write 0');

      const ids = new Set<string>();
      const answers = new Set<number>();
      let publishing = true;
      const publishers = Array.from({ length: 4 }, async () => {
        while (publishing) {
          const { status, body } = await publish(sampleEvent());
          answers.add(status);
          if (status === 202) ids.add(body.id);
        }
      });
      await eventually('some events', () => ids.size > 200);
      process.kill(master.pid, signal);
      const before = ids.size;
      await eventually('events over the new master', () => ids.size > before + 200, 60_000);
      if (signal === 'SIGSTOP') {
        process.kill(master.pid, 'SIGCONT');
        // All may have waited for the new master; then nobody was refused.
        answers.add(503);
        const client = ownClient({ REDIS_URL: master.url });
        await eventually(
          'the old master to be told',
          async () => /master_link_status:up/.test(await client.info('replication')),
          30_000,
        );
      }
      publishing = false;
      await Promise.all(publishers);
      expect(complaintsOf(ingest)).toEqual([]);
      expect(answers).toEqual(new Set([202, 503]));
      const arrived = () => new Set(to.requests.map(({ headers }) => headers['service-event-id']));
      await eventually('all that was accepted', () => [...ids].every((id) => arrived().has(id)), 90_000);
      await eventually('their records', async () => (await deliveries('status=pending')).length === 0, 60_000);
    },
    200_000,
  );

  it('follows a failover where sentinels and servers all want TLS and a password', async () => {
    const [{ cert, settings: withTls }, password] = [tls(), 'p0sthorn-s3cret'];
    const server = async (extra: string[] = []) => {
      const settings = { ...withTls, 'tls-replication': 'yes', requirepass: password, masterauth: password };
      const tlsPort = await freePort();
      const more = [
        '--tls-port',
        String(tlsPort),
        ...asArguments(settings),
        '--repl-diskless-sync-delay',
        '0',
        ...extra,
      ];
      return { ...(await redisServer(more)), tlsPort };
    };
    const master = await server();
    await server(['--replicaof', '127.0.0.1', String(master.tlsPort)]);
    const sentinelPort = await freePort();
    const settings = { ...withTls, 'tls-replication': 'yes', 'tls-port': String(sentinelPort) };
    await startSentinels(master.tlsPort, { count: 1, replicas: 1, settings, password });
    const { publish, to, ingest, worker, operator } = await system({
      REDIS_URL: `rediss://:${password}@anywhere`,
      REDIS_SENTINELS: `127.0.0.1:${sentinelPort}`,
      REDIS_SENTINEL_NAME: 'posthorn',
      REDIS_SENTINEL_PASSWORD: password,
      NODE_EXTRA_CA_CERTS: cert,
      ACK_REPLICAS: '1',
    });
    expect((await publish(sampleEvent({ id: 'evt_before' }))).status).toBe(202);
    process.kill(master.pid, 'SIGKILL');
    // The only replica becomes the master, so there is none left to wait for: stored, delivered, and answered 503.
    await eventually(
      'the new master to take an event',
      async () => {
        await publish(sampleEvent({ id: 'evt_after' }));
        return to.requests.some(({ headers }) => headers['service-event-id'] === 'evt_after');
      },
      60_000,
    );
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_before');
    for (const line of [...ingest.output, ...worker.output, ...operator.output]) expect(line).not.toContain(password);
  }, 120_000);

  it('no connection ends for good, though it hears of the failover while it is looking for the new master', async () => {
    const { master, sentinels } = await watchedPair(1);
    const slow = await ownProxy(sentinels[0]!.port);
    const clients = Array.from({ length: 10 }, () => ownClient(throughSentinels([slow.port])));
    for (const client of clients) client.on('error', () => undefined);
    await Promise.all(clients.map((client) => client.set('before', '1')));
    await eventually('all to be subscribed', async () => slow.connections() >= clients.length);
    // Nearly all the time goes into looking.
    slow.delay(200);
    process.kill(master.pid, 'SIGKILL');
    expect(await Promise.all(clients.map((client) => client.set('after', '1')))).toEqual(clients.map(() => 'OK'));
  }, 60_000);

  it('a sentinel that stands still holds nobody up', async () => {
    const { sentinels } = await watchedPair(2);
    process.kill(sentinels[0]!.pid, 'SIGSTOP');
    const client = ownClient(throughSentinels(sentinels.map(({ port }) => port)));
    atEnd(() => process.kill(sentinels[0]!.pid, 'SIGCONT'));
    expect(await client.set('key', '1')).toBe('OK');
  }, 30_000);

  it('with nobody left to ask, commands fail in time, later ones at once, and none piles up in memory', async () => {
    const { master, sentinels } = await watchedPair(1);
    const client = ownClient(throughSentinels([sentinels[0]!.port]), { failFastAfterMs: 300 });
    client.on('error', () => undefined);
    await client.set('key', '1');
    for (const { pid } of [...sentinels, master]) process.kill(pid, 'SIGKILL');
    await eventually('it to be lost', () => client.status !== 'ready');
    await expect(client.set('key', '2')).rejects.toThrow(/Command timed out|Connection is closed|max retries/);
    await eventually('commands to fail at once', async () => {
      let failed = false;
      client.set('key', '3').catch(() => {
        failed = true;
      });
      await new Promise(setImmediate);
      return failed;
    });
  }, 30_000);

  it.each([
    ['0', 'is lost with it'],
    ['1', 'is there, with its delivery and its job'],
  ])(
    'ACK_REPLICAS=%s: what was accepted just before the master dies, ahead of a slow replica, %s',
    async (replicas) => {
      const master = await redisServer(['--repl-diskless-sync-delay', '0']);
      const link = await ownProxy(master.port);
      const toReplica = ['--replicaof', '127.0.0.1', String(link.port), '--repl-diskless-load', 'on-empty-db'];
      const replica = await redisServer(toReplica);
      const client = ownClient({ REDIS_URL: replica.url });
      const inSync = async () => /master_link_status:up/.test(await client.info('replication'));
      await eventually('the replica to be in step', inSync, 30_000);
      const env = { ...worldEnv('posthorn', master.url), LOG_LEVEL: 'info', ACK_REPLICAS: replicas };
      const [ingest, operator] = [ownProcess('ingest', env), ownProcess('console', env)];
      const on = apiClients((await ingest.ready).url, (await operator.ready).url);
      await on.subscribe((await ownReceiver()).url);
      await eventually(
        'the subscription on the replica',
        async () => (await client.keys('*subscription:sub_*')).length === 1,
      );
      link.delay(300);
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) {
        const { status, body } = await on.publish(sampleEvent());
        expect(status).toBe(202);
        ids.push(body.id);
      }
      process.kill(master.pid, 'SIGKILL');
      await eventually('the replica to notice', async () => !(await inSync()));
      const there = async (kind: string) => (await client.keys(`posthorn:*${kind}*`)).length;
      const found = [await there(':event:evt_'), await there(':delivery:dlv_'), await there(':deliveries:dlv_')];
      expect(found).toEqual(replicas === '1' ? [3, 3, 3] : [0, 0, 0]);
      expect(ids).toHaveLength(3);
    },
  );

  it('with too few replicas nothing is accepted', async () => {
    const redis = await redisServer(['--repl-diskless-sync-delay', '0']);
    const { publish } = await system({ REDIS_URL: redis.url, ACK_REPLICAS: '1' });
    const refused = await publish(sampleEvent({ id: 'evt_alone' }));
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(refused.headers.get('retry-after')).toBe('5');
    await redisServer(['--replicaof', '127.0.0.1', String(redis.port)]);
    await eventually(
      'the same event to be taken',
      async () => (await publish(sampleEvent({ id: 'evt_alone' }))).status === 200,
    );
  }, 60_000);
});

describe('a Redis that', () => {
  it('is slow: what is accepted arrives, and nothing is half accepted', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const { publish, deliveries, to, ingestUrl } = await system({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
    proxy.delay(50);
    const answers = await Promise.all(Array.from({ length: 50 }, () => publish(sampleEvent())));
    expect(answers.every(({ status, body }) => status === 202 && body.deliveries === 1)).toBe(true);
    await to.received(50, isDelivery);
    // Slower than anybody waits for.
    proxy.delay(4_000);
    const refused = await publish(sampleEvent({ id: 'evt_slow' }));
    expect(refused).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await fetch(`${ingestUrl}/healthz`)).status).toBe(200);
    proxy.delay(0);
    await eventually('the same event to be taken', async () =>
      [200, 202].includes((await publish(sampleEvent({ id: 'evt_slow' }))).status),
    );
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_slow');
    await eventually('all records', async () => (await deliveries('status=succeeded&limit=100')).length === 51, 30_000);
  }, 120_000);

  it('breaks off in the middle of its answers to ingest: publishers are told 503, and what they repeat arrives once', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const through = { REDIS_URL: `redis://127.0.0.1:${proxy.port}` };
    const { publish, to, ingest } = await system({ REDIS_URL: redis.url }, { ingest: through });
    const refused: number[] = [];
    const untilTaken = async (id: string): Promise<void> => {
      const { status } = await publish(sampleEvent({ id }));
      if (status === 200 || status === 202) return;
      refused.push(status);
      await untilTaken(id);
    };
    let count = 0;
    // Until an answer to several commands at once was hit.
    while (refused.length === 0) {
      proxy.cutWithin(SEVERAL_ANSWERS_BYTES);
      await Promise.all(Array.from({ length: 50 }, () => untilTaken(`evt_${count++}`)));
    }
    await to.received(count, isDelivery);
    expect(new Set(refused)).toEqual(new Set([503]));
    expect(to.requests.filter(isDelivery)).toHaveLength(count);
    expect(complaintsOf(ingest)).toEqual([]);
  }, 60_000);

  it('breaks off in the middle of its answers to a worker: outcomes are stored all the same, and nothing is sent twice', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const through = { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, ADDRESS_CONCURRENCY: '40' };
    const { publish, deliveries, to, worker } = await system({ REDIS_URL: redis.url }, { worker: through });
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    await Promise.all(Array.from({ length: 30 }, () => publish(sampleEvent())));
    await to.received(30, isDelivery);
    proxy.cutWithin(SEVERAL_ANSWERS_BYTES);
    answer.resolve();
    await eventually('all records', async () => (await deliveries('status=succeeded')).length === 30, 30_000);
    expect(to.requests.filter(isDelivery)).toHaveLength(30);
    expect(complaintsOf(worker)).toEqual([]);
  }, 60_000);

  it('is full while attempts are in flight: their outcomes are kept until there is room, and nothing is sent twice', async () => {
    const redis = await redisServer();
    const { publish, deliveries, to, worker } = await system({ REDIS_URL: redis.url, ADDRESS_CONCURRENCY: '40' });
    const client = ownClient({ REDIS_URL: redis.url });
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    for (let i = 0; i < 30; i++) expect((await publish(sampleEvent())).status).toBe(202);
    await to.received(30, isDelivery);
    await client.config('SET', 'maxmemory', '1mb');
    answer.resolve();
    const { url } = await worker.ready;
    const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status;
    await eventually('the worker to say that it is not ready', async () => (await statusOf('/readyz')) === 503);
    expect(await statusOf('/healthz')).toBe(200);
    expect((await deliveries('status=pending')).length).toBeGreaterThan(0);
    await client.config('SET', 'maxmemory', '0');
    await eventually('all records', async () => (await deliveries('status=succeeded&limit=100')).length === 30, 30_000);
    expect(to.requests.filter(isDelivery)).toHaveLength(30);
    expect((await publish(sampleEvent({ id: 'evt_after' }))).status).toBe(202);
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_after');
  }, 90_000);

  it('stands still with its connections open: 503 meanwhile, and all goes on afterwards', async () => {
    const redis = await redisServer();
    const { publish, publishBatch, to, ingestUrl } = await system({ REDIS_URL: redis.url });
    process.kill(redis.pid, 'SIGSTOP');
    const batch = () => publishBatch(Array.from({ length: 500 }, () => sampleEvent()));
    const waiting = [publish(sampleEvent()), ...Array.from({ length: 19 }, batch)];
    const ready = await fetch(`${ingestUrl}/readyz`);
    // More than can be answered soon is refused at once, before it costs memory.
    const tooMuch = await batch();
    const refused = await Promise.all(waiting);
    process.kill(redis.pid, 'SIGCONT');
    expect(ready.status).toBe(503);
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual(Array(20).fill([503, 'unavailable']));
    expect([tooMuch.status, tooMuch.body.code, tooMuch.headers.get('retry-after')]).toEqual([503, 'overloaded', '1']);
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_after');
  }, 60_000);

  it('takes no more connections: 503 until it does, and all go on by themselves', async () => {
    const redis = await redisServer();
    const { publish, to, ingest } = await system({ REDIS_URL: redis.url });
    const client = ownClient({ REDIS_URL: redis.url });
    await client.config('SET', 'maxclients', '1');
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal');
    expect((await publish(sampleEvent())).status).toBe(503);
    expect(complaintsOf(ingest)).toEqual([]);
    await client.config('SET', 'maxclients', '10000');
    await accepted(() => publish(sampleEvent({ id: 'evt_after' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_after');
  }, 60_000);

  it('vanishes without closing a connection: another connection is made', async () => {
    const redis = await redisServer();
    const proxy = await ownProxy(redis.port);
    const { publish, to } = await system({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
    proxy.swallow();
    await accepted(() => publish(sampleEvent({ id: 'evt_later' })));
    await to.received(1, ({ headers }) => headers['service-event-id'] === 'evt_later');
  }, 90_000);
});
