/** The operators' page in a real browser, against whole apps, a real Redis and real receivers: what an operator does in a day. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { deregisterWorker, sendHeartbeat } from '@posthorn/store';
import { eventually, isDelivery, type Receiver, startReceiver } from '@posthorn/testing';
import type { Browser } from 'playwright-core';
import { atEnd, ownStore } from '../own.ts';
import { OPERATOR_TOKEN, sampleEvent, startWorld, type World } from '../world.ts';
import { launchBrowser, openVisit, toast, type Visit } from './browser.ts';

let on: World;
let browser: Browser;
/** Of an operator who has signed in already. */
let sessionCookie: string;
beforeAll(async () => {
  [on, browser] = await Promise.all([
    startWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000' } }),
    launchBrowser(),
  ]);
  const answer = await fetch(`${on.consoleUrl}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: OPERATOR_TOKEN }),
  });
  sessionCookie = answer.headers.getSetCookie()[0]!.split(';')[0]!;
});
afterAll(async () => {
  await browser.close();
  await on.stop();
});
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});
async function receiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...args);
  undo.push(() => started.close());
  return started;
}
async function visit(options: Parameters<typeof openVisit>[2] = {}): Promise<Visit> {
  const opened = await openVisit(browser, on.consoleUrl, options);
  undo.push(async () => {
    await opened.close();
    expect(opened.problems).toEqual([]);
  });
  return opened;
}
async function signedIn(options: Parameters<typeof openVisit>[2] = {}): Promise<Visit> {
  const opened = await visit(options);
  const [name, value] = sessionCookie.split('=') as [string, string];
  await opened.context.addCookies([{ name, value, url: on.consoleUrl }]);
  await opened.page.goto('/');
  await opened.page.getByRole('heading', { name: 'Overview' }).waitFor();
  return opened;
}
/** A validated subscription that is gone after the test. */
async function subscribe(to: Receiver, fields: Record<string, unknown> = {}) {
  const subscription = await on.subscribe(to.url, fields);
  undo.push(() => on.operate('DELETE', `/v1/subscriptions/${subscription.id}`));
  return subscription;
}
const failing: Parameters<typeof startReceiver>[0] = (request, response) =>
  response.writeHead(isDelivery(request) ? 500 : 200).end();

describe('signing in', () => {
  it('refuses a wrong token, and leads to where one wanted to be', async () => {
    const { page, signIn } = await visit();
    await page.goto('/deliveries?status=failed');
    await page.waitForURL('**/sign-in?next=*');
    await signIn('wrong');
    await page.getByText('This is not an operator token.').waitFor();
    await signIn();
    await page.waitForURL('**/deliveries?status=failed');
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  });
  it('an expired session leads back to where one was; signing out ends it', async () => {
    const { page, context, signIn } = await signedIn();
    await page.goto('/audit');
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
    await context.clearCookies();
    await page.waitForURL('**/sign-in?next=%2Faudit');
    await signIn();
    await page.waitForURL('**/audit');
    await page.getByRole('button', { name: 'Signed in as tests' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Posthorn' }).waitFor();
    await page.goto('/');
    await page.waitForURL('**/sign-in');
  });
  it('goes nowhere else than to the page itself', async () => {
    const { page, signIn } = await visit();
    await page.goto('/sign-in?next=//example.com/x');
    await signIn();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
  it('works with the keyboard alone', async () => {
    const { page } = await visit();
    await page.goto('/sign-in');
    await page.getByLabel('Operator token').first().waitFor();
    await page.keyboard.type(OPERATOR_TOKEN);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});

describe('a subscription', () => {
  it('is created with its types, shows its secret once, is validated, tested, and gets what is published', async () => {
    const to = await receiver();
    const { page } = await signedIn();
    await page.getByRole('link', { name: 'Subscriptions' }).click();
    await page.getByRole('link', { name: 'New subscription' }).first().click();
    await page.getByLabel('Address').fill('http://10.0.0.1/');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('10.0.0.1 is not a public address.').waitFor();
    await page.getByLabel('Address').fill(to.url);
    await page.getByText('Sandbox', { exact: true }).click();
    await page.getByLabel('A selection').check();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Choose at least one').waitFor();
    await page.getByRole('checkbox', { name: 'session.approved' }).check();
    await page.getByLabel('Description').fill('made in the browser');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('it is not shown again').waitFor();
    await page.getByRole('button', { name: 'Copy signing secret' }).click();
    const secret = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole('button', { name: /validate the address/ }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    const id = page.url().split('/').at(-1)!;
    undo.push(() => on.operate('DELETE', `/v1/subscriptions/${id}`));
    expect(await on.subscription(id)).toMatchObject({
      status: 'active',
      environment: 'sandbox',
      event_types: ['session.approved'],
      description: 'made in the browser',
    });
    expect(await page.content()).not.toContain(secret);

    await page.getByRole('button', { name: 'Send test' }).click();
    const drawer = page.getByRole('dialog', { name: 'Test delivery' });
    await drawer.getByText('Attempt 1').waitFor();
    await drawer.getByText('Succeeded').first().waitFor();
    await page.keyboard.press('Escape');
    await on.publish(sampleEvent());
    await page.getByRole('link', { name: 'session.approved' }).waitFor();
  });

  it('is paused, holds, is resumed, edited, gets a new secret, and is deleted once one has said so', async () => {
    const [to, next] = [await receiver(), await receiver()];
    const { id, secret } = await subscribe(to);
    const { page } = await signedIn();
    await page.goto(`/subscriptions/${id}`);
    const more = async (item: string) => {
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: item }).click();
    };
    await more('Pause');
    await page.getByText('Paused: nothing is sent').waitFor();
    await on.publish(sampleEvent());
    await page.getByText('1 delivery is held').waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    await to.received(1, isDelivery);

    await more('Rotate secret');
    const rotation = page.getByRole('dialog', { name: 'Rotate the signing secret' });
    await rotation.getByRole('button', { name: 'Rotate' }).click();
    await rotation.getByText('it is not shown again').waitFor();
    expect(await rotation.textContent()).not.toContain(secret);
    await rotation.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('Previous secret signs until').waitFor();

    await more('Edit');
    const edit = page.getByRole('dialog', { name: 'Edit subscription' });
    await edit.getByLabel('Address').fill(next.url);
    await edit.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Awaiting validation').first().waitFor();
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByText('Active', { exact: true }).waitFor();
    expect(await on.subscription(id)).toMatchObject({ url: next.url, status: 'active' });

    await more('Delete');
    await page.getByRole('button', { name: 'Keep it' }).click();
    expect((await on.subscription(id)).status).toBe('active');
    await more('Delete');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/subscriptions');
    expect((await on.operate('GET', `/v1/subscriptions/${id}`)).status).toBe(404);
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('cell', { name: 'Deleted a subscription' }).first().waitFor();
  });
});

describe('a delivery', () => {
  it('that fails shows that it waits for its retry, then its end; a replay of it arrives', async () => {
    // The retry is answered once the page has shown that it is waited for.
    const shown = Promise.withResolvers<void>();
    let attempts = 0;
    const to = await receiver((request, response) => {
      if (!isDelivery(request)) response.end();
      else if (++attempts === 1) response.writeHead(500).end();
      else void shown.promise.then(() => response.writeHead(500).end());
    });
    const { id } = await subscribe(to);
    const { page } = await signedIn();
    await page.goto('/deliveries');
    const { body: event } = await on.publish(
      sampleEvent({ data: { id: 's-1', status: 'x', reference: '<img src=x onerror=alert(1)><b>bold</b>', big: 1 } }),
    );
    const [delivery] = await on.deliveries(`event_id=${event.id}`);
    // It appears by itself.
    const row = page
      .getByRole('row')
      .filter({ hasText: event.id.slice(0, 12) })
      .first();
    await row.getByText('Waiting for retry').waitFor();
    shown.resolve();
    await row.getByRole('link', { name: 'session.approved' }).click();
    await page.waitForURL(`**/deliveries/${delivery.id}`);
    await page.getByText('Response has an error status').first().waitFor();
    await page.getByText('Failed permanently').waitFor();
    expect(await page.getByText('Attempt 2').count()).toBe(1);

    // What is in a body is text, whatever it looks like.
    const body = await page.getByRole('region', { name: 'body' }).textContent();
    expect(body).toContain('<img src=x onerror=alert(1)><b>bold</b>');
    expect(await page.locator('pre b, pre img').count()).toBe(0);
    await page.getByRole('tab', { name: 'Headers' }).click();
    expect(await page.getByRole('region', { name: 'headers' }).textContent()).toContain(
      `Service-Delivery-Id: ${delivery.id}`,
    );
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = await page.getByRole('region', { name: 'curl command' }).textContent();
    expect(command).toContain(`curl -i -X POST '${to.url}'`);
    expect(command).toContain('Service-Signature: t=');

    to.answerWith(200);
    const before = to.requests.length;
    await page.getByRole('button', { name: 'Replay' }).click();
    await toast(page, 'Replayed: this is the new delivery.');
    await page.getByText('Succeeded').first().waitFor();
    await to.received(before + 1);
    await page.getByRole('link', { name: delivery.id }).first().click();
    await page.getByText('Replayed as').waitFor();
    await page.getByRole('link', { name: event.id }).click();
    await page.getByRole('heading', { name: 'Deliveries (2)' }).waitFor();
    expect(await page.getByRole('region', { name: 'body', exact: true }).textContent()).not.toContain('accepted_at');
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  });

  it('the shown curl sends the same, with a signature that holds', async () => {
    const to = await receiver();
    const { id } = await subscribe(to);
    const made = (await on.operate('POST', `/v1/subscriptions/${id}/test`)).body;
    await to.received(1, isDelivery);
    const { page } = await signedIn();
    await page.goto(`/deliveries/${made.id}`);
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = await page.getByRole('region', { name: 'curl command' }).textContent();
    await promisify(execFile)('sh', ['-c', `${command} -s -o /dev/null`]);
    const [first, second] = await to.received(2, isDelivery);
    expect(second!.body).toBe(first!.body);
    expect(second!.headers['service-delivery-id']).toBe(made.id);
  });

  it('is found by any id in the search box, and by filters that stay in the address', async () => {
    const to = await receiver();
    const { id } = await subscribe(to);
    const { body: event } = await on.publish(sampleEvent());
    const [delivery] = await on.deliveries(`event_id=${event.id}`);
    const { page } = await signedIn();
    for (const [wanted, path] of [
      [delivery.id, `deliveries/${delivery.id}`],
      [id, `subscriptions/${id}`],
      [event.id, `events/${event.id}`],
    ] as const) {
      await page.getByRole('textbox', { name: 'Go to an id' }).fill(wanted);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/${path}`);
    }
    await page.getByRole('textbox', { name: 'Go to an id' }).fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByText('No such event').waitFor();
    await page.goto('/deliveries');
    await page.getByRole('textbox', { name: 'Event id' }).fill(event.id);
    await page.waitForURL(`**/deliveries?event_id=${event.id}`);
    await page.getByRole('combobox', { name: 'Status' }).click();
    await page.getByRole('option', { name: 'Failed' }).click();
    await page.getByText('No matching deliveries').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.waitForURL('**/deliveries');
  });
});

