/** Gives the tests of a run a Redis, and a key prefix that all their keys begin with. */
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

/** Several projects ask for it; the first starts it. */
export default async function start(): Promise<void> {
  globalThis.posthornTestRedis ??= provide();
  await globalThis.posthornTestRedis;
}

/** A Redis of this run's own, or undefined where the tests use that of `REDIS_URL`. */
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
  const redis = await startRedis(TEST_REDIS_DIR, { say, extra: ['--user', ...userOfTests(prefix, password)] });
  process.env.POSTHORN_TEST_REDIS_URL = `redis://tests:${password}@127.0.0.1:${redis.port}`;
  say(`Tests use a Redis of their own at 127.0.0.1:${redis.port}`);
  return redis;
}

/**
 * Tests may do here no more than they may do to a Redis of somebody else (`REDIS_URL`): touch keys of their prefix, look at the server, change
 * nothing about it. A test that needs more starts its own server.
 */
function userOfTests(prefix: string, password: string): string[] {
  const rights = [`~${prefix}-*`, `&${prefix}-*`, '+@all', '-@dangerous', '-@admin', '+info', '+keys'];
  return ['tests', 'on', `>${password}`, ...rights, '+config|get', '+client'];
}
