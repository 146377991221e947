/** The gauges of the whole installation, as a scrape of a process has them. */
import { expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { ownClient, ownWorld } from './own.ts';
import { redisServer } from './redis-servers.ts';

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

it('tells a Redis that refuses writes from workers that are gone', async () => {
  const { gauge, becomes, client } = await ownGauges({ PARTITIONS: '3' });
  await becomes('posthorn_partitions', 3);
  expect(await gauge('posthorn_partitions_refusing_writes')).toBe(0);
  await becomes('posthorn_maintenance_partitions', 3);
  await client.config('SET', 'min-replicas-to-write', '1');
  await becomes('posthorn_partitions_refusing_writes', 3);
  // Heartbeats are writes.
  await becomes('posthorn_workers', 0);
  expect(await gauge('posthorn_redis_up')).toBe(1);
  await client.config('SET', 'min-replicas-to-write', '0');
  await becomes('posthorn_partitions_refusing_writes', 0);
  await becomes('posthorn_workers', 1);
});
