/** The page in a real browser: erasures. */
import { expect, it } from '@jest/globals';
import { eventually, fakeClock, isDelivery } from '@posthorn/testing';
import { ownReceiver, ownWorld } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { confirmed } from './browser.ts';
import { atOverview, newSessionCookie, on, ownSubscription, signedIn, visit } from './own-visit.ts';

it('an event is counted, erased after a confirmation, and then shown as erased, with its deliveries', async () => {
  const to = await ownReceiver();
  const { id: subscriptionId } = await ownSubscription(to);
  const data = { id: 'ses-1', status: 'approved', metadata: { name: 'Zoë <b>Ångström</b>' } };
  const { body: event } = await on.publish(sampleEvent({ data }));
  await to.received(1, isDelivery);
  const { page, accessibilityFindings, showIn, screenshot, overflow } = await signedIn();
  await page.goto(`/events/${event.id}`);
  await page.getByText('Ångström').first().waitFor();
  await page.getByRole('link', { name: 'Erase' }).click();
  const value = page.getByRole('textbox', { name: 'Value' });
  expect(await value.inputValue()).toBe(event.id);
  await page.getByRole('button', { name: 'Count' }).click();
  await page.getByText('1 event found').waitFor();
  const erase = page.getByRole('button', { name: 'Erase 1 payload' });
  expect(await erase.isDisabled()).toBe(true);
  for (const scheme of ['light', 'dark'] as const) {
    await showIn(scheme);
    await screenshot('confirm-erasure');
    expect(await accessibilityFindings()).toEqual([]);
  }
  expect(await overflow()).toBe(0);
  await page.getByRole('checkbox', { name: 'The value below' }).check();
  await erase.click();
  await page.getByText('Done: the payload of 1 event is erased.').waitFor();
  await screenshot('erased');
  await page.goto(`/events/${event.id}`);
  await page.getByText('An operator had the payload erased.').waitFor();
  await page.getByText('Payload erased').first().waitFor();
  expect(await page.getByText('Ångström').count()).toBe(0);
  await screenshot('erased-event');
  const [delivery] = await on.deliveries(`subscription_id=${subscriptionId}`);
  await page.goto(`/deliveries/${delivery.id}`);
  await page.getByText('It cannot be replayed.').waitFor();
  await page.goto('/audit');
  await page.getByText('Erased the payload of an event.').first().waitFor();
  await page
    .getByRole('link', { name: /^Erasure ers_/ })
    .first()
    .click();
  await page.getByText('Hash of the value').waitFor();
});

it('a value that is too long is refused with the reason', async () => {
  const { page } = await signedIn();
  await page.goto(`/erasures?field=user_id&value=${'x'.repeat(2_001)}`);
  await page.getByRole('button', { name: 'Count' }).click();
  await page.getByText('user_id: Expected string to have <=2000 characters.').waitFor();
});

it('an erasure that finds no event can be cancelled, and nothing is erased', async () => {
  const { page } = await signedIn();
  await page.goto('/erasures?field=user_id&value=nobody');
  await page.getByRole('button', { name: 'Count' }).click();
  await page.getByText('No stored event has this value.').waitFor();
  // A long label is not cut off on a narrow screen.
  await page.setViewportSize({ width: 320, height: 844 });
  const label = await page.getByRole('button', { name: 'Erase what arrives until now' }).boundingBox();
  const around = await page.getByRole('alert').boundingBox();
  expect(label!.x + label!.width).toBeLessThan(around!.x + around!.width);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Cancelled: nothing was erased.').waitFor();
  await eventually('the list', async () => {
    await page.goto('/erasures');
    await page.getByRole('table', { name: 'Erasures' }).waitFor();
    return (await page.getByRole('link', { name: 'User id' }).count()) > 0;
  });
});

it('the link of an event erases only that of its environment, whose id another event may have', async () => {
  const event = sampleEvent({ id: 'in-both' });
  for (const environment of ['sandbox', 'production']) await on.publish({ ...event, environment });
  const { page } = await signedIn();
  await page.goto('/events/in-both?environment=sandbox');
  await page.getByRole('link', { name: 'Erase' }).click();
  await page.getByRole('button', { name: 'Count' }).click();
  await page.getByText('1 event found').waitFor();
});

it('what was ticked for one erasure does not count for another one', async () => {
  const erasures = [];
  for (const user_id of ['alice', 'bob']) {
    const { id } = (await on.operate('POST', '/v1/erasures', { user_id })).body;
    const status = async () => (await on.operate('GET', `/v1/erasures/${id}`)).body.status;
    await eventually('the count', async () => (await status()) === 'counted');
    erasures.push(id);
  }
  const { page } = await atOverview();
  const tick = page.getByRole('checkbox', { name: 'The value below' });
  for (const id of erasures) {
    await page.getByRole('textbox', { name: 'Search' }).fill(id);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/erasures/${id}`);
    await page.getByText(id).first().waitFor();
  }
  await tick.check();
  await page.goBack();
  await page.getByText('alice').waitFor();
  expect(await tick.isChecked()).toBe(false);
  for (const id of erasures) await on.operate('POST', `/v1/erasures/${id}/cancel`);
});

it('an erasure that waits for held deliveries can end them', async () => {
  const clock = fakeClock(Date.now());
  const own = await ownWorld({ clock });
  const { id: subscriptionId } = await own.subscribe((await ownReceiver()).url);
  await own.operate('POST', `/v1/subscriptions/${subscriptionId}/pause`);
  const { body: event } = await own.publish(sampleEvent());
  const request = { event_id: event.id, unsent: 'deliver', confirm: true };
  const { id } = (await own.operate('POST', '/v1/erasures', request)).body;
  const { page, context, accessibilityFindings, screenshot } = await visit();
  await context.addCookies([await newSessionCookie(own)]);
  await page.goto(`${own.consoleUrl}/erasures/${id}`);
  // An event with a known id is looked for only once.
  await page.getByText('The others follow when all their deliveries have ended.').waitFor();
  await page.getByRole('button', { name: 'End the deliveries' }).click();
  await page.getByText("This can't be undone").waitFor();
  expect(await accessibilityFindings()).toEqual([]);
  await screenshot('end-deliveries');
  await confirmed(page, 'The deliveries are being ended.', () =>
    page.getByRole('button', { name: 'End them' }).click(),
  );
  clock.advance(11_000);
  await page.getByText('Done: the payload of 1 event is erased.').waitFor();
  const [delivery] = await own.deliveries(`event_id=${event.id}`);
  expect(delivery).toMatchObject({ status: 'failed', failure_reason: 'erased' });
});
