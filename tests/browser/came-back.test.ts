/** The page in a real browser: what came back from attempts, and two of them side by side. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

const MARKUP = '<b>bold</b><img src=x onerror=alert(1)>';

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
      [500, MARKUP, 'https://example.com/<i>'],
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
    expect(await page.getByRole('region', { name: 'response to attempt 2' }).textContent()).toBe(MARKUP);
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
    to.answerWith((_request, response) => void response.writeHead(401, { server: 'gateway' }).end(MARKUP));
    const { page, accessibilityFindings, overflow } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    const validateAgain = async () => {
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Validate again' }).click();
    };
    // A notification goes away by itself, so the wait begins before.
    const told = (hasText: string, color: string, act: () => Promise<void>) =>
      Promise.all([page.locator(`[role="alert"][style*="color-${color}-"]`, { hasText }).waitFor(), act()]);
    await told('The address is acceptable: status 401, response has an error status.', 'orange', validateAgain);
    const shown = page.getByRole('region', { name: 'Last validation' });
    await shown.getByText('The address is acceptable: status 401').waitFor();
    await shown.getByText('gateway').waitFor();
    const body = page.getByRole('region', { name: 'response to the validation' });
    expect(await body.textContent()).toBe(MARKUP);
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
