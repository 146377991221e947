/** Provides what the tests of whole apps need besides Redis: the apps as they are built for production. */
import { buildApps } from '../../scripts/build-apps.ts';
import startRedis from './start-redis.ts';

export default async function prepare(): Promise<void> {
  await buildApps((line) => void process.stdout.write(`${line}\n`));
  await startRedis();
}
