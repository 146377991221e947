/**
 * The page in a real browser beside 10,000 other subscriptions: finding one, choosing one, and seeing its address
 * everywhere.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { deliveriesWith, eventually } from '@posthorn/testing';
import { ownReceiver, ownStore } from '../own.ts';
import { sampleEvent } from '../world.ts';
import type { Visit } from './browser.ts';
import { addManySubscriptions } from './many-subscriptions.ts';
import { atOverview, on, ownSubscription, signedIn } from './own-visit.ts';

const PAUSED = 70;

/** Subscriptions that get no event of these tests, and that every list shows before those of the tests. */
beforeAll(async () => {
  await addManySubscriptions(await ownStore(on), Date.now() + HOUR_MS, PAUSED);
});

/** A subscription with three failed deliveries. */
async function zebra() {
  const to = await ownReceiver(deliveriesWith(500));
  const { id } = await ownSubscription(to);
  const patched = await on.operate('PATCH', `/v1/subscriptions/${id}`, { description: 'Zebra GmbH' });
  expect(patched).toMatchObject({ status: 200, body: { description: 'Zebra GmbH' } });
  await on.publishBatch(Array.from({ length: 3 }, () => sampleEvent()));
  await eventually('all to fail', async () => {
    return (await on.deliveries(`subscription_id=${id}&status=failed`)).length === 3;
  });
  return { to, id };
}

/** Checks accessibility and takes a screenshot in both color schemes. */
async function look({ accessibilityFindings, screenshot, showIn }: Visit, name: string) {
  for (const scheme of ['light', 'dark'] as const) {
    await showIn(scheme);
    expect(await accessibilityFindings()).toEqual([]);
    await screenshot(name);
  }
}

