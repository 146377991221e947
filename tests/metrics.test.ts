/** The gauges of the whole installation, as a scrape of a process has them. */
import { expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { ownClient, ownReceiver, ownWorld } from './own.ts';
import { redisServer } from './redis-servers.ts';
import { sampleEvent } from './world.ts';

type Client = ReturnType<typeof ownClient>;

const NOTICE_SECRET = 'n'.repeat(32);

/** A reader of a gauge of a worker, on a Redis of its own; of its samples, the one with these labels. */
async function ownGauges(env: Record<string, string> = {}) {
  const redis = await redisServer();
  const world = await ownWorld({ redisUrl: redis.url, env });
  const gauge = async (sample: string): Promise<number | undefined> => {
    const text = await (await fetch(`${world.workerUrls[0]}/metrics`)).text();
    const [name = '', labels = ''] = sample.split(/[{}]/);
    const found = new RegExp(`^${name}\\{${labels}[^}]*\\} (\\S+)$`, 'm').exec(text);
    return found?.[1] === undefined ? undefined : Number(found[1]);
  };
  const becomes = (sample: string, value: number) =>
    eventually(`${sample} ${value}`, async () => (await gauge(sample)) === value);
  return { world, gauge, becomes, client: ownClient({ REDIS_URL: redis.url }) };
}

it.each([
  ['has too few replicas', 'min-replicas-to-write', '1', '0'],
  ['is full', 'maxmemory', '1mb', '0'],
])(
  'tells workers that are gone from a Redis that refuses writes, since it %s',
  async (_why, setting, refusing, usual) => {
    const { gauge, becomes, client } = await ownGauges({ PARTITIONS: '3' });
    await becomes('posthorn_partitions', 3);
    expect(await gauge('posthorn_partitions_refusing_writes')).toBe(0);
    await becomes('posthorn_maintenance_partitions', 3);
    await client.config('SET', setting, refusing);
    await becomes('posthorn_partitions_refusing_writes', 3);
    // Heartbeats are writes.
    await becomes('posthorn_workers', 0);
    expect(await gauge('posthorn_redis_up')).toBe(1);
    await client.config('SET', setting, usual);
    await becomes('posthorn_partitions_refusing_writes', 0);
    await becomes('posthorn_workers', 1);
  },
);

it('says which settings and failures of a running Redis may lose events', async () => {
  const { gauge, becomes, client } = await ownGauges();
  const unsafe = (reason: string) => `posthorn_redis_unsafe{reason="${reason}"}`;
  await becomes(unsafe('eviction'), 0);
  for (const reason of ['no_append_only_file', 'aof_rewrite_failed', 'aof_write_failed'])
    expect([reason, await gauge(unsafe(reason))]).toEqual([reason, 0]);
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await client.config('SET', 'appendonly', 'no');
  await becomes(unsafe('eviction'), 1);
  await becomes(unsafe('no_append_only_file'), 1);
  expect(await gauge(unsafe('aof_rewrite_failed'))).toBe(0);
});

it('knows the newly failing addresses, the oldest pause, and the notice that waits longest', async () => {
  const to = await ownReceiver();
  to.answerWith(503);
  const env = { RETRY_DELAYS: '1h', NOTICE_URL: `${to.url}/notices`, NOTICE_SECRET };
  const { world, gauge, becomes } = await ownGauges(env);
  await becomes('posthorn_newly_failing_addresses', 0);
  expect(await gauge('posthorn_oldest_pause_age_seconds')).toBe(0);
  expect(await gauge('posthorn_oldest_notice_age_seconds')).toBe(0);
  const { id } = await world.subscribe(to.url);
  await world.publishBatch(Array.from({ length: 12 }, () => sampleEvent()));
  await becomes('posthorn_newly_failing_addresses', 1);
  await world.operate('POST', `/v1/subscriptions/${id}/pause`);
  const ages = ['posthorn_oldest_pause_age_seconds', 'posthorn_oldest_notice_age_seconds'];
  for (const age of ages) await eventually(age, async () => ((await gauge(age)) ?? 0) > 0);
});

it.each([
  [
    'a key has been overwritten',
    async (client: Client, prefix: string) => client.set(`${prefix}:{0}:deliveries:delayed`, 'x'),
  ],
  ['its user may not read', async (client: Client) => client.call('ACL', 'SETUSER', 'default', '-llen')],
])('says that nothing could be read where %s, and keeps the metrics of the process', async (_why, breakRedis) => {
  const { world, gauge, becomes, client } = await ownGauges();
  await becomes('posthorn_redis_up', 1);
  await breakRedis(client, world.prefix);
  await becomes('posthorn_redis_up', 0);
  expect(await gauge('posthorn_workers')).toBeUndefined();
  expect(await gauge('posthorn_outage')).toBe(0);
});
