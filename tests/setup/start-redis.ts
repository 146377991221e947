/** Provides a Redis for the tests of a run, and a prefix for all their keys. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { dataDir, prepareFolder } from '../../scripts/folder.ts';
import { endTreeOnSignals } from '../../scripts/process-tree.ts';
import { type OwnRedis, startRedis } from '../../scripts/redis/server.ts';

declare global {
  var posthornTestRedis: Promise<OwnRedis | undefined> | undefined;
}

export const TEST_REDIS_DIR = join(dataDir, 'test-redis');
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Several projects need it; the first one starts it. */
export default async function start(): Promise<void> {
  globalThis.posthornTestRedis ??= provide();
  await globalThis.posthornTestRedis;
}

/** A Redis started for this run, or undefined if the tests use that of `REDIS_URL`. */
async function provide(): Promise<OwnRedis | undefined> {
  endTreeOnSignals();
  const prefix = `posthorn-test-${randomBytes(4).toString('hex')}`;
  process.env.POSTHORN_TEST_PREFIX = prefix;
  if (process.env.REDIS_URL) {
    process.env.POSTHORN_TEST_REDIS_URL = process.env.REDIS_URL;
    const { host, pathname } = new URL(process.env.REDIS_URL);
    say(`Tests use the Redis of REDIS_URL (${host}${pathname}) and touch only keys that begin with ${prefix}-`);
    return undefined;
  }
  prepareFolder(dataDir);
  rmSync(TEST_REDIS_DIR, { recursive: true, force: true });
  const password = randomBytes(16).toString('hex');
  // No test stops it: what it has not written to disk is never missed, and each write would cost all tests CPU.
  const extra = ['--appendfsync', 'no', '--user', ...userOfTests(prefix, password)];
  const redis = await startRedis(TEST_REDIS_DIR, { say, extra });
  process.env.POSTHORN_TEST_REDIS_URL = `redis://tests:${password}@127.0.0.1:${redis.port}`;
  say(`Tests use a Redis of their own at 127.0.0.1:${redis.port}`);
  return redis;
}

/**
 * The rights of tests, which are those that they need in somebody else's Redis (`REDIS_URL`): they may use keys with
 * their prefix and read the server's state, but not change the server. A test that needs more starts its own server.
 */
function userOfTests(prefix: string, password: string): string[] {
  const rights = [`~${prefix}-*`, `&${prefix}-*`, '+@all', '-@dangerous', '-@admin', '+info', '+keys'];
  return ['tests', 'on', `>${password}`, ...rights, '+config|get', '+client'];
}
