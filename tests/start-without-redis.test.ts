/**
 * Apps that start before their Redis: meanwhile they respond to probes and callers, and then they continue by
 * themselves.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { startServer } from '../scripts/redis/server.ts';
import { atEnd, ownClient, ownDir, ownProcess, ownReceiver } from './own.ts';
import { complaintsOf, type Process } from './processes.ts';
import { redisServer } from './redis-servers.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent, worldEnv } from './world.ts';

const APPS = ['ingest', 'worker', 'console'] as const;
type Apps = readonly (typeof APPS)[number][];
const PASSWORD = 'redis-pa55word';

/** A kind of Redis: the settings of the apps, known before anything is started, and a function that starts it. */
interface Setup {
  env: Record<string, string>;
  start(): Promise<void>;
}
async function oneRedis(): Promise<Setup> {
  const port = await freePort();
  const env = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${port}` };
  return { env, start: async () => void (await redisServer(['--requirepass', PASSWORD], { port })) };
}
async function watchedRedis(): Promise<Setup> {
  const [port, sentinelPort] = [await freePort(), await freePort()];
  return {
    env: {
      REDIS_URL: `redis://:${PASSWORD}@anywhere`,
      REDIS_SENTINELS: `127.0.0.1:${sentinelPort}`,
      REDIS_SENTINEL_NAME: 'posthorn',
    },
    async start() {
      await redisServer(['--requirepass', PASSWORD], { port });
      const dir = ownDir();
      const config = join(dir, 'sentinel.conf');
      const watched = [`monitor posthorn 127.0.0.1 ${port} 1`, `auth-pass posthorn ${PASSWORD}`];
      const lines = [`port ${sentinelPort}`, `dir ${dir}`, ...watched.map((line) => `sentinel ${line}`)];
      writeFileSync(config, lines.join('\n'));
      const sentinel = await startServer(dir, {
        port: sentinelPort,
        args: [config, '--sentinel'],
        say: () => undefined,
      });
      atEnd(() => sentinel.stop());
    },
  };
}
/** One master with all slots. It has met no other node, so it does not know its own address. */
async function smallCluster(): Promise<Setup> {
  const [port, busPort] = [await freePort(), await freePort()];
  return {
    env: { REDIS_URL: 'redis://anywhere', REDIS_CLUSTER_NODES: `127.0.0.1:${port}`, PARTITIONS: '3' },
    async start() {
      const { url } = await redisServer(
        ['--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--cluster-announce-ip', '127.0.0.1'],
        { port },
      );
      await ownClient({ REDIS_URL: url }).call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    },
  };
}

/** Starts a process of each of these apps on a known port, so that the test need not wait for its `ready` line. */
async function startApps(change: Record<string, string>, apps: Apps = APPS) {
  const env = { ...worldEnv('posthorn', 'redis://127.0.0.1'), LOG_LEVEL: 'info', ...change };
  const started = [];
  for (const name of apps) {
    const port = await freePort();
    const app = ownProcess(name, { ...env, PORT: String(port) });
    started.push({ name, app, url: `http://127.0.0.1:${port}` });
  }
  return started;
}
const said = ({ output }: Process, text: string) => output.filter((line) => line.includes(text));
const isReady = (app: Process) => said(app, '"msg":"ready"').length > 0;
const reportsOutage = (app: Process, why = "can't be used") =>
  eventually(`a report on ${why}`, () => said(app, why).length > 0 || endedEarly(app));
function endedEarly({ child, output }: Process): never | false {
  if (child.exitCode === null) return false;
  throw new Error(`The app exited: ${output.join('\n')}`);
}
async function get(url: string, headers = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, text: await response.text() };
}

