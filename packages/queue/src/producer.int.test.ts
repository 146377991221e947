/** A producer on a connection that pipelines by itself, on a real Redis. */
import { expect, it } from '@jest/globals';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { createProducer } from './index.ts';

it('can be used beside other commands from the moment it is ready', async () => {
  const redis = new Redis(testRedisUrl(), { enableAutoPipelining: true });
  const errors: Error[] = [];
  const prefix = testPrefix();
  const options = { redis, partitionPrefixes: [`${prefix}:{0}`], onError: (error: Error) => errors.push(error) };
  const producer = createProducer(options);
  let isOver = false;
  // A command in each turn of the event loop: a pipeline is open at any moment.
  const others = (async () => {
    while (!isOver) {
      void redis.get(`${prefix}:none`);
      await new Promise(setImmediate);
    }
  })();
  await producer.ready();
  expect(await producer.counts()).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
  isOver = true;
  await others;
  expect(errors).toEqual([]);
  await producer.close();
  for (const key of await redis.keys(`${prefix}:*`)) await redis.del(key);
  await redis.quit();
});
