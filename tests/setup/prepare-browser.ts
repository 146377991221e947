/** Provides what the browser tests need besides Redis: a chromium, a curl, and a built page. */
import { dirname } from 'node:path';
import { buildPage } from '../../scripts/build-page.ts';
import { chromium, curl } from '../../scripts/programs/programs.ts';
import { providePrograms } from '../../scripts/programs/provide.ts';
import startRedis from './start-redis.ts';

export default async function prepare(): Promise<void> {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  const paths = await providePrograms([chromium, curl], { say });
  process.env.POSTHORN_TEST_CHROMIUM = paths.chromium;
  // The tests run the command that the page shows, exactly as shown.
  process.env.PATH = `${process.env.PATH}:${dirname(paths.curl!)}`;
  await buildPage(say);
  await startRedis();
}
