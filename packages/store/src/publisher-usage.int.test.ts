/** What a publisher has stored is counted for a retention. */
import { expect, it } from '@jest/globals';
import { DAY_MS, HOUR_MS } from '@posthorn/core';
import { addPublisherUsage } from './publisher-usage.ts';
import { store } from './test-deliveries.ts';

const nowMs = Date.UTC(2026, 10, 23);
const withRetention = (days: number) => ({ ...store, retentionMs: days * DAY_MS });

it('counts what was stored within the retention', async () => {
  const add = (bytes: number, atMs: number) => addPublisherUsage(withRetention(30), 'one', bytes, atMs);
  expect(await add(5, nowMs)).toBe(5);
  expect(await add(7, nowMs + 29 * DAY_MS)).toBe(12);
  expect(await add(0, nowMs + 31 * DAY_MS)).toBe(7);
});

it('counts what processes have stored whose clocks are up to a day ahead', async () => {
  const week = withRetention(7);
  await addPublisherUsage(week, 'ahead', 5, nowMs + 23 * HOUR_MS);
  expect(await addPublisherUsage(week, 'ahead', 7, nowMs)).toBe(12);
});

it.each([7, 60])('begins again when the retention was 30 days and is %d: no count stays for good', async (days) => {
  const publisher = `changed-${days}`;
  await addPublisherUsage(withRetention(30), publisher, 5, nowMs);
  expect(await addPublisherUsage(withRetention(days), publisher, 7, nowMs)).toBe(7);
});
