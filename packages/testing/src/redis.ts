/** The Redis of a test run, and unique key prefixes. */
import { randomBytes } from 'node:crypto';

/** Returns the address of the Redis that the test run has started. */
export function testRedisUrl(): string {
  const url = process.env.POSTHORN_TEST_REDIS_URL;
  if (!url) throw new Error('No Redis for tests: run them with npm test');
  return url;
}

/**
 * Returns a unique key prefix. It begins with that of the run, so that no test touches other keys of a shared Redis.
 */
export function testPrefix(): string {
  return `${process.env.POSTHORN_TEST_PREFIX ?? 'posthorn-test'}-${randomBytes(6).toString('hex')}`;
}
