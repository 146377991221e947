/** Finding one's way on the page: keys, rows that are links, links back, times with a zone. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { atEnd, ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { holdBack } from './browser.ts';
import { atOverview, on, ownSubscription, signedIn } from './own-visit.ts';

async function ownDelivery() {
  const to = await ownReceiver();
  const { id } = await ownSubscription(to);
  await on.publish(sampleEvent());
  const [delivery] = await eventually('the delivery', async () => {
    const found = await on.deliveries(`subscription_id=${id}&status=succeeded`);
    return found.length > 0 && found;
  });
  return { to, id, delivery };
}

describe('the keyboard', () => {
  it('reaches the search field with / and Ctrl-K, and the content with the first link', async () => {
    const { page } = await atOverview();
    const search = page.getByRole('search').getByRole('textbox');
    for (const keys of ['/', 'Control+k']) {
      await page.keyboard.press(keys);
      await page.locator('search input:focus').waitFor();
      expect(await search.inputValue()).toBe('');
      await search.blur();
    }
    await page.goto('/deliveries');
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('#content:focus').waitFor();
  });
  it('keeps the focus after an action or a dialog, and moves it to the content if the focused element is gone', async () => {
    const { id } = await ownSubscription(await ownReceiver());
    const { page } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'Send test' }).focus();
    // A key that is held must not send one test after another.
    const repeated = "new KeyboardEvent('keydown', { key: 'Enter', repeat: true, bubbles: true, cancelable: true })";
    expect(await page.evaluate(`document.activeElement.dispatchEvent(${repeated})`)).toBe(false);
    const focused = (name: string) => page.locator('button:focus', { hasText: name }).waitFor();
    const leaveDialog = async () => {
      const focusInside = page.getByRole('dialog').locator(':focus');
      await focusInside.waitFor();
      // The search field is behind it.
      await page.keyboard.press('Control+k');
      expect(await focusInside.count()).toBe(1);
      await page.keyboard.press('Escape');
    };
    const press = async (role: 'button' | 'menuitem', name: string) => {
      await page.getByRole(role, { name, exact: true }).press('Enter');
    };
    await press('button', 'Send test');
    await leaveDialog();
    await focused('Send test');
    for (const item of ['Edit', 'Rotate secret', 'Delete']) {
      await press('button', 'More');
      await press('menuitem', item);
      await leaveDialog();
      await focused('More');
    }
    await press('button', 'More');
    await press('menuitem', 'Pause');
    await page.getByText('Paused: nothing is sent').waitFor();
    await focused('More');
    await press('button', 'Resume');
    await page.getByText('Active', { exact: true }).waitFor();
    await page.locator('#content:focus').waitFor();
    await page.getByRole('link', { name: 'webhook.test' }).press('Enter');
    await page.waitForURL('**/deliveries/*');
    await page.locator('#content:focus').waitFor();
  });
  it('keeps the focus after a button that its own action removes, and after a form that is refused or accepted', async () => {
    const { page } = await signedIn();
    await page.goto('/deliveries?status=failed');
    await page.getByRole('button', { name: 'Clear', exact: true }).press('Enter');
    await page.locator('#content:focus').waitFor();
    await page.goto('/subscriptions/new');
    const create = page.getByRole('button', { name: 'Create' });
    await page.getByLabel('Address').fill('http://10.0.0.1/');
    await create.press('Enter');
    await page.getByText('private').last().waitFor();
    await page.locator('button:focus', { hasText: 'Create' }).waitFor();
    await page.getByLabel('Address').fill('https://example.com/new');
    await create.press('Enter');
    await page.locator('[role="alert"]:focus', { hasText: 'it is not shown again' }).waitFor();
    const { data } = (await on.operate('GET', '/v1/subscriptions?q=example.com/new')).body;
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${data[0].id}`));
  });
});

describe('a filter', () => {
  it('keeps the change of another filter that was made just before, and is not shown yet', async () => {
    const { page } = await signedIn();
    await page.goto('/deliveries?status=failed&event_type=session.expired');
    await page.getByText('No matching deliveries').waitFor();
    const clear = page.locator('main .mantine-Select-section button');
    await clear.nth(1).waitFor();
    await clear.evaluateAll((buttons) => {
      for (const button of buttons as { click(): void }[]) button.click();
    });
    expect(await page.evaluate('location.search')).toBe('');
  });
  it('that takes effect after the user has left its page does not lead back to that page', async () => {
    const { page } = await signedIn();
    const letLoad = await holdBack(page, /\/assets\/audit-[^/]*\.js$/);
    await page.clock.install();
    await page.goto('/subscriptions');
    const field = page.getByLabel('Search subscriptions');
    await field.waitFor();
    // From now on, time passes only here: the text is searched for after a pause in typing.
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 60_000);
    await field.fill('zebra');
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.clock.runFor(1_000);
    letLoad();
    await page.waitForURL('**/audit');
    await page.clock.resume();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  });
});

