/** Bodies on the page: JSON in color, as text only, with all of it to copy, and a bounded part of a very long one. */
import { describe, expect, it } from '@jest/globals';
import { sampleEvent } from '../world.ts';
import { copyWith } from './browser.ts';
import { on, signedIn } from './own-visit.ts';

const MARKUP = '<img src=x onerror=alert(1)>';

async function published(data: object): Promise<string> {
  const { status, body } = await on.publish(sampleEvent({ data: { id: 's-1', status: 'approved', ...data } }));
  expect(status).toBe(202);
  return body.id;
}

describe('the body of an event', () => {
  it('is shown in color, in both color schemes with enough contrast, and never as HTML', async () => {
    const id = await published({ reference: MARKUP, [MARKUP]: 12.5, ok: true, none: null });
    const { page, showIn, accessibilityFindings, screenshot } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await body.waitFor();
    expect(JSON.parse(String(await body.textContent()))).toMatchObject({ id, data: { reference: MARKUP, ok: true } });
    expect(await body.locator('img').count()).toBe(0);
    const parts = {
      '"data"': 'json-name',
      [`"${MARKUP}"`]: 'json-string',
      '12.5': 'json-number',
      true: 'json-word',
      null: 'json-word',
    };
    const colors = new Set<unknown>();
    for (const scheme of ['light', 'dark'] as const) {
      await showIn(scheme);
      for (const [text, className] of Object.entries(parts)) {
        const part = body.locator(`.${className}`).getByText(text, { exact: true });
        colors.add(
          await part.first().evaluate((shown) => shown.ownerDocument.defaultView?.getComputedStyle(shown).color),
        );
      }
      expect(await accessibilityFindings()).toEqual([]);
      await screenshot('json');
    }
    // The button covers no text.
    const [text, button] = [body, page.getByRole('button', { name: 'Copy event' })];
    const { x, width } = (await text.boundingBox())!;
    expect((await button.boundingBox())!.x).toBeGreaterThanOrEqual(x + width);
    // Names, strings, numbers and words, in each color scheme.
    expect(colors.size).toBe(8);
  });

  it('shows characters that nobody could see, and is copied as it is', async () => {
    const reference = 'u_\u202e1\u200b2';
    const id = await published({ reference });
    const { page } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await body.getByText(String.raw`"u_\u202e1\u200b2"`).waitFor();
    expect(await copyWith(page, 'Copy event')).toContain(reference);
  });

  it('that is very long is shown in part at first, and copied as a whole', async () => {
    const items = Array.from({ length: 3_000 }, (_, i) => `item ${i}`);
    const id = await published({ items });
    const { page, accessibilityFindings } = await signedIn();
    await page.goto(`/events/${id}`);
    const body = page.getByRole('region', { name: 'event', exact: true });
    await page.getByText('These are the first 20,000 of').waitFor();
    expect(String(await body.textContent())).toHaveLength(20_000);
    expect(await accessibilityFindings()).toEqual([]);
    const copied = JSON.parse(await copyWith(page, 'Copy event'));
    expect(copied.data.items).toEqual(items);
    await page.getByRole('button', { name: 'Show all' }).click();
    await body.getByText('"item 2999"').waitFor();
    expect(JSON.parse(String(await body.textContent()))).toEqual(copied);
    // What comes after the first 60,000 characters has no color, because each part would be an element.
    expect(await body.locator('span').count()).toBeLessThan(4_000);
  });
});