describe.each([
  ['Redis', oneRedis],
  ['sentinel', watchedRedis],
  ['Cluster', smallCluster],
])('apps started before any %s answers', (_what, newSetup) => {
  it('are alive and not ready, answer 503, and continue by themselves once it is there', async () => {
    const { env, start } = await newSetup();
    const apps = await startApps(env);
    for (const { app, url } of apps) {
      await reportsOutage(app);
      expect(await get(`${url}/healthz`)).toEqual({ status: 200, text: '{"status":"ok"}' });
      const ready = await get(`${url}/readyz`);
      expect([ready.status, JSON.parse(ready.text).code]).toEqual([503, 'unavailable']);
      const metrics = await get(`${url}/metrics`);
      expect(metrics.status).toBe(200);
      expect(metrics.text).toMatch(/^posthorn_redis_up\{[^}]*\} 0$/m);
      expect(metrics.text).toMatch(/^posthorn_build_info/m);
      expect(metrics.text).not.toMatch(/^posthorn_(deliveries|oldest_pending_age_seconds)\{/m);
    }
    const [ingestUrl, , consoleUrl] = apps.map(({ url }) => url) as [string, string, string];
    const { publish, operate, subscribe, deliveries } = apiClients(ingestUrl, consoleUrl);
    const refused = [
      await publish(sampleEvent({ id: 'evt_early' })),
      await operate('GET', '/v1/overview'),
      await operate('GET', '/queues/api/queues'),
      await operate('POST', '/v1/session', { token: OPERATOR_TOKEN }),
    ];
    for (const { status, headers, body } of refused) {
      expect(body.detail).toContain('its log says why');
      expect([status, body.code, headers.get('content-type')]).toEqual([
        503,
        'unavailable',
        expect.stringContaining('application/problem+json'),
      ]);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect((await publish(sampleEvent(), 'no-publisher')).status).toBe(401);
    for (const url of [ingestUrl, consoleUrl]) expect((await get(`${url}/openapi.json`)).status).toBe(200);
    for (const { app } of apps) {
      expect(isReady(app)).toBe(false);
      // One report is enough.
      expect(said(app, 'redis.failed')).toEqual([]);
    }

    await start();
    for (const { app } of apps) await app.ready;
    const to = await ownReceiver();
    await subscribe(to.url);
    expect((await publish(sampleEvent({ id: 'evt_early' }))).status).toBe(202);
    await to.received(1, isDelivery);
    await eventually('its record', async () => (await deliveries('status=succeeded')).length === 1);
    for (const { app, url } of apps) {
      expect((await get(`${url}/readyz`)).status).toBe(200);
      await eventually('metrics that know Redis', async () =>
        /^posthorn_redis_up\{[^}]*\} 1$/m.test((await get(`${url}/metrics`)).text),
      );
      expect(said(app, '"msg":"ready"')).toHaveLength(1);
      expect(complaintsOf(app)).toEqual([]);
      expect(said(app, PASSWORD)).toEqual([]);
    }
  });

  it('exit with 0 on SIGTERM without using up their grace', async () => {
    // Longer than this test may take.
    const { env } = await newSetup();
    for (const { app } of await startApps({ ...env, SHUTDOWN_GRACE: '1h' })) {
      await reportsOutage(app);
      app.child.kill('SIGTERM');
      expect(await app.ended).toBe(0);
      expect(complaintsOf(app)).toEqual([]);
    }
  });
});

