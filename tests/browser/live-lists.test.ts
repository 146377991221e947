/** Lists under traffic, with records that can't be read, and data that the console does not refresh any more. */
import { describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually } from '@posthorn/testing';
import type { Page, Route } from 'playwright-core';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { readAll } from './browser.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

const publish = (count: number) => on.publishBatch(Array.from({ length: count }, () => sampleEvent()));

/** The deliveries in the table, from top to bottom. */
async function shownDeliveries(page: Page): Promise<string[]> {
  const links = page.getByRole('table', { name: 'Deliveries' }).locator('a[href^="/deliveries/"]');
  return await links.evaluateAll((found) => found.map((link) => String(link.getAttribute('href'))));
}

/** The page with the deliveries of an address of its own, which has two. */
async function visitWithTwo() {
  const to = await ownReceiver();
  const { id } = await ownSubscription(to);
  await publish(2);
  const arrived = `subscription_id=${id}&status=succeeded`;
  await eventually('both deliveries', async () => (await on.deliveries(arrived)).length === 2);
  const opened = await signedIn();
  await opened.page.goto(`/deliveries?subscription_id=${id}`);
  await opened.page.getByRole('row').nth(2).waitFor();
  // The page is complete when it knows the name of the address.
  const address = opened.page.getByRole('combobox', { name: 'Address' });
  await eventually('the name of the address', async () => (await address.inputValue()) === to.url);
  return { ...opened, to, id };
}

describe('a list', () => {
  it('keeps its rows in place under traffic, and says how many are new until the user wants to see them', async () => {
    const { page, accessibilityFindings, screenshot } = await visitWithTwo();
    const before = await shownDeliveries(page);
    const top = await page.getByRole('row').nth(1).boundingBox();
    await publish(3);
    const button = page.getByRole('button', { name: '3 new' });
    await button.waitFor();
    expect(await shownDeliveries(page)).toEqual(before);
    expect(await page.getByRole('row').nth(1).boundingBox()).toEqual(top);
    expect(await accessibilityFindings()).toEqual([]);
    await screenshot('new-deliveries');
    await button.click();
    await eventually('five rows', async () => (await shownDeliveries(page)).length === 5);
    expect((await shownDeliveries(page)).slice(3)).toEqual(before);
    await button.waitFor({ state: 'hidden' });
  });

  it('goes on when the clock of the browser is set back', async () => {
    const { page } = await visitWithTwo();
    await page.evaluate(() => {
      const now = Date.now;
      Date.now = () => now() - 3_600_000;
    });
    await publish(3);
    await page.getByRole('button', { name: '3 new' }).click();
    await eventually('five rows', async () => (await shownDeliveries(page)).length === 5);
  });

  it('is as the user left it after the back button', async () => {
    const { page } = await visitWithTwo();
    const before = await shownDeliveries(page);
    await page.locator(`a[href="${before[1]}"]`).first().click();
    await page.waitForURL(`**${before[1]}`);
    await publish(1);
    await page.goBack();
    await page.getByRole('button', { name: '1 new' }).waitFor();
    expect(await shownDeliveries(page)).toEqual(before);
  });

  it('is read again by itself if its first read failed, and says that a refresh was refused', async () => {
    const { page } = await visitWithTwo();
    let state = 'down';
    await page.route('**/v1/deliveries?*', async (route) => {
      if (state === 'down') await route.abort();
      else if (state === 'limited') await route.fulfill({ status: 429, json: { detail: 'Too many calls.' } });
      else await route.continue();
    });
    await page.reload();
    await page.getByText("The list of deliveries can't be shown").waitFor();
    state = 'up';
    await page.getByRole('row').nth(2).waitFor();
    state = 'limited';
    const refused = page.getByRole('alert').filter({ hasText: 'This data may be out of date' });
    await refused.getByText('Too many calls.').waitFor();
    state = 'up';
    await refused.waitFor({ state: 'hidden' });
    expect(await shownDeliveries(page)).toHaveLength(2);
  });

  it('says that the next rows could not be read, and reads them when the user tries again', async () => {
    const { page, id } = await visitWithTwo();
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await publish(51);
    await page.reload();
    let isDown = true;
    await page.route(/\/v1\/deliveries\?.*cursor=/, async (route) => {
      if (isDown) await route.abort();
      else await route.continue();
    });
    await page.getByRole('button', { name: 'Show more' }).click();
    const failed = page.getByRole('alert').filter({ hasText: "The next rows can't be shown" });
    await failed.getByText('Cannot reach the console.').waitFor();
    expect(await shownDeliveries(page)).toHaveLength(50);
    isDown = false;
    await failed.getByRole('button', { name: 'Try again' }).click();
    await eventually('all rows', async () => (await shownDeliveries(page)).length === 53);
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('shows its first rows with the answer that has them, and reads nothing again for that', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    await page.goto(`/deliveries?subscription_id=${id}`);
    await page.getByText('No matching deliveries').waitFor();
    let isRead = false;
    await page.route('**/v1/deliveries?*', async (route) => {
      // What is asked for afterwards has no answer.
      if (isRead) return;
      const response = await route.fetch();
      const json = await response.json();
      isRead = json.data.length > 0;
      await route.fulfill({ response, json });
    });
    await publish(1);
    await page.getByRole('row').nth(1).waitFor();
  });

  it('refreshes its rows in place, and shows the first one by itself', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const { page } = await signedIn();
    await page.goto(`/deliveries?subscription_id=${id}`);
    await page.getByText('No matching deliveries').waitFor();
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await publish(1);
    const row = page.getByRole('row').nth(1);
    await row.getByText('Held', { exact: true }).waitFor();
    expect(await shownDeliveries(page)).toHaveLength(1);
    await publish(51);
    await page.getByRole('button', { name: '50 or more new' }).click();
    // Also what further pages have added.
    await page.getByRole('button', { name: 'Show more' }).click();
    await eventually('all rows', async () => (await shownDeliveries(page)).length === 52);
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    const succeeded = page.getByRole('table').getByText('Succeeded', { exact: true });
    await eventually('all to be refreshed', async () => (await succeeded.count()) === 52);
    await page.route('**/v1/deliveries?*limit=52', async (route) => {
      const response = await route.fetch();
      const { data } = await response.json();
      await route.fulfill({ response, json: { data: data.slice(0, 50), next_cursor: 'more' } });
    });
    await page.getByText('The last 2 rows are not refreshed any more.').waitFor();
  });
});

