/** The page in a real browser: records that can't be read. */
import { expect, it } from '@jest/globals';
import { deliveriesWith, eventually } from '@posthorn/testing';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { on, ownSubscription, signedIn } from './own-visit.ts';

it('are named above the list, which shows all others', async () => {
  const to = await ownReceiver(deliveriesWith(500));
  const { id } = await ownSubscription(to);
  await on.publishBatch([sampleEvent({ id: 'order:1' }), sampleEvent({ id: 'order:2' })]);
  const list = `subscription_id=${id}&status=failed`;
  await eventually('both to fail', async () => (await on.deliveries(list)).length === 2);
  const [good, bad] = await on.deliveries(list);
  const { page, accessibilityFindings, overflow, screenshot } = await signedIn();
  await page.goto(`/deliveries?${list}`);
  await page.locator(`a[href="/deliveries/${bad.id}"]`).waitFor();
  const key = `${on.prefix}:{0}:delivery:${bad.id}`;
  const createdAt = await on.redis.hget(key, 'c');
  await on.redis.hset(key, 'c', 'soon');
  // The list on screen learns of it by itself.
  const notice = page.getByRole('status').filter({ hasText: "1 record can't be read and is left out" });
  await notice.getByText(bad.id).waitFor();
  await notice.getByText('docs/runbooks.md').waitFor();
  await page.reload();
  await notice.getByText(bad.id).waitFor();
  await page.locator(`a[href="/deliveries/${good.id}"]`).waitFor();
  expect(await page.locator(`a[href="/deliveries/${bad.id}"]`).count()).toBe(0);
  await screenshot('unreadable');
  expect(await accessibilityFindings()).toEqual([]);
  expect(await overflow()).toBe(0);
  await on.redis.hset(key, 'c', createdAt!);
  await notice.waitFor({ state: 'detached' });
});

it('are named on the overview, which shows everything else', async () => {
  const { id } = await ownSubscription(await ownReceiver());
  await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  const health = `${on.prefix}:{0}:health:${id}`;
  const { page, accessibilityFindings, overflow } = await signedIn();
  const notice = page.getByRole('status').filter({ hasText: "can't be read and is left out" });
  await page.goto('/');
  await page.getByText('Most failing addresses').waitFor();
  expect(await notice.count()).toBe(0);
  await on.redis.hset(health, 'e', 'damaged');
  await notice.getByText(id).waitFor();
  await page.getByText('Most failing addresses').waitFor();
  expect(await accessibilityFindings()).toEqual([]);
  expect(await overflow()).toBe(0);
  await on.redis.hdel(health, 'e');
  await notice.waitFor({ state: 'detached' });
});
