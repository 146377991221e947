/** The audit trail, where the clocks of processes differ. */
import { expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { appendAudit, listAudit } from './index.ts';
import { store, time } from './test-deliveries.ts';

it('has the time of each entry, in the order in which they were written, also after a clock that was ahead', async () => {
  const written = [0, 20 * HOUR_MS, 1_000, 21 * HOUR_MS, -20 * HOUR_MS].map((aheadMs, i) => ({
    atMs: time.nowMs + aheadMs,
    operator: `operator ${i}`,
    action: 'session.started' as const,
  }));
  for (const { atMs, ...entry } of written) await appendAudit(store, entry, atMs);
  const { items } = await listAudit(store, {}, { limit: 10 }, time.nowMs);
  expect(items.toReversed()).toMatchObject(written);
  for (const wanted of written) {
    const at = { fromMs: wanted.atMs, toMs: wanted.atMs };
    expect((await listAudit(store, at, { limit: 10 }, time.nowMs)).items).toMatchObject([wanted]);
  }
});
