/** The page in a real browser: events. */
import { describe, expect, it } from '@jest/globals';
import { ownReceiver } from '../own.ts';
import { sampleEvent } from '../world.ts';
import { on, ownSubscription, signedIn, visit } from './own-visit.ts';

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

  it('answers on a narrow screen without a wider page', async () => {
    const to = await ownReceiver();
    const { id } = await ownSubscription(to);
    const { body } = await on.publish(sampleEvent());
    const narrow = await visit({ width: 'narrow' });
    await narrow.page.goto('/');
    await narrow.signIn();
    await narrow.page.goto(`/events/${body.id}?why=${id}`);
    await narrow.page.getByRole('status', { name: 'Answer' }).getByText('Delivered at').waitFor();
    await narrow.page.getByRole('link', { name: 'The delivery' }).waitFor();
    expect(await narrow.overflow()).toBe(0);
    expect(await narrow.accessibilityFindings()).toEqual([]);
    await narrow.screenshot('why');
  });
});