describe('data that is not refreshed any more', () => {
  it('is marked within 3 s with the time of the last answer, until the console answers again', async () => {
    const { page, accessibilityFindings, screenshot, staleMark: mark, stopClock } = await signedIn();
    await page.clock.install();
    await page.goto('/subscriptions');
    await page.getByRole('heading', { name: 'Subscriptions' }).waitFor();
    await page.waitForResponse((response) => response.url().includes('/v1/subscriptions'));
    await mark.waitFor({ state: 'hidden' });

    // The console does not answer any more.
    const now = await stopClock('/v1/subscriptions');
    let hanging = 0;
    await page.route('**/v1/subscriptions*', () => {
      hanging += 1;
    });
    await page.clock.runFor(3_000);
    await mark.getByText('The console has not answered since.').waitFor();
    const at = Date.parse(String(await mark.locator('time').getAttribute('datetime')));
    expect(at).toBeLessThanOrEqual(now);
    await eventually('a call that hangs', () => hanging > 0);
    // The checks themselves need a clock that runs.
    await page.clock.resume();
    await screenshot('out-of-date');
    expect(await accessibilityFindings()).toEqual([]);

    // This also lets the calls go that hang.
    await page.unroute('**/v1/subscriptions*');
    await mark.waitFor({ state: 'hidden' });
  });

  it('is not marked between two answers that are slow, but after one that was asked for three times', async () => {
    const { page, staleMark: mark, stopClock } = await signedIn();
    await page.clock.install();
    await page.goto('/subscriptions');
    await page.getByRole('heading', { name: 'Subscriptions' }).waitFor();
    await stopClock('/v1/subscriptions');
    const held: Route[] = [];
    await page.route('**/v1/subscriptions*', (route) => void held.push(route));
    const answerLast = async () => {
      const answered = page.waitForResponse('**/v1/subscriptions*');
      await held.at(-1)!.continue();
      await (await answered).finished();
      await readAll(page);
    };
    await page.clock.runFor(6_000);
    await mark.waitFor();
    await eventually('the call', () => held.length === 1);
    await answerLast();
    await page.clock.runFor(4_000);
    await mark.waitFor({ state: 'hidden' });
    await page.clock.runFor(6_000);
    await mark.waitFor();
    // What is answered at its third try took 23 s, each call no more than 10 s.
    await eventually('the first try', () => held.length === 2);
    for (const retryMs of [1_000, 2_000]) {
      const givenUp = page.waitForEvent('requestfailed', (request) => request.url().includes('/v1/subscriptions'));
      await page.clock.runFor(10_000);
      await givenUp;
      await readAll(page);
      await page.clock.runFor(retryMs);
    }
    await eventually('the third try', () => held.length === 4);
    await answerLast();
    await page.clock.runFor(500);
    await mark.waitFor({ state: 'hidden' });
    await page.clock.runFor(12_500);
    await mark.waitFor();
    await page.clock.resume();
  });

  it('is marked also if the clock of the browser is set back meanwhile', async () => {
    const { page, staleMark, stopClock } = await signedIn();
    await page.clock.install();
    await page.goto('/subscriptions');
    await page.getByRole('heading', { name: 'Subscriptions' }).waitFor();
    const now = await stopClock('/v1/subscriptions');
    await page.route('**/v1/subscriptions*', () => undefined);
    await page.clock.setSystemTime(now - 3_600_000);
    await page.clock.runFor(3_000);
    await staleMark.waitFor();
    await page.clock.resume();
  });
});