describe('among 10,000 subscriptions', () => {
  it('the list is searched, filtered, sorted and paged, and a link shows the same list', async () => {
    const { to, id } = await zebra();
    const operator = await signedIn();
    const { page } = operator;
    await page.goto('/subscriptions');
    await page.getByText('10,001 subscriptions, the first 50 are shown').waitFor();
    // The row under the pointer has another background.
    await page.getByRole('link', { name: 'https://hooks-9998.example/in' }).hover();
    await look(operator, 'directory');
    const rows = page.getByRole('table', { name: 'Subscriptions' }).locator('tbody tr');
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('the first 100 are shown').waitFor();
    expect(await rows.count()).toBe(100);

    const field = page.getByLabel('Search subscriptions');
    for (const q of ['zebra', new URL(to.url).host, id, 'GMBH zeb']) {
      await field.fill(q);
      await page.waitForURL((url) => url.searchParams.get('q') === q);
      await operator.explained(async () => {
        await page.getByText('1 subscription', { exact: true }).waitFor();
        await rows.getByRole('link', { name: to.url }).waitFor();
      });
    }
    await page.reload();
    await rows.getByRole('link', { name: to.url }).waitFor();
    expect(await field.inputValue()).toBe('GMBH zeb');
    await field.fill('no such customer');
    await page.getByText('No matching subscriptions').waitFor();
    const clear = async () => {
      await page.getByRole('button', { name: 'Clear', exact: true }).click();
      await page.getByText('10,001 subscriptions').waitFor();
      expect(await field.inputValue()).toBe('');
    };
    await page.getByRole('link', { name: 'Subscriptions', exact: true }).click();
    await page.getByText('10,001 subscriptions').waitFor();
    expect(await field.inputValue()).toBe('');
    await page.goBack();
    await page.getByText('No matching subscriptions').waitFor();
    expect(await field.inputValue()).toBe('no such customer');
    await clear();

    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'Paused' }).click();
    await page.getByText('70 subscriptions, the first 50 are shown').waitFor();
    await page.getByRole('combobox', { name: 'Order' }).click();
    await page.getByRole('option', { name: 'By address' }).click();
    await rows.first().getByRole('link', { name: 'https://hooks-0.example/in' }).waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await rows.last().getByRole('link', { name: 'https://hooks-9.example/in' }).waitFor();
    expect(await rows.count()).toBe(PAUSED);
  });

  it('"Clear" keeps the order, and drops text that was typed just before', async () => {
    const { page, stopClock } = await signedIn();
    await page.clock.install();
    await page.goto('/subscriptions?status=paused&sort=url');
    await page.getByText('70 subscriptions, the first 50 are shown').waitFor();
    await stopClock('/v1/subscriptions');
    const field = page.getByLabel('Search subscriptions');
    await field.fill('zebra');
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.waitForURL('**/subscriptions?sort=url');
    await page.clock.runFor(10_000);
    await page.clock.resume();
    await page.getByText(/^10,\d+ subscriptions/).waitFor();
    expect(await field.inputValue()).toBe('');
    expect(new URL(page.url()).search).toBe('?sort=url');
  });

  it('the overview links to all failing ones, the worst first', async () => {
    const to = await ownReceiver(deliveriesWith(503));
    const { id } = await ownSubscription(to);
    await on.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    await eventually('the address to be failing', async () => (await on.subscription(id)).health.state === 'failing');
    const operator = await atOverview();
    const { page } = operator;
    await page.getByRole('link', { name: 'All paused' }).click();
    await page.getByText('70 subscriptions').waitFor();
    await page.goBack();
    const problems = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem');
    await page.getByRole('button', { name: 'Show 40 more' }).waitFor();
    expect(await problems.count()).toBe(10);
    await page.getByRole('button', { name: 'Show 40 more' }).click();
    await eventually('all to be shown', async () => (await problems.count()) === 50);
    await page.getByRole('link', { name: 'All failing' }).click();
    await page.waitForURL('**/subscriptions?health=failing&sort=worst');
    const rows = page.getByRole('table', { name: 'Subscriptions' }).locator('tbody tr');
    await rows.first().getByText('Failing').waitFor();
    await rows.first().getByText('503 since').waitFor();
    await rows.getByRole('link', { name: to.url }).waitFor();
    await look(operator, 'directory-failing');
    await page.getByRole('combobox', { name: 'Health' }).click();
    await page.getByRole('option', { name: 'No attempts yet' }).click();
    await page.getByText('10,000 subscriptions').waitFor();
    // The worst of those without attempts are the paused ones.
    await rows.first().getByText('Paused').waitFor();
    await page.getByRole('combobox', { name: 'Order' }).click();
    await page.getByRole('option', { name: 'Newest first' }).click();
    await rows.first().getByText('Active').waitFor();
    to.answerWith(200);
  });

  it('a status that does not exist is explained', async () => {
    const { page } = await signedIn();
    await page.goto('/subscriptions?status=bogus');
    await page.getByText('status: Expected one of "awaiting_validation"|"active"').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByText('10,001 subscriptions').or(page.getByText('10,000 subscriptions')).waitFor();
  });

  it('lists show addresses, and pickers find any of them', async () => {
    const { to, id } = await zebra();
    const operator = await signedIn();
    const { page } = operator;
    await page.goto('/deliveries');
    await page.getByRole('cell', { name: to.url }).first().waitFor();
    expect(await page.getByRole('cell', { name: id }).count()).toBe(0);
    const picker = page.getByRole('combobox', { name: 'Address' });
    await picker.click();
    await page.getByText('20 of 10,001: type a part of the address or the description').waitFor();
    await picker.fill('customer 777');
    await page.getByRole('option', { name: 'https://hooks-7770.example/in' }).waitFor();
    await page.getByRole('option', { name: 'https://hooks-777.example/in' }).click();
    await page.getByText('No matching deliveries').waitFor();
    await eventually('the address in the field', async () => {
      return (await picker.inputValue()) === 'https://hooks-777.example/in';
    });
    await picker.click();
    await picker.fill('zebra');
    await page.getByRole('option', { name: to.url }).click();
    await page.waitForURL(`**/deliveries?subscription_id=${id}`);
    await page.reload();
    await eventually('the address in the field', async () => (await picker.inputValue()) === to.url);
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('link', { name: to.url }).first().waitFor();
  });

  it('a bulk replay starts only for an address that is chosen and shown', async () => {
    const { to, id } = await zebra();
    const operator = await signedIn();
    const { page } = operator;
    await page.goto('/replays');
    await page.getByText('Choose an address to see').waitFor();
    expect(await page.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true);
    const picker = page.getByRole('combobox', { name: 'Addresses' });
    await page.goto(`/replays?subscription_id=${id}`);
    await page.getByRole('button', { name: 'Replay 3 failed deliveries' }).waitFor();
    const chosen = page.getByRole('main').getByText(to.url, { exact: true });
    await chosen.first().waitFor();
    await picker.click();
    await picker.fill('hooks-7.');
    await page.getByRole('option', { name: 'https://hooks-7.example/in' }).click();
    await page
      .getByText(/1 of \d+ addresses is not active: resume or validate it first, or wait if it is resuming/)
      .waitFor();
    expect(await page.getByRole('button', { name: 'Replay 3 failed deliveries' }).isDisabled()).toBe(true);
    await page.goto('/replays?subscription_id=sub_AAAAAAAAAAAAAAAAAAAAAA');
    await page.getByText('There is no such subscription.').waitFor();
    expect(await page.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true);
    await page.goto('/replays');
    await picker.click();
    await page.getByRole('option').nth(19).waitFor();
    await look(operator, 'address-picker');
    await picker.fill('zebra');
    await page.getByRole('option', { name: to.url }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Replay 3 failed deliveries' }).click();
    await page.waitForURL('**/replays/rpl_*');
    await page.getByRole('link', { name: 'Bulk replays' }).first().click();
    await page.getByRole('link', { name: to.url }).waitFor();
  });

  it('no address beyond the 50 of one bulk replay can be chosen, not even by its id', async () => {
    const { page } = await signedIn();
    const idOf = (i: number) => `sub_${String(i).padStart(22, 'A')}`;
    const ids = Array.from({ length: 49 }, (_, i) => idOf(i));
    await page.goto(`/replays?${ids.map((id) => `subscription_id=${id}`).join('&')}`);
    const picker = page.getByRole('combobox', { name: 'Addresses' });
    // A pasted id is chosen at once, and leaves the field.
    await picker.fill(idOf(49));
    expect(await picker.inputValue()).toBe('');
    await picker.fill(idOf(50));
    expect(await picker.inputValue()).toBe(idOf(50));
  });
});
