/** `ACK_REPLICAS`: how many replicas must have an event before it is accepted. */
import { describe, expect, it } from '@jest/globals';
import { type Event, HOUR_MS } from '@posthorn/core';
import { createReplicaWait, openStore } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import type { Redis } from 'ioredis';
import type { WayToRedis } from './chaos/proxy.ts';
import { atEnd, ownClient, ownProcess, ownProxy, ownReceiver } from './own.ts';
import { accepted, redisServer, system } from './redis-servers.ts';
import { apiClients, sampleEvent, worldEnv } from './world.ts';

/** Longer than any test takes. */
const NEVER_MS = HOUR_MS;
const storeSettings = { KEY_PREFIX: 'posthorn', PARTITIONS: 1, RETENTION: NEVER_MS };

describe('ACK_REPLICAS', () => {
  it.each([
    ['0', 'is lost with it'],
    ['1', 'is there, with its delivery and its job'],
  ])('of %s: an event accepted just before the master dies, ahead of a slow replica, %s', async (replicas) => {
    const master = await redisServer(['--repl-diskless-sync-delay', '0']);
    const link = await ownProxy(master.port);
    const toReplica = ['--replicaof', '127.0.0.1', String(link.port), '--repl-diskless-load', 'on-empty-db'];
    const replica = await redisServer(toReplica);
    const client = ownClient({ REDIS_URL: replica.url });
    const inSync = async () => /master_link_status:up/.test(await client.info('replication'));
    await eventually('the replica to be in sync', inSync);
    const env = { ...worldEnv('posthorn', master.url), LOG_LEVEL: 'info', ACK_REPLICAS: replicas };
    const [ingest, operator] = [ownProcess('ingest', env), ownProcess('console', env)];
    const on = apiClients((await ingest.ready).url, (await operator.ready).url);
    await on.subscribe((await ownReceiver()).url);
    await eventually(
      'the subscription on the replica',
      async () => (await client.keys('*subscription:sub_*')).length === 1,
    );
    // Without an acknowledgement to wait for, nothing more reaches the replica before its master is killed.
    link.delay(replicas === '0' ? NEVER_MS : 100);
    for (const id of ['evt_1', 'evt_2', 'evt_3']) await accepted(() => on.publish(sampleEvent({ id })));
    process.kill(master.pid, 'SIGKILL');
    await eventually('the replica to notice', async () => !(await inSync()));
    const there = async (kind: string) => (await client.keys(`posthorn:*${kind}*`)).length;
    const found = [await there(':event:evt_'), await there(':delivery:dlv_'), await there(':deliveries:dlv_')];
    expect(found).toEqual(replicas === '1' ? [3, 3, 3] : [0, 0, 0]);
  });

  it.each<[string, (on: { link: WayToRedis; master: ReturnType<typeof ownClient> }) => Promise<unknown>]>([
    [
      'the connection was replaced',
      async ({ link }) => {
        link.cut();
        link.restore();
      },
    ],
    // As a replica that takes over does.
    ['the history of the master has ended', ({ master }) => master.call('DEBUG', 'CHANGE-REPL-ID')],
  ])('refuses an event if %s since it was stored: the replicas may be those of another master', async (_, change) => {
    const redis = await redisServer(['--repl-diskless-sync-delay', '0', '--enable-debug-command', 'yes']);
    await redisServer(['--replicaof', '127.0.0.1', String(redis.port)]);
    const link = await ownProxy(redis.port);
    const { store, start, stop } = openStore(
      { ...storeSettings, REDIS_URL: `redis://127.0.0.1:${link.port}` },
      { onError: () => undefined },
    );
    await start();
    atEnd(() => stop());
    const wait = createReplicaWait(store, 1);
    const stored = { event: { id: 'evt_1' } as Event, subscriptionIds: [] };
    const replicated = () =>
      wait
        .begin()(stored)
        .then(
          () => true,
          () => false,
        );
    await eventually('the replica to acknowledge', replicated);
    const untilReplicated = wait.begin();
    await change({ link, master: ownClient({ REDIS_URL: redis.url }) });
    await expect(untilReplicated(stored)).rejects.toThrow('Another master may have taken over');
    await eventually('later events to be acknowledged', replicated);
  });

  it('waits for long only once while the master has too few replicas', async () => {
    const redis = await redisServer(['--repl-diskless-sync-delay', '0']);
    const settings = { ...storeSettings, REDIS_URL: redis.url };
    const { store, start, stop } = openStore(settings, { onError: () => undefined });
    await start();
    atEnd(() => stop());
    const wait = createReplicaWait(store, 1);
    const replicated = () => wait.begin()({ event: { id: 'evt_1' } as Event, subscriptionIds: [] });
    const monitor = await (ownClient({ REDIS_URL: redis.url }) as Redis).monitor();
    atEnd(() => monitor.disconnect());
    const waits: string[] = [];
    monitor.on('monitor', (_time: string, [command, , ms]: string[]) => command === 'wait' && waits.push(ms!));
    for (let i = 0; i < 5; i++) await expect(replicated()).rejects.toThrow('0 of 1 replicas acknowledged the write');
    await eventually('all waits to be seen', () => waits.length === 5);
    expect(waits).toEqual(['1000', '10', '10', '10', '10']);
    await redisServer(['--replicaof', '127.0.0.1', String(redis.port)]);
    await eventually('the replica to acknowledge', () =>
      replicated().then(
        () => true,
        () => false,
      ),
    );
  });

  it('lets nothing be accepted while there are too few replicas', async () => {
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
  });
});
