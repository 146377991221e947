/** What the browser's tests need besides Redis: a chromium, installed if there is none, and the page, built. */
import { buildPage } from '../../scripts/build-page.ts';
import { findProgram } from '../../scripts/programs.ts';
import startRedis from './start-redis.ts';

const chromium = {
  title: 'chromium',
  names: ['chromium', 'chromium-browser', 'google-chrome'],
  aptPackage: 'chromium',
  advice: 'The tests of the page need a chromium. Install it: sudo apt-get install chromium',
};

const curl = {
  title: 'curl',
  names: ['curl'],
  aptPackage: 'curl',
  advice: 'The tests of the page run the command that it shows, with curl. Install it: sudo apt-get install curl',
};

export default async function prepare(): Promise<void> {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  process.env.POSTHORN_TEST_CHROMIUM = findProgram(chromium, say);
  findProgram(curl, say);
  buildPage(say);
  await startRedis();
}
