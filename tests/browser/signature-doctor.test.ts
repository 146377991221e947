/** The signature doctor in a real browser, at both widths and in both color schemes. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { WIDTHS } from './browser.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

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
