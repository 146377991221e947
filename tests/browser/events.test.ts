/** The page in a real browser: events, bodies, signatures, and what came back from attempts. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import type { Page } from 'playwright-core';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { confirmed, copyWith, WIDTHS } from './browser.ts';
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

const MARKUP = '<img src=x onerror=alert(1)>';

async function published(data: object): Promise<string> {
  const { status, body } = await on.publish(sampleEvent({ data: { id: 's-1', status: 'approved', ...data } }));
  expect(status).toBe(202);
  return body.id;
}

describe('the body of an event', () => {
  it('is shown in color, in both color schemes with enough contrast, and never as HTML', async () => {
    const id = await published({ reference: MARKUP, [MARKUP]: 12.5, ok: true, none: null });
    const { page, showIn, accessibilityFindings, screenshot } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await body.waitFor();
    expect(JSON.parse(String(await body.textContent()))).toMatchObject({ id, data: { reference: MARKUP, ok: true } });
    expect(await body.locator('img').count()).toBe(0);
    const parts = {
      '"data"': 'json-name',
      [`"${MARKUP}"`]: 'json-string',
      '12.5': 'json-number',
      true: 'json-word',
      null: 'json-word',
    };
    const colors = new Set<unknown>();
    for (const scheme of ['light', 'dark'] as const) {
      await showIn(scheme);
      for (const [text, className] of Object.entries(parts)) {
        const part = body.locator(`.${className}`).getByText(text, { exact: true });
        colors.add(
          await part.first().evaluate((shown) => shown.ownerDocument.defaultView?.getComputedStyle(shown).color),
        );
      }
      expect(await accessibilityFindings()).toEqual([]);
      await screenshot('json');
    }
    // The button covers no text.
    const [text, button] = [body, page.getByRole('button', { name: 'Copy event' })];
    const { x, width } = (await text.boundingBox())!;
    expect((await button.boundingBox())!.x).toBeGreaterThanOrEqual(x + width);
    // Names, strings, numbers and words, in each color scheme.
    expect(colors.size).toBe(8);
  });

  it('shows characters that nobody could see, and is copied as it is', async () => {
    const reference = 'u_\u202e1\u200b2';
    const id = await published({ reference });
    const { page } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await body.getByText(String.raw`"u_\u202e1\u200b2"`).waitFor();
    expect(await copyWith(page, 'Copy event')).toContain(reference);
  });

  it('that is very long is shown in part at first, and copied as a whole', async () => {
    const items = Array.from({ length: 3_000 }, (_, i) => `item ${i}`);
    const id = await published({ items });
    const { page, accessibilityFindings } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await page.getByText('These are the first 20,000 of').waitFor();
    expect(String(await body.textContent())).toHaveLength(20_000);
    expect(await accessibilityFindings()).toEqual([]);
    const copied = JSON.parse(await copyWith(page, 'Copy event'));
    expect(copied.data.items).toEqual(items);
    await page.getByRole('button', { name: 'Show all' }).click();
    await body.getByText('"item 2999"').waitFor();
    expect(JSON.parse(String(await body.textContent()))).toEqual(copied);
    // What comes after the first 60,000 characters has no color, because each part would be an element.
    expect(await body.locator('span').count()).toBeLessThan(4_000);
  });
});

const RESPONSE_MARKUP = '<b>bold</b><img src=x onerror=alert(1)>';

/** A delivery whose two attempts got these responses. */
async function deliveryWith(responses: [status: number, body: string, server: string][]) {
  const to = await ownReceiver((request, response) => {
    const [status, body, server] = (isDelivery(request) && responses.shift()) || [200, 'ok', 'sample'];
    response.writeHead(status, { 'content-type': 'application/json', server }).end(body);
  });
  const { id } = await ownSubscription(to);
  const { body: event } = await on.publish(sampleEvent());
  return await eventually('the second attempt', async () => {
    const [delivery] = await on.deliveries(`event_id=${event.id}&subscription_id=${id}`);
    return delivery?.attempt_count === 2 && delivery;
  });
}

describe('a failed attempt', () => {
  it('shows what came back as text, whatever it contains', async () => {
    const { id } = await deliveryWith([
      [500, '{"error":"database is read-only"}', 'nginx/1.2'],
      [500, RESPONSE_MARKUP, 'https://example.com/<i>'],
    ]);
    const { page, accessibilityFindings, overflow } = await signedIn();
    await page.goto(`/deliveries/${id}`);
    const attempts = page.getByRole('region', { name: 'Attempts', exact: true });
    await attempts.getByText('{"error":"database is read-only"}').waitFor();
    await attempts.getByRole('button', { name: 'What came back from attempt 1' }).click();
    const body = page.getByRole('region', { name: 'response to attempt 1' });
    await body.waitFor();
    expect(await body.textContent()).toBe('{\n  "error": "database is read-only"\n}');
    await attempts.getByText('nginx/1.2').waitFor();
    await attempts.getByRole('button', { name: 'What came back from attempt 2' }).click();
    expect(await page.getByRole('region', { name: 'response to attempt 2' }).textContent()).toBe(RESPONSE_MARKUP);
    expect(await attempts.locator('b, img, i').count()).toBe(0);
    expect(await attempts.getByRole('link').count()).toBe(0);
    expect(await accessibilityFindings()).toEqual([]);
    expect(await overflow()).toBe(0);
  });
});

