/** Stops the Redis that was started for the tests, and removes its data. */
import { rmSync } from 'node:fs';
import { TEST_REDIS_DIR } from './start-redis.ts';

export default async function stop(): Promise<void> {
  const started = globalThis.posthornTestRedis;
  if (!started) return;
  globalThis.posthornTestRedis = undefined;
  await (await started).stop();
  rmSync(TEST_REDIS_DIR, { recursive: true, force: true });
}
