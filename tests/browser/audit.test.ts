/** The audit page: what was done in plain words, names of addresses, and filters. */
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import type { Page } from 'playwright-core';
import { ownReceiver } from '../own.ts';
import { holdBack } from './browser.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

const REVERSING = '\u202ereversed';

/** An address that was changed, paused by an operator and deleted. */
async function changedAndDeleted() {
  const to = await ownReceiver();
  const { id } = await on.subscribe(to.url, { description: REVERSING });
  await on.operate('PATCH', `/v1/subscriptions/${id}`, {
    description: '<b>Acme</b>',
    event_types: ['session.expired'],
  });
  await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  await on.operate('DELETE', `/v1/subscriptions/${id}`);
  return { id, url: to.url };
}

describe('the audit trail', () => {
  it('says what was done, shows a change as a table, and names an address that is deleted', async () => {
    const { id, url } = await changedAndDeleted();
    const { page, accessibilityFindings, overflow, problems } = await signedIn();
    await page.goto(`/audit?subscription_id=${id}`);
    const rows = page.getByRole('table', { name: 'Audit trail' }).locator('> tbody > tr');
    await rows.nth(4).waitFor();
    const [deleted, paused, changed, validated, created] = await rows.all();
    await deleted!.getByText(`Deleted the subscription to ${url}.`).waitFor();
    await paused!.getByText('Paused the address.').waitFor();
    await validated!.getByText('Validated the address: it is now active.').waitFor();
    await created!.getByText('Created the subscription for all event types in both environments.').waitFor();
    const fields = changed!.getByRole('table', { name: 'Changed fields' });
    expect(await fields.getByRole('row').allTextContents()).toEqual([
      'Event typesall types → session.expired',
      `Description${REVERSING} → <b>Acme</b>`,
    ]);
    // What follows it is not reversed: the value before stays on the left.
    const [types, description] = await fields.locator('span').all();
    expect((await description!.boundingBox())?.x).toBe((await types!.boundingBox())?.x);
    expect(await rows.locator('b').count()).toBe(0);
    for (const row of [deleted, paused, changed]) {
      const link = row!.getByRole('link', { name: url });
      expect(await link.first().getAttribute('href')).toBe(`/subscriptions/${id}`);
    }
    expect(await accessibilityFindings()).toEqual([]);
    expect(await overflow()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('names the operator on a narrow screen too', async () => {
    const { id } = await changedAndDeleted();
    const { page, overflow } = await signedIn({ width: 'narrow' });
    await page.goto(`/audit?subscription_id=${id}`);
    const newest = page.getByRole('table', { name: 'Audit trail' }).locator('> tbody > tr').first();
    await newest.getByText('tests', { exact: true }).filter({ visible: true }).waitFor();
    expect(await overflow()).toBe(0);
  });

  it('is filtered by operator, action, subject and time; the URL keeps the filters, and one click clears them', async () => {
    const { id } = await changedAndDeleted();
    const { page, accessibilityFindings } = await signedIn();
    await page.goto('/');
    await page.getByRole('link', { name: 'Audit' }).click();
    const rows = page.getByRole('table', { name: 'Audit trail' }).locator('> tbody > tr');
    await rows.first().waitFor();
    const choose = async (name: string, option: string) => {
      await page.getByRole('combobox', { name, exact: true }).click();
      await page.getByRole('option', { name: option, exact: true }).click();
    };
    await page.getByRole('textbox', { name: 'Id', exact: true }).fill(id);
    await eventually('the entries of the address', async () => (await rows.count()) === 5);
    await choose('Action', 'Address paused');
    await eventually('one entry', async () => (await rows.count()) === 1);
    await choose('Who', 'Posthorn itself');
    await page.getByText('No matching audit entries').waitFor();
    await choose('Who', 'tests');
    await rows.getByText('Paused the address.').waitFor();
    const search = new URL(page.url()).searchParams;
    expect(Object.fromEntries(search)).toEqual({ target: id, action: 'subscription.paused', operator: 'tests' });
    expect(await accessibilityFindings()).toEqual([]);
    const at = Date.parse(String(await rows.locator('time').first().getAttribute('datetime')));
    search.set('to', new Date(at - 1).toISOString());
    await page.goto(`/audit?${search}`);
    await page.getByText('No matching audit entries').waitFor();
    search.set('to', new Date(at).toISOString());
    search.set('from', new Date(at).toISOString());
    await page.goto(`/audit?${search}`);
    await rows.getByText('Paused the address.').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await eventually('all entries', async () => (await rows.count()) > 5);
    expect(new URL(page.url()).search).toBe('');
  });

  it('keeps what is typed into its picker when the name of the chosen address comes late', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const { page } = await signedIn();
    const typed = new URL(to.url).port;
    const letNameArrive = await holdBack(page, /\/v1\/subscriptions\/lookup\?/);
    const letFindArrive = await holdBack(page, /\/v1\/subscriptions\?/);
    await page.goto(`/audit?subscription_id=${id}`);
    const picker = page.getByRole('combobox', { name: 'Address' });
    await picker.click();
    await picker.fill(typed);
    // The name comes with what is found, then by itself.
    letFindArrive();
    await page.getByRole('option', { name: to.url }).waitFor();
    expect(await picker.inputValue()).toBe(typed);
    const named = page.waitForResponse(/lookup/);
    letNameArrive();
    await named;
    await page.getByRole('option', { name: to.url }).waitFor();
    expect(await picker.inputValue()).toBe(typed);
  });

  it('explains an unknown filter', async () => {
    const { page } = await signedIn();
    await page.goto('/audit?target=bogus');
    const alert = page.getByRole('alert').filter({ hasText: "The audit trail can't be shown" });
    await alert
      .getByText('target: Expected the id of a subscription, a delivery, a bulk replay or an erasure')
      .waitFor();
  });
});

/** Chooses that the page shows times in UTC. */
async function showUtc(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Signed in as tests' }).click();
  await page.getByRole('menuitem', { name: 'Times in UTC' }).click();
}

describe('the times of filters', () => {
  it('are in UTC if the page shows times in UTC', async () => {
    const { page } = await signedIn({ timezoneId: 'Asia/Tokyo' });
    await page.goto('/audit?from=2026-01-02T03:04:00.000Z');
    const from = page.getByRole('button', { name: 'From', exact: true });
    await from.getByText('2 Jan 2026, 12:04 GMT+9').waitFor();
    await showUtc(page);
    await from.getByText('2 Jan 2026, 03:04 UTC').waitFor();
  });

  it('of a bulk replay are in UTC if the page shows times in UTC', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn({ timezoneId: 'Asia/Tokyo' });
    await page.goto(`/replays?subscription_id=${id}`);
    await showUtc(page);
    const from = page.getByRole('button', { name: 'Failed from', exact: true });
    await from.click();
    const counted = page.waitForRequest(/\/failed-deliveries\?/);
    await page.getByRole('button', { name: /^15 / }).click();
    expect(new URL((await counted).url()).searchParams.get('failed_from')).toMatch(/-15T00:00:00\.000Z$/);
    await from.getByText(/^15 .*, 00:00 UTC$/).waitFor();
  });
});