describe('a bulk replay', () => {
  it('says how many before it starts, shows its progress, and its result', async () => {
    const to = await receiver(failing);
    const { id } = await subscribe(to);
    await on.publishBatch(Array.from({ length: 30 }, () => sampleEvent()));
    await eventually('all to fail', async () => {
      return (await on.deliveries(`subscription_id=${id}&status=failed&limit=250`)).length === 30;
    });
    to.answerWith(200);
    const before = to.requests.length;
    const { page, screenshot } = await signedIn();
    await page.goto('/replays');
    await page.getByRole('combobox', { name: 'Address' }).click();
    await page.getByRole('option', { name: to.url }).click();
    await page.getByRole('button', { name: 'Replay 30 failed deliveries' }).click();
    await page.waitForURL('**/replays/rpl_*');
    await page.getByText('Done: 30 replayed.').waitFor();
    expect(await page.getByRole('progressbar').getAttribute('aria-valuenow')).toBe('100');
    await to.received(before + 30);
    await screenshot('replay-done');
    await page.getByRole('link', { name: 'Bulk replays' }).first().click();
    await page.getByRole('cell', { name: '30 of 30' }).waitFor();
  });
});

describe('the overview', () => {
  it('says which worker can reach nothing, and since when', async () => {
    const store = await ownStore(on);
    const since = Date.now() - 90_000;
    const worker = {
      id: 'cut-off',
      host: 'far-away',
      pid: 7,
      version: '0',
      startedAtMs: since,
      concurrency: 1,
      inFlight: 0,
    };
    await sendHeartbeat(store, { ...worker, outageSinceMs: since }, Date.now() + 3_600_000);
    atEnd(() => deregisterWorker(store, 'cut-off'));
    const { page, accessibilityFindings } = await signedIn();
    const alert = page.getByRole('alert').filter({ hasText: 'Worker far-away:7 has reached nothing since' });
    await alert.waitFor();
    expect(await alert.locator('time').getAttribute('datetime')).toBe(new Date(since).toISOString());
    expect(await page.getByRole('alert').count()).toBe(1);
    expect(await accessibilityFindings()).toEqual([]);
  });
  it('shows attempts and paused addresses, refreshes by itself, and leads on', async () => {
    const to = await receiver();
    const { id } = await subscribe(to);
    const { page } = await signedIn();
    await page.getByText('None is paused.').waitFor();
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await on.publish(sampleEvent());
    await page.getByText('1 held').waitFor();
    await page.getByRole('table', { name: 'Workers' }).getByText('of 100').waitFor();
    await page.getByRole('table', { name: 'Paused addresses' }).getByRole('link', { name: to.url }).click();
    await page.waitForURL(`**/subscriptions/${id}`);
    await page.goBack();
    await page.getByRole('link', { name: /^Held/ }).click();
    await page.waitForURL('**/deliveries?status=held');
    await page.getByRole('row').getByText('Held').first().waitFor();
  });
});