describe('apps that wait for their Redis', () => {
  type Client = ReturnType<typeof ownClient>;
  /** Changes the number of partitions in the record of the installation. */
  const storeOtherPartitions = (client: Client) => client.hset('posthorn:installation', 'partitions', 4);
  it.each([
    [
      'may evict keys',
      async () => undefined,
      ['--maxmemory-policy', 'allkeys-lru'],
      'maxmemory-policy is allkeys-lru',
      APPS,
    ],
    ['has data of another number of partitions', storeOtherPartitions, [], 'Set PARTITIONS=4', APPS],
    [
      'has a key of another program under their prefix',
      (client: Client) => client.set('posthorn:installation', 'x'),
      [],
      'The key "posthorn:installation" in Redis is a string, but Posthorn keeps a hash there',
    ],
    [
      'has a key of another type in a partition',
      (client: Client) => client.set('posthorn:{0}:audit', 'x'),
      [],
      'The key "posthorn:{0}:audit" in Redis is a string, but Posthorn keeps a stream there, so another program uses KEY_PREFIX',
    ],
    [
      'has such a key in an installation that has begun',
      async (client: Client) => {
        await client.hset('posthorn:installation', 'partitions', 1);
        await client.set('posthorn:{0}:audit', 'x');
      },
      [],
      "Keep KEY_PREFIX, and move the key away: redis-cli -c RENAME 'posthorn:{0}:audit' 'posthorn:{0}:audit:moved'.",
    ],
    [
      'has a key of BullMQ of another type',
      async (client: Client) => {
        await client.hset('posthorn:installation', 'partitions', 1);
        await client.set('posthorn:{0}:deliveries:delayed', 'x');
      },
      [],
      'The key "posthorn:{0}:deliveries:delayed" in Redis is a string, but Posthorn keeps a zset there',
    ],
  ])(
    'exit with 1 and one message if it turns out that it %s',
    async (_what, fill, extra, message, names: Apps = ['ingest']) => {
      const [port, dir] = [await freePort(), ownDir()];
      const before = await redisServer([], { dir, port });
      await fill(ownClient({ REDIS_URL: before.url }));
      await before.stop();
      const apps = await startApps({ REDIS_URL: before.url }, names);
      for (const { app } of apps) await reportsOutage(app);
      await redisServer(extra, { dir, port });
      for (const { app } of apps) {
        expect(await app.ended).toBe(1);
        expect(app.output.filter((line) => !line.startsWith('{'))).toEqual([expect.stringContaining(message)]);
        expect(complaintsOf(app)).toHaveLength(1);
        expect(isReady(app)).toBe(false);
      }
    },
  );

  it('exit with 1 if Redis has no such database, and join no installation in another one', async () => {
    const { url } = await redisServer(['--databases', '4']);
    for (const { app } of await startApps({ REDIS_URL: `${url}/4` })) {
      expect(await app.ended).toBe(1);
      expect(app.output).toContainEqual(
        'Redis refuses database 4: ERR DB index is out of range. Check the number at the end of REDIS_URL.',
      );
    }
    const installationIn = (db: number) => ownClient({ REDIS_URL: `${url}/${db}` }).exists('posthorn:installation');
    expect(await installationIn(0)).toBe(0);
    for (const { app } of await startApps({ REDIS_URL: `${url}/3` })) await app.ready;
    expect([await installationIn(0), await installationIn(3)]).toEqual([0, 1]);
  });

  it('wait and say so if their password is wrong, and continue once it is right', async () => {
    const { env, start } = await oneRedis();
    await start();
    const apps = await startApps({ REDIS_URL: env.REDIS_URL!.replace(PASSWORD, 'rotated-pa55word') });
    for (const { app, url } of apps) {
      await reportsOutage(app, 'WRONGPASS');
      expect(said(app, 'Check user and password in REDIS_URL.')).toHaveLength(1);
      expect((await get(`${url}/readyz`)).status).toBe(503);
    }
    await ownClient({ REDIS_URL: env.REDIS_URL! }).config('SET', 'requirepass', 'rotated-pa55word');
    for (const { app } of apps) {
      await app.ready;
      expect(said(app, 'pa55word')).toEqual([]);
    }
  });

  it('wait and say so if their user has no rights to the keys, and continue once it has', async () => {
    const { url } = await redisServer(['--user', 'posthorn', 'on', '>pw', '~other:*', '&*', '+@all']);
    const apps = await startApps({ REDIS_URL: url.replace('//', '//posthorn:pw@') });
    for (const { app } of apps) await reportsOutage(app, 'NOPERM');
    await ownClient({ REDIS_URL: url }).call('ACL', 'SETUSER', 'posthorn', '~posthorn:*');
    for (const { app } of apps) await app.ready;
  });

  it('report an outage after their start with its reason, not once for each attempt to connect, and continue', async () => {
    const [port, dir] = [await freePort(), ownDir()];
    const redis = await redisServer([], { dir, port });
    const apps = await startApps({ REDIS_URL: redis.url });
    for (const { app } of apps) await app.ready;
    await redis.stop();
    for (const { app } of apps)
      await reportsOutage(app, `Redis at 127.0.0.1:${port} can't be used: connect ECONNREFUSED`);
    await redisServer([], { dir, port });
    for (const { app, url } of apps) {
      await eventually('readiness', async () => (await get(`${url}/readyz`)).status === 200);
      expect(said(app, 'redis.failed')).toEqual([]);
    }
  });

  it('wait if Redis refuses what a service does at its start, and continue once it does not', async () => {
    const rights = ['on', '>pw', '~posthorn:*', '&*', '+@all', '-zadd'];
    const { url } = await redisServer(['--user', 'posthorn', ...rights]);
    const env = { ...worldEnv('posthorn', url.replace('//', '//posthorn:pw@')), LOG_LEVEL: 'info' };
    const worker = ownProcess('worker', env);
    await reportsOutage(worker, 'service.start_retried');
    await ownClient({ REDIS_URL: url }).call('ACL', 'SETUSER', 'posthorn', '+zadd');
    await worker.ready;
    expect(said(worker, '"msg":"ready"')).toHaveLength(1);
  });

  it('wait while Redis is full, say so, and know already what each publisher has stored', async () => {
    const { url } = await redisServer();
    const env = { ...worldEnv('posthorn', url), LOG_LEVEL: 'info' };
    const first = ownProcess('ingest', env);
    const { publish } = apiClients((await first.ready).url, '');
    expect((await publish(sampleEvent())).status).toBe(202);
    first.child.kill('SIGTERM');
    await first.ended;
    const redis = ownClient({ REDIS_URL: url });
    await redis.config('SET', 'maxmemory', '1mb');
    const port = await freePort();
    const ingest = ownProcess('ingest', { ...env, PORT: String(port) });
    await reportsOutage(ingest, "OOM command not allowed when used memory > 'maxmemory'");
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/posthorn_publisher_stored_bytes\{[^}]*\} [1-9]/);
    await redis.config('SET', 'maxmemory', '0');
    await ingest.ready;
    expect(said(ingest, 'EXECABORT')).toEqual([]);
  });

  it('report once why Redis refuses the jobs of a worker that has started, and continue once it does not', async () => {
    const rights = ['on', '>pw', '~posthorn:*', '&*', '+@all'];
    const { url } = await redisServer(['--user', 'posthorn', ...rights]);
    const env = { ...worldEnv('posthorn', url.replace('//', '//posthorn:pw@')), LOG_LEVEL: 'info' };
    const worker = ownProcess('worker', env);
    const { url: workerUrl } = await worker.ready;
    const admin = ownClient({ REDIS_URL: url });
    await admin.call('ACL', 'SETUSER', 'posthorn', '-@write');
    // The reason itself has other words in Redis 7.0.
    await reportsOutage(worker, '`ACL LOG` of Redis names what it lacks');
    await admin.call('ACL', 'SETUSER', 'posthorn', '+@all');
    await eventually('readiness', async () => (await get(`${workerUrl}/readyz`)).status === 200);
    expect(said(worker, 'queue.failed')).toEqual([]);
  });

  it('wait if Redis is in protected mode, quote its message, and continue once it is not', async () => {
    const port = await freePort();
    // In protected mode Redis does this to clients of other machines; this test has no other machine.
    const refusing = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.resume().end('-DENIED Redis is running in protected mode.\r\n');
    });
    atEnd(() => refusing.close());
    await new Promise<void>((resolve) => refusing.listen(port, '127.0.0.1', resolve));
    const apps = await startApps({ REDIS_URL: `redis://127.0.0.1:${port}` });
    for (const { app } of apps)
      await reportsOutage(
        app,
        `Redis at 127.0.0.1:${port} can't be used: DENIED Redis is running in protected mode. Waiting for it.`,
      );
    await new Promise((resolve) => refusing.close(resolve));
    await redisServer([], { port });
    for (const { app } of apps) await app.ready;
  });

  it('exit at once if their port is taken', async () => {
    const { env } = await oneRedis();
    const PORT = String(await freePort());
    const apps = { ...worldEnv('posthorn', 'redis://127.0.0.1'), LOG_LEVEL: 'info', ...env, PORT };
    await reportsOutage(ownProcess('ingest', apps));
    const second = ownProcess('worker', apps);
    expect(await second.ended).toBe(1);
    expect(said(second, `127.0.0.1:${PORT} is already in use. Set PORT or OPERATIONS_PORT.`)).toHaveLength(1);
  });
});
