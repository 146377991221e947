/** What scripts that run all the time cost Redis: the commands in them, counted by a server of the test's own. */
import { beforeEach, expect, it } from '@jest/globals';
import { eventRef, HOUR_MS } from '@posthorn/core';
import { openStore, partitionPrefix, putBackLost, type Store, storeEvent, watchWorkers } from '@posthorn/store';
import { testPrefix } from '@posthorn/testing';
import { atEnd } from './own.ts';
import { redisServer } from './redis-servers.ts';

let store: Store;
let prefix: string;

beforeEach(async () => {
  const { url } = await redisServer();
  const onError = (error: Error) => {
    throw error;
  };
  const settings = { REDIS_URL: url, KEY_PREFIX: testPrefix(), PARTITIONS: 1, RETENTION: HOUR_MS };
  const storage = openStore(settings, { onError });
  await storage.start();
  atEnd(() => storage.stop());
  ({ store } = storage);
  prefix = partitionPrefix(store, 0);
});

/** How often Redis ran each of these commands while `run` did. */
async function countCommands(run: () => Promise<unknown>, ...names: string[]): Promise<Record<string, number>> {
  const counts = async () => {
    const stats = await store.redis.info('commandstats');
    return names.map((name) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0));
  };
  const before = await counts();
  await run();
  const after = await counts();
  return Object.fromEntries(names.map((name, i) => [name, after[i]! - before[i]!]));
}

it('all workers are read once in the time of a check, however many renew their leases', async () => {
  const renewAll = async () => {
    for (let i = 0; i < 50; i++) {
      const lease = { owner: `worker${i}`, nextOwner: `next${i}` };
      await watchWorkers(store, 0, { ...lease, checkMs: HOUR_MS, maxChecks: 4, limit: 100, goesOn: false });
    }
  };
  expect(await countCommands(renewAll, 'hgetall', 'hset')).toEqual({ hgetall: 1, hset: 50 });
});

it('the locks of active jobs are read 500 at a time', async () => {
  const ids = Array.from({ length: 1_201 }, (_, i) => `job${i}`);
  await store.redis.rpush(`${prefix}:deliveries:active`, ...ids);
  await store.redis.mset(ids.flatMap((id) => [`${prefix}:deliveries:${id}:lock`, 'another:0']));
  await store.redis.set(`${prefix}:deliveries:job700:lock`, 'lost:0');
  const putBack = async () => expect(await putBackLost(store, 0, ['lost:0'], [])).toBe(1);
  expect(await countCommands(putBack, 'mget', 'get')).toEqual({ mget: 3, get: 0 });
});

it('a large event is not read as a whole when its id comes again with a small one', async () => {
  const send = (text: string) => {
    const identity = { id: 'order-1', environment: 'sandbox' as const };
    const event = { ...identity, type: 'session.created' as const, createdAt: new Date(0).toISOString() };
    const dataJson = JSON.stringify({ id: 's', status: 'x', text });
    const stored = {
      ref: eventRef(identity),
      event: { ...event, dataJson },
      acceptedAtMs: Date.now(),
      subscriptionIds: [],
    };
    return storeEvent(store, stored);
  };
  await send('x'.repeat(250_000));
  expect(await countCommands(() => send('x'), 'get', 'getrange')).toEqual({ get: 0, getrange: 1 });
});
