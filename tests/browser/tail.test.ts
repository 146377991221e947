/** The live tail on the page. */
import { describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually } from '@posthorn/testing';
import type { Page, Route } from 'playwright-core';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

const rowsOf = (page: Page) => page.getByRole('table', { name: 'Attempts' }).locator('tbody tr');

/**
 * Publishes until a row with this text is shown: workers look every 2 s whether anyone watches, and one of two attempts
 * of an event may come just before that.
 */
async function firstRow(page: Page, hasText = ''): Promise<void> {
  await eventually('a row', async () => {
    await on.publish(sampleEvent());
    return (await rowsOf(page).filter({ hasText }).count()) > 0;
  });
}

describe('the live tail', () => {
  it.each(['wide', 'narrow'] as const)(
    'shows attempts in a %s window, filters them, and can be paused',
    async (width) => {
      const [good, bad] = [await ownReceiver(), await ownReceiver(deliveriesWith(500))];
      const [fine, failing] = [await ownSubscription(good), await ownSubscription(bad)];
      const { page, overflow, accessibilityFindings, screenshot, showIn } = await signedIn({ width });
      await page.goto('/tail');
      await page.getByText('Waiting for attempts').waitFor();
      expect(await page.getByText('The newest 200 attempts').count()).toBe(0);
      await firstRow(page, 'Succeeded');
      await page
        .locator('label')
        .filter({ hasText: /^Failed$/ })
        .click();
      await page.waitForURL('**/tail?failed=true');
      // The address of the page changes before its rows do.
      await page.getByText('Succeeded').first().waitFor({ state: 'hidden' });
      await firstRow(page);
      expect(await page.getByRole('table').getByText('Succeeded').count()).toBe(0);
      // The port of the receiver may have these digits too.
      await page.getByText('500', { exact: true }).first().waitFor();
      await page.getByText(bad.url).locator('visible=true').first().waitFor();

      await page.getByRole('button', { name: 'Pause' }).click();
      const before = await rowsOf(page).allTextContents();
      await on.publish(sampleEvent());
      await page.getByRole('button', { name: /^Continue, \d+ new$/ }).waitFor();
      expect(await rowsOf(page).allTextContents()).toEqual(before);
      for (const scheme of ['light', 'dark'] as const) {
        await showIn(scheme);
        await screenshot('tail-paused');
        expect(await accessibilityFindings()).toEqual([]);
        expect(await overflow()).toBe(0);
      }
      await page.getByRole('button', { name: /^Continue/ }).click();
      // There may be as many rows as the page keeps.
      await eventually('other rows', async () => (await rowsOf(page).allTextContents()).join() !== before.join());

      await page.goto(`/tail?subscription_id=${fine.id}`);
      await firstRow(page);
      expect(await page.getByRole('table').getByText('Failed').count()).toBe(0);
      await rowsOf(page).first().click();
      await page.waitForURL('**/deliveries/dlv_*');
      expect((await on.delivery(page.url().split('/').at(-1) ?? '')).subscription_id).toBe(fine.id);
      expect(failing.id).not.toBe(fine.id);
    },
  );

  it('says that the stream is not alive, and continues by itself', async () => {
    await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    // No call gets an answer, until they are cut: the page repeats one after some seconds.
    const hanging: Route[] = [];
    let isCut = false;
    await page.route('**/v1/tail*', (route) => (isCut ? route.continue() : void hanging.push(route)));
    await page.goto('/tail');
    await page.getByText('Out of date: last answer at').waitFor();
    isCut = true;
    for (const route of hanging) await route.abort();
    await page.getByText('Out of date: last answer at').waitFor({ state: 'hidden' });
    await firstRow(page);
    expect(await page.getByText('may be missing').count()).toBe(0);
  });

  it('says that a proxy in front of the console answers in its place, and continues when it does not', async () => {
    await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    let isAnswered = true;
    await page.route('**/v1/tail*', (route) =>
      isAnswered ? route.fulfill({ contentType: 'text/html', body: '<h1>Sign in</h1>' }) : route.continue(),
    );
    await page.goto('/tail');
    await page.getByText('Something in front of the console answered, such as a proxy (status 200).').waitFor();
    isAnswered = false;
    await firstRow(page);
  });

  it('leads to the sign-in when the session has ended', async () => {
    const { page, context } = await signedIn();
    await page.goto('/tail');
    await page.getByText('Waiting for attempts').waitFor();
    await context.clearCookies();
    // The stream ends within 2 s when the session is gone.
    const keys = await on.redis.keys(`${on.prefix}:session:*`);
    const values = await Promise.all(keys.map((key) => on.redis.get(key)));
    await on.redis.del(...keys);
    await page.waitForURL('**/sign-in?next=%2Ftail');
    // For the tests after this one.
    await Promise.all(keys.map((key, i) => on.redis.set(key, values[i] ?? '')));
  });
});
