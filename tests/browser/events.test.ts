/** The page in a real browser: events. */
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import type { Page } from 'playwright-core';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { atOverview, on, ownSubscription, signedIn } from './own-visit.ts';

describe('an event', () => {
  it('says why an address did not get it, for an address that is chosen or pasted, and keeps the question in its link', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { environment: 'production' });
    const { body } = await on.publish(sampleEvent());
    const { page, accessibilityFindings, showIn, screenshot, overflow } = await signedIn();
    await page.goto(`/events/${body.id}`);
    const answer = page.getByRole('status', { name: 'Answer' });
    await page.getByRole('combobox', { name: 'Address' }).fill(to.url);
    expect(await answer.count()).toBe(0);
    await page.getByRole('option', { name: id }).click();
    await answer.getByText('It receives production events; this is a sandbox event.').waitFor();
    await answer.getByText('Change its environment').waitFor();
    for (const scheme of ['light', 'dark'] as const) {
      await showIn(scheme);
      expect(await accessibilityFindings()).toEqual([]);
      await screenshot('why');
    }
    await page.reload();
    await answer.getByText('this is a sandbox event').waitFor();
    const none = `sub_${'A'.repeat(22)}`;
    await page.getByRole('combobox', { name: 'Address' }).fill(` ${none} `);
    await answer.getByText('There is no such subscription').waitFor();
    expect(await overflow()).toBe(0);
    expect(new URL(page.url()).searchParams.get('why')).toBe(none);
  });
});

describe('an event with many deliveries', () => {
  it('shows the newest 100, and links all', async () => {
    await ownSubscription(await ownReceiver());
    const { body } = await on.publish(sampleEvent());
    const { page } = await signedIn();
    await page.route(`**/v1/events/${body.id}`, async (route) => {
      const event = (await on.operate('GET', `/v1/events/${body.id}`)).body;
      const [one] = event.deliveries;
      const deliveries = Array.from({ length: 101 }, (_, i) => ({ ...one, id: `${one.id.slice(0, -3)}${100 + i}` }));
      await route.fulfill({ json: { ...event, deliveries } });
    });
    await page.goto(`/events/${body.id}`);
    await page.getByRole('heading', { name: 'Deliveries (the newest 100)' }).waitFor();
    expect(await page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr').count()).toBe(100);
    // All are of this event: what differs is the address.
    expect(await page.getByRole('columnheader').allTextContents()).not.toContain('Event');
    await page.getByRole('link', { name: 'All', exact: true }).click();
    await page.waitForURL(`**/deliveries?event_id=${body.id}`);
  });
});

describe('the search', () => {
  const data = { id: 'ses-42', status: 'approved', reference: '<b>order</b> 7', metadata: { user_id: 'anna@x' } };
  const search = async (page: Page, text: string) => {
    await page.getByRole('textbox', { name: 'Search' }).fill(text);
    await page.keyboard.press('Enter');
  };

  it('finds the timeline of a session, a reference and a user, and goes to an event by its id', async () => {
    const to = await ownReceiver();
    await ownSubscription(to);
    const publish = async (change: object) => (await on.publish(sampleEvent({ data, ...change }))).body.id as string;
    const arrived = (eventId: string) =>
      eventually('arrived', async () => (await on.deliveries(`event_id=${eventId}`))[0]?.status === 'succeeded');
    await arrived(await publish({ created_at: '2026-01-02T00:00:00Z' }));
    const ownId = await publish({ id: 'order-7', created_at: '2026-01-01T00:00:00Z', type: 'session.submitted' });
    await arrived(ownId);
    const { page, accessibilityFindings, showIn, screenshot } = await atOverview();
    const items = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem');
    for (const value of [data.id, data.reference, data.metadata.user_id]) {
      await search(page, value);
      await page.getByRole('heading', { name: `Search for ${value}` }).waitFor();
      await items.nth(1).waitFor();
      expect(await items.count()).toBe(2);
    }
    // As a chat, JSON or a log shows it.
    const user = data.metadata.user_id;
    for (const quoted of [`"${user}",`, `'${user}'`, `\`${user}\``, `“${user}” `]) {
      await page.goto('/');
      await search(page, quoted);
      await page.getByRole('heading', { name: `Search for ${user}`, exact: true }).waitFor();
      await items.nth(1).waitFor();
    }
    // The event and its delivery came after those of the later event.
    expect(await items.nth(0).getByText('Out of order').count()).toBe(2);
    expect(await items.nth(1).getByText('Out of order').count()).toBe(0);
    for (const scheme of ['light', 'dark'] as const) {
      await showIn(scheme);
      expect(await accessibilityFindings()).toEqual([]);
      await screenshot('search');
    }
    await page.getByRole('combobox', { name: 'Field' }).click();
    await page.getByRole('option', { name: 'Session id' }).click();
    await page.getByText('No event has this value').waitFor();
    await search(page, new URL(to.url).host);
    await page.getByRole('table', { name: 'Subscriptions' }).getByRole('link', { name: to.url }).waitFor();
    await search(page, ownId);
    await page.waitForURL('**/events/order-7');
    await page.getByRole('link', { name: data.id }).click();
    await page.waitForURL('**/search?q=ses-42&by=session_id');
    await items.nth(1).getByRole('link', { name: to.url }).click();
    await page.waitForURL('**/deliveries/dlv_*');
  });
});
