/** Starts one Redis for the tests of a run, or uses that of REDIS_URL. Each test keeps to a key prefix of its own. */
import { rmSync } from 'node:fs';
import { type OwnRedis, startRedis } from '../../scripts/redis/server.ts';

declare global {
  var posthornTestRedis: Promise<OwnRedis> | undefined;
}

export const TEST_REDIS_DIR = `${import.meta.dirname}/../../.posthorn/test-redis`;

export default async function start(): Promise<void> {
  if (process.env.REDIS_URL) {
    process.env.POSTHORN_TEST_REDIS_URL = process.env.REDIS_URL;
    return;
  }
  // Two projects ask for it; the first starts it.
  globalThis.posthornTestRedis ??= (async () => {
    rmSync(TEST_REDIS_DIR, { recursive: true, force: true });
    return await startRedis(TEST_REDIS_DIR, { say: (line) => process.stdout.write(`${line}\n`) });
  })();
  process.env.POSTHORN_TEST_REDIS_URL = (await globalThis.posthornTestRedis).url;
}
