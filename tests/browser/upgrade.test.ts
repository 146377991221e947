/**
 * The overview after an upgrade: which processes it waits for, and until when the release before can be started again.
 */
import { expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { atEnd, ownClient, ownWorld } from '../own.ts';
import { redisServer } from '../redis-servers.ts';
import { launchBrowser, openVisit } from './browser.ts';

const PREFIX = 'upgraded';

it('says what the stored format waits for, and when it will be raised', async () => {
  const { url } = await redisServer();
  const redis = ownClient({ REDIS_URL: url });
  const key = `${PREFIX}:installation`;
  // What release 0.1.0 leaves: a process has been running within the last minute, however long this test takes.
  await redis.hset(key, { format: 1, partitions: 1, checked_at: Date.now() + HOUR_MS });
  const world = await ownWorld({ redisUrl: url, env: { KEY_PREFIX: PREFIX } });
  const browser = await launchBrowser();
  atEnd(() => browser.close());
  const { page, signIn, accessibilityFindings, overflow, screenshot, problems } = await openVisit(
    browser,
    world.consoleUrl,
  );
  await page.goto('/sign-in');
  await signIn();
  await page.getByText('An upgrade is in progress').waitFor();
  await page.getByText(/These processes are of the release before: /).waitFor();
  expect(await accessibilityFindings()).toEqual([]);
  await screenshot('upgrade-in-progress');

  await redis.hdel(key, 'checked_at');
  await eventually('a worker to look again', async () => (await redis.hget(key, 'raises_at')) !== null);
  await page.reload();
  await page.getByText('The release before can still be started again').waitFor();
  await page.getByText('Then the stored format is raised from 1 to 2.').waitFor();
  const raisesAt = Date.parse(String(await page.getByRole('alert').locator('time').getAttribute('datetime')));
  expect(Math.abs(raisesAt - Number(await redis.hget(key, 'raises_at')))).toBeLessThan(1_000);
  expect(await accessibilityFindings()).toEqual([]);
  expect(await overflow()).toBe(0);
  await screenshot('upgraded');
  expect(problems).toEqual([]);
});