it("records that can't be read are named above the list, which shows all others", async () => {
  const to = await ownReceiver(deliveriesWith(500));
  const { id } = await ownSubscription(to);
  await on.publishBatch([sampleEvent({ id: 'order:1' }), sampleEvent({ id: 'order:2' })]);
  const list = `subscription_id=${id}&status=failed`;
  await eventually('both to fail', async () => (await on.deliveries(list)).length === 2);
  const [good, bad] = await on.deliveries(list);
  const { page, accessibilityFindings, overflow, screenshot } = await signedIn();
  await page.goto(`/deliveries?${list}`);
  await page.locator(`a[href="/deliveries/${bad.id}"]`).waitFor();
  const key = `${on.prefix}:{0}:delivery:${bad.id}`;
  const createdAt = await on.redis.hget(key, 'c');
  await on.redis.hset(key, 'c', 'soon');
  // The list on screen learns of it by itself.
  const notice = page.getByRole('status').filter({ hasText: "1 record can't be read and is left out" });
  await notice.getByText(bad.id).waitFor();
  await notice.getByText('docs/runbooks.md').waitFor();
  await page.reload();
  await notice.getByText(bad.id).waitFor();
  await page.locator(`a[href="/deliveries/${good.id}"]`).waitFor();
  expect(await page.locator(`a[href="/deliveries/${bad.id}"]`).count()).toBe(0);
  await screenshot('unreadable');
  expect(await accessibilityFindings()).toEqual([]);
  expect(await overflow()).toBe(0);
  await on.redis.hset(key, 'c', createdAt!);
  await notice.waitFor({ state: 'detached' });
});

it("records that can't be read are named on the overview, which shows everything else", async () => {
  const { id } = await ownSubscription(await ownReceiver());
  await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  const health = `${on.prefix}:{0}:health:${id}`;
  const { page, accessibilityFindings, overflow } = await signedIn();
  const notice = page.getByRole('status').filter({ hasText: "can't be read and is left out" });
  await page.goto('/');
  await page.getByText('Most failing addresses').waitFor();
  expect(await notice.count()).toBe(0);
  await on.redis.hset(health, 'e', 'damaged');
  await notice.getByText(id).waitFor();
  await page.getByText('Most failing addresses').waitFor();
  expect(await accessibilityFindings()).toEqual([]);
  expect(await overflow()).toBe(0);
  await on.redis.hdel(health, 'e');
  await notice.waitFor({ state: 'detached' });
});
