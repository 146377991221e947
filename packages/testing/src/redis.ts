/** The Redis of a test run, and a key prefix of one's own in it. */
import { randomBytes } from 'node:crypto';

/** The address of the Redis that the test run has started. */
export function testRedisUrl(): string {
  const url = process.env.POSTHORN_TEST_REDIS_URL;
  if (!url) throw new Error('No Redis for tests: run them with npm test');
  return url;
}

/** A prefix that no other test uses; it begins with that of the run, so that no test touches other keys of a shared Redis. */
export function testPrefix(): string {
  return `${process.env.POSTHORN_TEST_PREFIX ?? 'posthorn-test'}-${randomBytes(6).toString('hex')}`;
}
