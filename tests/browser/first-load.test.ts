/** What a browser loads before it shows something, how these files are sent, and pages whose code can't be loaded. */
import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { ownReceiver } from '../own.ts';
import { OPERATOR_TOKEN } from '../world.ts';
import { atOverview, on, ownSubscription, signedIn } from './own-visit.ts';

const MAX_FIRST_LOAD_BYTES = 150_000;
/** Of the overview, with what it needs once it is shown. A browser loads six at a time. */
const MAX_FILES_OF_A_VISIT = 12;

async function load(path: string, encoding: string): Promise<{ response: IncomingMessage; bytes: number }> {
  const headers = { 'accept-encoding': encoding, accept: 'text/html,*/*' };
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(`${on.consoleUrl}${path}`, { headers }, resolve).on('error', reject),
  );
  return { response, bytes: (await buffer(response)).length };
}

/** The paths of the scripts and styles that the page names: without them it shows nothing. */
async function firstFiles(): Promise<string[]> {
  const html = await (await fetch(on.consoleUrl, { headers: { accept: 'text/html' } })).text();
  return [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
}

describe('the files of the page', () => {
  it.each(['gzip, deflate, br', 'gzip'])(
    'are under 150 kB before the first paint of a browser that accepts %s',
    async (accepted) => {
      const paths = await firstFiles();
      expect(paths.some((path) => path.endsWith('.js'))).toBe(true);
      expect(paths.some((path) => path.endsWith('.css'))).toBe(true);
      const loaded = await Promise.all(['/', ...paths].map((path) => load(path, accepted)));
      const bytes = loaded.reduce((sum, file) => sum + file.bytes, 0);
      expect(bytes).toBeGreaterThan(50_000);
      expect(bytes).toBeLessThan(MAX_FIRST_LOAD_BYTES);
    },
  );

  it.each([
    ['br', 'gzip, deflate, br, zstd'],
    ['gzip', 'gzip, deflate'],
    [undefined, 'identity'],
  ])('are sent as %s to a browser that accepts %s, and kept for a year', async (expected, accepted) => {
    const path = (await firstFiles()).find((name) => name.endsWith('.js'))!;
    const { response } = await load(path, accepted);
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-encoding']).toBe(expected);
    expect(response.headers.vary).toContain('Accept-Encoding');
    expect(response.headers['content-type']).toMatch(/^text\/javascript/);
    expect(response.headers['cache-control']).toBe('public, max-age=31536000, immutable');
  });

  it('are few', async () => {
    const { page } = await signedIn();
    const files: string[] = [];
    page.on('request', (request) => request.url().includes('/assets/') && files.push(request.url()));
    await page.goto('/');
    for (const part of ['freshness', 'operator-menu', 'overlays'])
      await eventually(`the part ${part}`, () => files.some((file) => file.includes(`/${part}-`)));
    await page.waitForLoadState('networkidle');
    expect(files.length).toBeLessThanOrEqual(MAX_FILES_OF_A_VISIT);
  });

  it('that do not exist are not found, compressed or not', async () => {
    for (const accepted of ['br', 'identity']) {
      const { response } = await load('/assets/none.js', accepted);
      expect(response.statusCode).toBe(404);
      expect(response.headers['content-encoding']).toBeUndefined();
    }
  });
});

describe('a path that names no page', () => {
  it.each(['/nosuch', '/nosuch%0A', '/nosuch%E2%80%A8', '/%zz'])('is said not to exist: %s', async (path) => {
    const { page } = await signedIn();
    await page.goto(path);
    await page.getByText('Page not found').waitFor();
    await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  });
  it.each(['/v1/%zz', '/assets/%zz', '/%zz'])('is refused in JSON to a program: %s', async (path) => {
    const response = await fetch(`${on.consoleUrl}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
    expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
  });
});

describe('a page whose code is gone, as after a deployment', () => {
  it('says so, leaves the other pages usable, and is shown after a reload', async () => {
    const { page, problems } = await atOverview();
    const isAudit = /\/assets\/audit-[^/]*\.js$/;
    await page.route(isAudit, (route) => route.fulfill({ status: 404 }));
    await page.getByRole('link', { name: 'Audit' }).click();
    const alert = page.getByRole('alert').filter({ hasText: "This page can't be shown" });
    await alert.waitFor();
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    expect(await alert.count()).toBe(0);
    await page.getByRole('link', { name: 'Audit' }).click();
    await alert.waitFor();
    await page.unroute(isAudit);
    // React reports what it has caught, and the browser the script that it could not load.
    problems.length = 0;
    await alert.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  });
});

it('an address can be used while the code of its chart cannot be loaded, which is tried again', async () => {
  const { id } = await ownSubscription(await ownReceiver());
  await on.operate('POST', `/v1/subscriptions/${id}/test`);
  const hasAttempt = async () => (await on.operate('GET', `/v1/subscriptions/${id}/attempts`)).body.attempts > 0;
  await eventually('the attempt to be counted', hasAttempt);
  const { page } = await signedIn();
  let tries = 0;
  await page.route('**/stacked-bars-*.js', async (route) => {
    tries += 1;
    await (tries <= 2 ? route.abort() : route.continue());
  });
  await page.goto(`/subscriptions/${id}`);
  await eventually('another try', () => tries > 2);
  expect(await page.getByRole('button', { name: 'Send test' }).count()).toBe(1);
  await page.getByRole('figure').getByText('Succeeded').waitFor();
});

it.each(['freshness', 'operator-menu', 'overlays'])(
  'the page can be used while its part %s cannot be loaded, which is tried again',
  async (part) => {
    const { page } = await signedIn();
    let tries = 0;
    await page.route(`**/${part}-*.js`, async (route) => {
      tries += 1;
      // A file may be asked for before it is needed.
      await (tries <= 2 ? route.abort() : route.continue());
    });
    await page.goto('/');
    await eventually('another try', () => tries > 2);
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  },
);
