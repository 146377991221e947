/** Bull Board and the API's document: they load nothing from other servers, and link back to the console. */
import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { atEnd } from '../own.ts';
import { OPERATOR_TOKEN } from '../world.ts';
import { PUBLIC_NAME } from './browser.ts';
import { on, visit } from './own-visit.ts';

/** A signed-in visit under a public name, and every request that its pages make. */
async function recorded() {
  const opened = await visit();
  const requests: string[] = [];
  opened.page.on('request', (request) => requests.push(request.url()));
  const base = `http://${PUBLIC_NAME}:${new URL(on.consoleUrl).port}`;
  await opened.page.goto(`${base}/sign-in`);
  await opened.signIn();
  await opened.page.getByRole('heading', { name: 'Overview' }).waitFor();
  const foreign = () => requests.filter((url) => !url.startsWith(`${base}/`) && !url.startsWith('data:'));
  atEnd(() => {
    // Chromium says so of every page that comes over http from another machine.
    const isOther = (problem: string) => !problem.startsWith('The Cross-Origin-Opener-Policy header has been ignored');
    opened.problems.splice(0, opened.problems.length, ...opened.problems.filter(isOther));
  });
  return { ...opened, requests, foreign };
}

/** Opens a page of the console's navigation, which is not a part of the app. */
async function openSection(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name, exact: true }).click();
}

describe('Bull Board', () => {
  it('loads nothing from elsewhere, and links back to the console', async () => {
    const { page, requests, foreign, screenshot } = await recorded();
    await openSection(page, 'Queues');
    await page.waitForURL('**/queues');
    await page.getByText('deliveries').first().waitFor();
    await page.getByText('Loading...').waitFor({ state: 'hidden' });
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const html = await (await page.request.get(`${on.consoleUrl}/queues`, { headers })).text();
    expect(html).toContain('<div id="root">');
    expect(html).not.toMatch(/(href|src)="(https?:)?\/\//);
    await screenshot('queues');
    await page.waitForLoadState('networkidle');
    expect(requests.some((url) => url.includes('/queues/static/'))).toBe(true);
    expect(foreign()).toEqual([]);
    await page.getByRole('link', { name: 'Back to the console' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});

describe("the API's document", () => {
  it('loads nothing from elsewhere, and links back to the console', async () => {
    const { page, requests, foreign, screenshot } = await recorded();
    await openSection(page, 'API');
    await page.getByRole('heading', { name: /^Posthorn operator API/ }).waitFor();
    await page.getByText('/v1/audit').first().click();
    await page.getByText('The name of an operator').waitFor();
    await page.waitForLoadState('networkidle');
    await screenshot('api');
    expect(requests.some((url) => url.endsWith('/openapi.json'))).toBe(true);
    expect(foreign()).toEqual([]);
    await page.getByRole('link', { name: 'Back to the console' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});
