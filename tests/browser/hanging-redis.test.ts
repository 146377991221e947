/**
 * The page while Redis hangs: what is on screen stays, and is marked as out of date with the time of the last answer.
 */
import { describe, expect, it } from '@jest/globals';
import { atEnd, ownReceiver, ownWorld } from '../own.ts';
import { redisServer } from '../redis-servers.ts';
import { sampleEvent } from '../world.ts';
import { launchBrowser, openVisit } from './browser.ts';

/** A browser beside a console with a Redis of its own, which the test may suspend. */
async function openBesideRedis() {
  const redis = await redisServer();
  const world = await ownWorld({ redisUrl: redis.url });
  // The world can only be stopped while Redis answers.
  atEnd(() => process.kill(redis.pid, 'SIGCONT'));
  const browser = await launchBrowser();
  atEnd(() => browser.close());
  return { redis, world, ...(await openVisit(browser, world.consoleUrl)) };
}

describe('the page', () => {
  it.each([
    ['/', 'Overview', '/v1/overview'],
    ['/deliveries', 'Deliveries', '/v1/deliveries'],
  ])(
    '%s marks its data within 3 s of the last answer before Redis hangs, keeps it, and removes the mark afterwards',
    async (path, heading, call) => {
      const { redis, world, page, signIn, problems, staleMark: mark, stopClock } = await openBesideRedis();
      const to = await ownReceiver();
      await world.subscribe(to.url);
      await world.publish(sampleEvent());
      await page.clock.install();
      await page.goto(`/sign-in?next=${encodeURIComponent(path)}`);
      await signIn();
      await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
      await page.waitForResponse((response) => response.url().includes(call) && response.status() === 200);
      await page.getByText('session.approved').or(page.getByText('All is well')).first().waitFor();
      await mark.waitFor({ state: 'hidden' });
      expect(problems).toEqual([]);

      const stoppedAt = await stopClock(call);
      const refused = page.waitForResponse((response) => response.url().includes(call) && response.status() === 503);
      process.kill(redis.pid, 'SIGSTOP');
      await page.clock.runFor(3_000);
      await mark.waitFor();
      const lastAnswer = Date.parse(String(await mark.locator('time').getAttribute('datetime')));
      expect(lastAnswer).toBeLessThanOrEqual(stoppedAt);
      expect(await page.getByText('session.approved').or(page.getByText('All is well')).count()).toBeGreaterThan(0);

      // The console gives up waiting for Redis: the mark stays, with the same time and the reason.
      await refused;
      await page.clock.resume();
      await mark.getByText(/unavailable|Redis|storage/i).waitFor();
      expect(Date.parse(String(await mark.locator('time').getAttribute('datetime')))).toBe(lastAnswer);

      process.kill(redis.pid, 'SIGCONT');
      await mark.waitFor({ state: 'hidden' });
      expect(problems.every((problem) => problem.startsWith('503 '))).toBe(true);
    },
  );

  it('that is opened while Redis hangs says so, and appears by itself afterwards', async () => {
    const { redis, page, signIn } = await openBesideRedis();
    await page.goto('/sign-in');
    await signIn();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    process.kill(redis.pid, 'SIGSTOP');
    await page.reload();
    const alert = page.getByRole('alert').filter({ hasText: 'Redis is unavailable' });
    await alert.getByText('Deliveries wait until Redis is back; none is lost by that.').waitFor();
    process.kill(redis.pid, 'SIGCONT');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('that follows live attempts says what they wait for, and goes on by itself afterwards', async () => {
    const { redis, page, signIn, staleMark } = await openBesideRedis();
    await page.goto('/sign-in?next=/tail');
    await signIn();
    await page.getByText('Waiting for attempts').waitFor();
    process.kill(redis.pid, 'SIGSTOP');
    await staleMark.getByText('Deliveries wait until Redis is back; none is lost by that.').waitFor();
    process.kill(redis.pid, 'SIGCONT');
    await staleMark.waitFor({ state: 'hidden' });
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('shows the message about a failed action beside the mark for old data, not over it', async () => {
    const { redis, world, page, signIn, staleMark } = await openBesideRedis();
    const { id } = await world.subscribe((await ownReceiver()).url);
    await page.goto(`/sign-in?next=/subscriptions/${id}`);
    await signIn();
    await page.getByRole('button', { name: 'More' }).click();
    process.kill(redis.pid, 'SIGSTOP');
    await page.getByRole('menuitem', { name: 'Pause' }).click();
    const failure = page.getByRole('alert').filter({ hasText: 'The action failed' });
    // It stays while the pointer is over it.
    await failure.hover();
    await staleMark.waitFor();
    const [mark, shown] = [(await staleMark.boundingBox())!, (await failure.boundingBox())!];
    expect(shown.y + shown.height).toBeLessThanOrEqual(mark.y);
    // The rest of the page can be used.
    await page.getByRole('button', { name: 'Send test' }).click({ trial: true });
    process.kill(redis.pid, 'SIGCONT');
  });
});
