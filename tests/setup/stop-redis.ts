/**
 * Removes the keys that tests of this run have left, stops the Redis that was started for them, and removes its data.
 */
import { rmSync } from 'node:fs';
import { connectRedis } from '@posthorn/store';
import { TEST_REDIS_DIR } from './start-redis.ts';

export default async function stop(): Promise<void> {
  const started = globalThis.posthornTestRedis;
  if (!started) return;
  globalThis.posthornTestRedis = undefined;
  const own = await started;
  if (own === undefined) {
    await removeLeftKeys();
    return;
  }
  await own.stop();
  rmSync(TEST_REDIS_DIR, { recursive: true, force: true });
}

/** Removes what failed tests have left in the Redis of `REDIS_URL`. */
async function removeLeftKeys(): Promise<void> {
  const redis = connectRedis({ REDIS_URL: process.env.POSTHORN_TEST_REDIS_URL! });
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${process.env.POSTHORN_TEST_PREFIX}-*`, 'COUNT', 1_000);
    if (keys.length > 0) await redis.unlink(keys);
    cursor = next;
  } while (cursor !== '0');
  redis.disconnect();
}