describe('two attempts side by side', () => {
  it('show what changed', async () => {
    const { id } = await deliveryWith([
      [500, 'database is read-only', 'a'],
      [503, 'maintenance', 'b'],
    ]);
    const { page, accessibilityFindings } = await signedIn();
    await page.goto(`/deliveries/${id}`);
    const compared = page.getByRole('region', { name: 'Compare attempts' });
    const summary = compared.getByText(/^Changed: .*Status.*server.*body\.$/);
    await summary.waitFor();
    const status = page.getByRole('table', { name: 'Two attempts' }).getByRole('row').filter({ hasText: 'Status' });
    expect(await status.textContent()).toBe('Status changed500503');
    expect(await page.getByRole('region', { name: 'first body' }).textContent()).toBe('database is read-only');
    expect(await page.getByRole('region', { name: 'second body' }).textContent()).toBe('maintenance');
    expect(await accessibilityFindings()).toEqual([]);
    // An attempt does not differ from itself.
    await compared.getByRole('combobox', { name: 'Second attempt' }).click();
    await page.getByRole('option', { name: 'Attempt 1' }).click();
    await compared.getByText('Nothing that is known changed.').waitFor();
  });
});

describe('a validation', () => {
  it('shows what came back as text, and says at once what it found', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    to.answerWith((_request, response) => void response.writeHead(401, { server: 'gateway' }).end(RESPONSE_MARKUP));
    const { page, accessibilityFindings, overflow } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    const validateAgain = async () => {
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Validate again' }).click();
    };
    const told = (text: string, color: string, act: () => Promise<void>) =>
      confirmed(page, text, act, `[role="alert"][style*="color-${color}-"]`);
    await told('The address is acceptable: status 401, response has an error status.', 'orange', validateAgain);
    const shown = page.getByRole('region', { name: 'Last validation' });
    await shown.getByText('The address is acceptable: status 401').waitFor();
    await shown.getByText('gateway').waitFor();
    const body = page.getByRole('region', { name: 'response to the validation' });
    expect(await body.textContent()).toBe(RESPONSE_MARKUP);
    expect(await shown.locator('b, img').count()).toBe(0);
    expect(await accessibilityFindings()).toEqual([]);
    expect(await overflow()).toBe(0);
    to.answerWith(302);
    await told('The address is refused: status 302, response is a redirect.', 'red', validateAgain);
    to.answerWith(200);
    const validate = page.getByRole('button', { name: 'Validate' });
    await told('The address is acceptable: status 200.', 'teal', () => validate.click());
  });
});

describe('the signature doctor', () => {
  it('is reached from the address, accepts what was delivered, and names every change in words', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    await on.publish(sampleEvent());
    const { headers, body } = await eventually('a delivery', async () => to.requests.find(isDelivery));
    const header = String(headers['service-signature']);
    const { page, screenshot, showIn, accessibilityFindings, overflow } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Check a signature' }).click();
    await page.getByRole('heading', { name: 'Check a signature' }).waitFor();
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Paste the header Service-Signature').waitFor();
    await page.getByLabel('Header Service-Signature').fill(header);
    await page.getByLabel('Body').fill(body);
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('The signature is correct').waitFor();

    await page.getByLabel('Received at').fill('yesterday');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Expected an ISO 8601 instant with a zone').waitFor();
    const signedAtMs = 1000 * Number(/t=(\d+)/.exec(header)![1]);
    await page.getByLabel('Received at').fill(new Date(signedAtMs - 7_000).toISOString());
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('7 s before the signature').waitFor();
    await page.getByLabel('Received at').fill(new Date(signedAtMs + 412_000).toISOString());
    const { data, ...rest } = JSON.parse(body);
    await page.getByLabel('Body').fill(JSON.stringify({ ...rest, data: { ...data, reference: '<img src=x>' } }));
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Clock off by 412 s').waitFor();
    await page.getByText('its content differs').waitFor();
    await page.getByText('"<img src=x>', { exact: false }).first().waitFor();
    expect(await page.locator('main img').count()).toBe(0);
    const findings: unknown[] = [];
    for (const width of ['wide', 'narrow'] as const) {
      await page.setViewportSize(WIDTHS[width]);
      for (const scheme of ['light', 'dark'] as const) {
        await showIn(scheme);
        await screenshot(`signature-doctor-result-at-${width}`);
        findings.push(...(await accessibilityFindings()), ...((await overflow()) ? [`overflow, ${width}`] : []));
      }
    }
    expect(findings).toEqual([]);
  });
});
