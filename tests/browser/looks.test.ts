/**
 * Every page at both widths and in both color schemes, beside 10,000 other subscriptions: nothing overflows, axe finds
 * nothing serious, and a screenshot is made. The pages are those of routes.ts; a page for one resource needs an example
 * here.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DAY_MS } from '@posthorn/core';
import { eventually, isDelivery, type Receiver, startReceiver } from '@posthorn/testing';
import type { Browser } from 'playwright-core';
import { openOwnStore } from '../own.ts';
import { sampleEvent, startWorld, type World } from '../world.ts';
import { type ColorScheme, launchBrowser, openVisit, type Visit } from './browser.ts';
import { addManySubscriptions } from './many-subscriptions.ts';

let on: World;
let browser: Browser;
let good: Receiver;
let bad: Receiver;
/** By the name of the screenshot. */
const paths: Record<string, string> = {};

const ROUTES = join(import.meta.dirname, '../../apps/console/page/src/routes.ts');
/** A walk through all pages takes minutes on a busy machine. A page that hangs ends it sooner. */
const WALK_LIMIT_MS = 1_200_000;
jest.setTimeout(WALK_LIMIT_MS);

/** The paths of all pages of signed-in operators; a parameter is `:id`. */
function pagePaths(): string[] {
  const found = [...readFileSync(ROUTES, 'utf8').matchAll(/\bpath: '([^']+)'/g)].map(([, path]) => path!);
  return found.filter((path) => path !== '/sign-in');
}

/** Whether a path, perhaps with a query, is one of a page. */
function isOf(page: string, path: string): boolean {
  const pattern = page.replaceAll(/:\w+/g, '[^/?]+');
  return new RegExp(`^${pattern}([?]|$)`).test(path);
}

beforeAll(async () => {
  [on, browser, good, bad] = await Promise.all([
    startWorld({ env: { RETRY_DELAYS: '5ms,1h', PAUSE_AFTER: '3' } }),
    launchBrowser(),
    startReceiver(),
    startReceiver((request, response) => {
      const headers = { 'content-type': 'application/json', server: 'sample', 'retry-after': '120' };
      response.writeHead(isDelivery(request) ? 503 : 200, headers).end('{"error":"database is read-only"}');
    }),
  ]);
  const fields = { description: 'A description that is rather long, as descriptions tend to be' };
  const one = await on.subscribe(good.url, fields);
  const other = await on.subscribe(bad.url);
  // Three addresses that fail at once are an incident.
  for (const path of ['one', 'two']) await on.subscribe(`${bad.url}${path}`, fields);
  await on.operate('POST', '/v1/subscriptions', {
    url: `https://example.com/${'a-very-long-path/'.repeat(8)}`,
    event_types: ['session.approved', 'session.declined'],
    environment: 'sandbox',
  });
  await on.publishBatch(
    Array.from({ length: 60 }, (_, i) =>
      sampleEvent({ type: i % 2 ? 'session.created' : 'session.resubmission_requested' }),
    ),
  );
  // Of the event type with the longest name.
  const longest = 'event_type=session.resubmission_requested';
  const waiting = await eventually('a delivery to wait', async () => {
    const found = await on.deliveries(`subscription_id=${other.id}&status=waiting_for_retry&${longest}`);
    return found.find((delivery: { attempt_count: number }) => delivery.attempt_count === 2);
  });
  await eventually('an incident', async () => (await on.operate('GET', '/v1/overview')).body.incidents.length === 1);
  await on.operate('POST', `/v1/subscriptions/${other.id}/pause`);
  await on.publish(sampleEvent({ data: { id: 'x'.repeat(256), status: 'approved', reference: 'long' } }));
  const replay = (await on.operate('POST', '/v1/replays', { subscription_id: one.id })).body;
  const others = (await on.operate('GET', '/v1/subscriptions?status=active')).body.data.slice(0, 3);
  const ids = others.map(({ id }: { id: string }) => id);
  const batch = (await on.operate('POST', '/v1/replays', { subscription_ids: ids })).body;
  const erasure = (await on.operate('POST', '/v1/erasures', { session_id: 's-1' })).body;
  const { store, stop } = await openOwnStore(on);
  await addManySubscriptions(store, Date.now() - DAY_MS);
  await stop();
  for (const path of pagePaths())
    if (!path.includes(':')) paths[path.slice(1).replaceAll('/', '-') || 'overview'] = path;
  Object.assign(paths, {
    subscription: `/subscriptions/${one.id}`,
    'paused-subscription': `/subscriptions/${other.id}`,
    'signature-doctor': `/subscriptions/${one.id}/signature`,
    'no-deliveries': '/deliveries?status=failed&event_type=session.expired',
    delivery: `/deliveries/${waiting.id}`,
    event: `/events/${waiting.event_id}`,
    why: `/events/${waiting.event_id}?why=${one.id}`,
    'replays-of-addresses': `/replays?${ids.map((id: string) => `subscription_id=${id}`).join('&')}`,
    replay: `/replays/${replay.id}`,
    'replay-batch': `/replays/${batch.id}`,
    erasure: `/erasures/${erasure.id}`,
    'search-result': '/search?q=s-1',
    'search-of-long-id': '/search?q=long',
    'not-found': '/nothing/here',
    'no-such-delivery': '/deliveries/dlv_none',
  });
  const isShown = (page: string) => Object.values(paths).some((path) => isOf(page, path));
  const missing = pagePaths().filter((page) => !isShown(page));
  if (missing.length > 0) throw new Error(`Add an example of ${missing.join(', ')} to this test`);
});
afterAll(async () => {
  await browser.close();
  await on.stop();
  await good.close();
  await bad.close();
});

/** Waits until nothing loads any more, so that the page is complete. */
async function settled({ page }: Visit): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await eventually('everything to be loaded', async () => (await page.getByLabel('Loading').count()) === 0);
}

describe.each(['wide', 'narrow'] as const)('a %s window', (width) => {
  it('shows each page without overflow and accessible, in light and in dark colors', async () => {
    const visit = await openVisit(browser, on.consoleUrl, { width });
    const { page } = visit;
    const findings: Record<string, unknown> = {};
    // Each page starts in the color scheme of the last one: a switch redraws the whole page.
    let [first, second]: [ColorScheme, ColorScheme] = ['light', 'dark'];
    const look = async (name: string) => {
      await settled(visit);
      for (const colorScheme of [first, second]) {
        await visit.showIn(colorScheme);
        await visit.screenshot(name);
        const found = await visit.accessibilityFindings();
        const overflow = await visit.overflow();
        if (found.length > 0 || overflow !== 0) findings[`${name}-${colorScheme}`] = { found, overflow };
      }
      [first, second] = [second, first];
    };
    const walk = async () => {
      await page.goto('/sign-in');
      await look('sign-in');
      await visit.signIn();
      for (const [name, path] of Object.entries(paths)) {
        await page.goto(path);
        await look(name);
        expect(page.url()).not.toContain('/sign-in');
      }
      await page.goto(paths.subscription!);
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Rotate secret' }).click();
      await page.getByRole('dialog').getByText('Overlap').first().waitFor();
      await page.getByRole('menu').waitFor({ state: 'hidden' });
      await look('rotate');
      if (width === 'narrow') {
        await page.goto('/');
        await page.getByRole('button', { name: 'Menu' }).click();
        await page.getByRole('link', { name: 'Audit' }).waitFor();
        await look('menu');
      }
    };
    await visit.explained(walk);
    expect(findings).toEqual({});
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});
