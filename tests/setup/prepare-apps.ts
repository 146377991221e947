/** Provides what the tests of whole apps need besides Redis: the apps as they are built for production. */
import { join } from 'node:path';
import { buildApp, buildApps, sourcesOf } from '../../scripts/build-apps.ts';
import { isBuiltFrom } from '../../scripts/build-folder.ts';
import { root } from '../../scripts/folder.ts';
import startRedis from './start-redis.ts';

export default async function prepare(): Promise<void> {
  await buildApps((line) => void process.stdout.write(`${line}\n`));
  await buildEagerWorker();
  await startRedis();
}

/** Tests start it again and again. From its sources, a start takes three times the CPU. */
async function buildEagerWorker(): Promise<void> {
  const entry = 'tests/eager-worker.ts';
  const folder = join(root, 'apps/worker/dist-eager');
  const sources = [...sourcesOf('worker'), join(root, entry)];
  if (!isBuiltFrom(folder, sources)) await buildApp(folder, entry, sources);
}
