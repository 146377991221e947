/** When the commands of a connection are written, on a real Redis. */
import { afterEach, expect, it } from '@jest/globals';
import { testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { joinWrites, writeAtOnce } from './join-writes.ts';

let redis: Redis;
afterEach(() => redis.quit());

it('writes the commands of one turn of the event loop together at its end, or at once where one cannot wait', async () => {
  redis = new Redis(testRedisUrl());
  joinWrites(redis);
  await redis.ping();
  const isHeldBack = () => redis.stream.writableCorked > 0;
  const replies = [redis.ping('first'), redis.ping('second')];
  expect(isHeldBack()).toBe(true);
  replies.push(writeAtOnce(() => redis.ping('urgent')));
  expect(isHeldBack()).toBe(false);
  replies.push(redis.ping('last'));
  expect(isHeldBack()).toBe(true);
  expect(await Promise.all(replies)).toEqual(['first', 'second', 'urgent', 'last']);
  expect(isHeldBack()).toBe(false);
});
