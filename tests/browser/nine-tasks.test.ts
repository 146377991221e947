/**
 * Nine tasks of an operator, beside 10,000 other subscriptions, and the clicks that each takes: those in
 * docs/console.md.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { DAY_MS } from '@posthorn/core';
import { eventually, isDelivery } from '@posthorn/testing';
import type { Page } from 'playwright-core';
import { ownReceiver, ownStore } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { confirmed, copyWith } from './browser.ts';
import { addManySubscriptions } from './many-subscriptions.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/console.md');
const BODY = '{"error":"database is read-only"}';

beforeAll(async () => {
  await addManySubscriptions(await ownStore(on), Date.now() - DAY_MS);
});

/** The documented clicks by the number of the task: the first column of figures. */
function documentedClicks(): Map<number, number> {
  const rows = readFileSync(DOCUMENT, 'utf8').matchAll(/^\| (\d)\. [^|]*\| *(\d+) *\|/gm);
  return new Map(Array.from(rows, ([, task, clicks]) => [Number(task), Number(clicks)]));
}

/** The address of a customer that fails, with deliveries that have failed, and the first of their events. */
async function failingCustomer() {
  let works = false;
  const to = await ownReceiver((request, response) => {
    if (works || !isDelivery(request)) response.end();
    else response.writeHead(500, { 'content-type': 'application/json' }).end(BODY);
  });
  const { id } = await ownSubscription(to);
  await on.operate('PATCH', `/v1/subscriptions/${id}`, { description: 'Zebra GmbH' });
  const { body: event } = await on.publish(sampleEvent());
  await on.publishBatch(Array.from({ length: 9 }, () => sampleEvent()));
  await eventually('all to fail', async () => {
    const failed = await on.deliveries(`subscription_id=${id}&status=failed`);
    return failed.length === 10;
  });
  const repair = () => {
    works = true;
  };
  return { to, id, eventId: event.id as string, repair };
}

type Customer = Awaited<ReturnType<typeof failingCustomer>>;

/** Presses `/`, types a text and presses Enter. */
async function search(page: Page, text: string): Promise<void> {
  await page.keyboard.press('/');
  await page.locator('search input:focus').waitFor();
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

async function openCustomer(page: Page, { to }: Customer): Promise<void> {
  await search(page, 'zebra');
  await page.getByRole('heading', { level: 1, name: 'Search for zebra' }).waitFor();
  await page.getByRole('main').getByRole('link', { name: to.url }).click();
  await page.getByRole('heading', { level: 1, name: to.url }).waitFor();
}

async function openDelivery(page: Page, { eventId, to }: Customer): Promise<void> {
  await search(page, eventId);
  const row = page.getByRole('table', { name: 'Deliveries' }).getByRole('row').filter({ hasText: to.url });
  await row.getByRole('link', { name: 'session.approved' }).click();
  await page.getByRole('region', { name: 'Attempts', exact: true }).waitFor();
}

async function choose(page: Page, item: string): Promise<void> {
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('menuitem', { name: item }).click();
}

/** What the operator does from the overview on, until the result is on screen. */
const tasks: Record<number, (page: Page, customer: Customer) => Promise<void>> = {
  // See which address fails, since when, and why.
  async 1(page, { to }) {
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByRole('link', { name: to.url }).waitFor();
    await attention.getByText('“database is read-only”, 20 times since').waitFor();
  },
  // Find the address of a customer by a part of its name.
  2: openCustomer,
  // From the id of an event to its attempts and what came back.
  async 3(page, customer) {
    await openDelivery(page, customer);
    await page.getByText(BODY).first().waitFor();
  },
  // Replay one failed delivery.
  async 4(page, customer) {
    customer.repair();
    await openDelivery(page, customer);
    await confirmed(page, 'Replayed: this is the new delivery.', () =>
      page.getByRole('button', { name: 'Replay', exact: true }).click(),
    );
    await page.getByText('Succeeded').first().waitFor();
  },
  // Replay all failed deliveries of an address.
  async 5(page, customer) {
    customer.repair();
    await openCustomer(page, customer);
    await choose(page, 'Replay failed deliveries');
    await page.getByRole('button', { name: /^Replay \d+ failed deliveries/ }).click();
    await page.waitForURL('**/replays/rpl_*');
    // Two attempts of each of ten, and the replay of each.
    await customer.to.received(30, isDelivery);
  },
  // Resume a paused address.
  async 6(page, { id, to, repair }) {
    repair();
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByText('Paused', { exact: true }).waitFor();
    const resume = attention.getByRole('button', { name: `Resume ${to.url}`, exact: true });
    await confirmed(page, `Resumed ${to.url}. If deliveries are held, one goes first.`, () => resume.click());
    await eventually('the address to be active', async () => (await on.subscription(id)).status === 'active');
    expect(to.requests.length).toBeGreaterThan(0);
  },
  // Rotate a signing secret, and copy the new one.
  async 7(page, customer) {
    await openCustomer(page, customer);
    await choose(page, 'Rotate secret');
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    expect(await copyWith(page, 'Copy signing secret')).toMatch(/^whsec_/);
  },
  // Send a test delivery, and see how it went.
  async 8(page, customer) {
    customer.repair();
    await openCustomer(page, customer);
    await page.getByRole('button', { name: 'Send test' }).click();
    await page.getByRole('dialog', { name: 'Test delivery' }).getByText('Succeeded').first().waitFor();
  },
  // Find out who paused an address, and when.
  async 9(page, customer) {
    await on.operate('POST', `/v1/subscriptions/${customer.id}/pause`);
    await openCustomer(page, customer);
    await page.getByRole('link', { name: 'Audit trail' }).click();
    const row = page.getByRole('row').filter({ hasText: 'Paused the address.' }).first();
    await row.getByText('tests').filter({ visible: true }).waitFor();
    await row.locator('time').waitFor();
  },
};

/** Those that need a failing receiver first. */
const ORDER = [1, 2, 3, 7, 4, 5, 6, 8, 9];

it('nine tasks take the clicks that are documented, and no others are documented', async () => {
  const customer = await failingCustomer();
  const { page, explained } = await signedIn();
  let clicks = 0;
  await page.exposeFunction('countClick', () => {
    clicks += 1;
  });
  await page.addInitScript('addEventListener("pointerdown", () => countClick(), true)');
  const taken = new Map<number, number>();
  for (const number of ORDER) {
    await page.goto('/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    clicks = 0;
    await explained(() => tasks[number]!(page, customer));
    // Calls from the page arrive in order, so all earlier ones are counted after this one.
    await page.evaluate('countClick()');
    taken.set(number, clicks - 1);
  }
  expect(taken).toEqual(documentedClicks());
});