describe('a row', () => {
  it('is a link as a whole, and the link back leads to the list with its filters', async () => {
    const { id, delivery } = await ownDelivery();
    const { page } = await signedIn();
    const list = `/deliveries?subscription_id=${id}&status=succeeded`;
    await page.goto(list);
    // The link covers the cell, so the click is not checked to reach the cell itself.
    await page.getByRole('cell', { name: '1 of' }).click({ force: true });
    await page.waitForURL(`**/deliveries/${delivery.id}`);
    await page.getByRole('link', { name: '← Deliveries' }).click();
    await page.waitForURL(`**${list}`);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByRole('row').nth(1).getByRole('link', { name: delivery.event_id }).click();
    await page.waitForURL('**/events/**');
  });

  it('shows a whole address of a usual length', async () => {
    const to = await ownReceiver();
    const { id } = await on.subscribe(`${to.url}/partners/4711/webhooks/identity`);
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    await on.publish(sampleEvent());
    const { page } = await signedIn();
    for (const width of [1024, 1280, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`/deliveries?subscription_id=${id}`);
      const address = page.getByRole('row').nth(1).getByText('/partners/4711').filter({ visible: true });
      await address.waitFor();
      const [shown, whole] = await address.evaluate(({ clientWidth, clientHeight, scrollWidth, scrollHeight }) => [
        [clientWidth, clientHeight],
        [scrollWidth, scrollHeight],
      ]);
      expect(shown).toEqual(whole);
    }
  });

  it('shows the address on a narrow screen', async () => {
    const { to } = await ownDelivery();
    const { page, overflow } = await signedIn();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto('/deliveries');
    await page.getByRole('row').nth(1).getByText(to.url).filter({ visible: true }).waitFor();
    expect(await overflow()).toBe(0);
  });
});

describe('a time', () => {
  it('carries its zone, and is in UTC if the operator prefers that', async () => {
    const { delivery } = await ownDelivery();
    const { page } = await signedIn({ timezoneId: 'Asia/Kolkata' });
    await page.goto('/deliveries');
    const row = page.getByRole('row').nth(1);
    await row.getByText('GMT+5:30').filter({ visible: true }).waitFor();
    await page.getByRole('button', { name: /^Signed in as/ }).click();
    await page.getByRole('menuitem', { name: 'Times in UTC' }).click();
    const clockTime = new Date(delivery.created_at).toISOString().slice(11, 19);
    await row.getByText(clockTime).filter({ visible: true }).waitFor();
    await row.getByText('UTC').filter({ visible: true }).waitFor();
    await page.reload();
    await row.getByText('UTC').filter({ visible: true }).waitFor();
  });

  it('below a chart is in the same zone as the others, and names it', async () => {
    await ownDelivery();
    const { page } = await atOverview({ timezoneId: 'Asia/Kolkata' });
    const chart = page.getByRole('figure', { name: 'Attempts over the last 24 hours' });
    await page.getByText('Last day').click();
    await chart.getByText('GMT+5:30').waitFor();
    await chart
      .getByText(/^\d\d:30$/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: /^Signed in as/ }).click();
    await page.getByRole('menuitem', { name: 'Times in UTC' }).click();
    await chart.getByText('UTC').waitFor();
    await chart
      .getByText(/^\d\d:00$/)
      .first()
      .waitFor();
  });

  it.each([-2, 2])(
    'that is to come or is past is right where the clock of the browser is %i days off',
    async (days) => {
      const { delivery } = await ownDelivery();
      const { page } = await signedIn();
      await page.clock.install({ time: Date.now() + days * DAY_MS });
      await page.route(`**/v1/deliveries/${delivery.id}`, async (route) => {
        const response = await route.fetch();
        const next_attempt_at = new Date(Date.now() + 30 * 60_000).toISOString();
        await route.fulfill({
          response,
          json: { ...(await response.json()), status: 'waiting_for_retry', next_attempt_at },
        });
      });
      await page.goto(`/deliveries/${delivery.id}`);
      await page.getByText(/^in (30 min|29 min \d+ s)$/).waitFor();
      await page.getByRole('button', { name: 'Try now' }).waitFor();
      await page.goto('/subscriptions?sort=newest');
      await page.setViewportSize({ width: 1440, height: 900 });
      await page
        .getByRole('row')
        .nth(1)
        .getByText(/^(a few seconds|a minute|\d+ minutes) ago$/)
        .waitFor();
    },
  );
});

describe('on paper', () => {
  it('a page has nothing but its content', async () => {
    const { page } = await atOverview();
    await page.emulateMedia({ media: 'print' });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('navigation').waitFor({ state: 'hidden' });
    await page.getByRole('banner').waitFor({ state: 'hidden' });
  });
});

describe('on a narrow screen', () => {
  it('a status fits into its column', async () => {
    const { id, delivery } = await ownDelivery();
    const { body: created } = await on.operate('POST', '/v1/subscriptions', {
      url: 'https://example.com/new',
      event_types: 'all',
      environment: 'both',
    });
    atEnd(() => on.operate('DELETE', `/v1/subscriptions/${created.id}`));
    const { page } = await signedIn({ width: 'narrow' });
    await page.route('**/v1/deliveries?*', async (route) => {
      const response = await route.fetch();
      const next_attempt_at = new Date(Date.now() + 30 * 60_000).toISOString();
      const data = [{ ...delivery, status: 'waiting_for_retry', next_attempt_at }];
      await route.fulfill({ response, json: { data, next_cursor: null } });
    });
    const pages = {
      [`/deliveries?subscription_id=${id}`]: 'Waiting for retry',
      '/subscriptions': 'Awaiting validation',
    };
    for (const [path, label] of Object.entries(pages)) {
      await page.goto(path);
      const cell = page.getByRole('cell').filter({ hasText: label }).last();
      const [around, badge] = [await cell.boundingBox(), await cell.locator('.mantine-Badge-root').boundingBox()];
      const left = badge!.x - around!.x;
      expect(around!.width - left - badge!.width).toBeGreaterThanOrEqual(left);
    }
  });
});
