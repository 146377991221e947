/** Lists of deliveries and subscriptions, page by page. */
import { describe, expect, it } from '@jest/globals';
import { listDeliveries, listSubscriptions, loadDeliveries } from './index.ts';
import { attempt, deliver, failure, store, subscribe, time } from './test-deliveries.ts';

describe('lists', () => {
  it('return everything once, newest first, page by page, whatever the filter', async () => {
    const [a, b] = [await subscribe(), await subscribe()];
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      if (i % 3 !== 0) time.nowMs += 1;
      const made = await deliver([i % 2 ? a.id : b.id]);
      ids.push(made[0]!.deliveryId);
      if (i % 5 === 0) await attempt(made[0]!.deliveryId, 1, failure, 1_000);
      if (i % 5 === 1) await attempt(made[0]!.deliveryId, 1, { kind: 'succeeded' });
    }
    const all = (await loadDeliveries(store, ids)).map((delivery) => delivery!);
    const newest = (list: typeof all) =>
      list.sort((x, y) => y.createdAtMs - x.createdAtMs || (x.id < y.id ? 1 : -1)).map(({ id }) => id);
    const pages = async (filter: Parameters<typeof listDeliveries>[1]) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listDeliveries(store, filter, { limit: 4, cursor });
        expect(page.items.length).toBeLessThanOrEqual(4);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return found;
    };
    expect(await pages({})).toEqual(newest(all));
    for (const status of ['pending', 'succeeded', 'failed', 'held'] as const) {
      expect(await pages({ status })).toEqual(newest(all.filter((delivery) => delivery.status === status)));
    }
    const ofA = all.filter(({ subscriptionId }) => subscriptionId === a.id);
    expect((await pages({ subscriptionId: a.id })).sort()).toEqual(ofA.map(({ id }) => id).sort());
    const failedOfA = ofA.filter(({ status }) => status === 'failed');
    expect(await pages({ subscriptionId: a.id, status: 'failed' })).toEqual(newest(failedOfA));
    const [fromMs, toMs] = [all[8]!.createdAtMs, all[3]!.createdAtMs];
    const between = all.filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs);
    expect(await pages({ fromMs, toMs })).toEqual(newest(between));
    expect(await pages({ eventId: all[0]!.eventId })).toEqual([all[0]!.id]);
    expect(await pages({ eventId: 'evt_none' })).toEqual([]);
  });
  it('filter subscriptions by status and environment', async () => {
    const sandbox = await subscribe({ environment: 'sandbox' });
    const paused = await subscribe({ status: 'paused' });
    const idsOf = async (filter: Parameters<typeof listSubscriptions>[1]) =>
      (await listSubscriptions(store, filter, { limit: 10 })).items.map(({ id }) => id).sort();
    expect(await idsOf({})).toEqual([sandbox.id, paused.id].sort());
    expect(await idsOf({ status: 'paused' })).toEqual([paused.id]);
    expect(await idsOf({ environment: 'sandbox' })).toEqual([sandbox.id]);
  });
});
