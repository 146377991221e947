/** Lists of deliveries and subscriptions, page by page. */
import { describe, expect, it, jest } from '@jest/globals';
import { DAY_MS, type Verdict } from '@posthorn/core';
import {
  countStored,
  deleteSubscription,
  listAudit,
  listDeliveries,
  listSubscriptions,
  loadDeliveries,
  pruneFinished,
  pruneSucceeded,
  replayDelivery,
} from '../index.ts';
import {
  byStatusKey,
  bySubscriptionKey,
  deliveryKey,
  prefixOfId,
  prefixOfSubscription,
  succeededKey,
} from '../keys.ts';
import { recordVerdict } from '../test-attempts.ts';
import { attempt, deliver, event, failure, loadOne, store, subscribe, time } from '../test-deliveries.ts';

const keyOf = (id: string) => deliveryKey(prefixOfId(store, id), id);

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
  it('of one failure reason look at failed deliveries only', async () => {
    const { id } = await subscribe();
    const ids: string[] = [];
    const verdicts: Verdict[] = [
      failure,
      { kind: 'failed', reason: 'dns' },
      { kind: 'succeeded' },
      { kind: 'retry', nextAttemptAtMs: time.nowMs + 1 },
    ];
    for (const verdict of [...verdicts, ...verdicts]) {
      time.nowMs += 1;
      const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
      await attempt(deliveryId, 1, verdict);
      ids.unshift(deliveryId);
    }
    const hgetall = jest.spyOn(store.redis, 'hgetall');
    for (const filter of [{}, { subscriptionId: id }, { status: 'failed' as const }]) {
      hgetall.mockClear();
      const page = await listDeliveries(store, { ...filter, failureReason: 'timeout' }, { limit: 5 });
      expect(page).toMatchObject({ items: [{ id: ids[3] }, { id: ids[7] }], nextCursor: null });
      expect(hgetall.mock.calls.filter(([key]) => ids.some((one) => key === keyOf(one)))).toHaveLength(4);
    }
    hgetall.mockRestore();
  });
  it('read each entry of what has succeeded once, however many were made at the same time', async () => {
    const { id } = await subscribe();
    const made = 200;
    for (let i = 0; i < made; i++) {
      const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
      await attempt(deliveryId, 1, { kind: 'succeeded' });
    }
    const xrevrange = jest.spyOn(store.redis, 'xrevrange');
    const page = await listDeliveries(store, { eventType: 'webhook.test' }, { limit: 5 });
    const read = await Promise.all(xrevrange.mock.results.map(({ value }) => value as Promise<unknown[]>));
    xrevrange.mockRestore();
    expect(page).toEqual({ items: [], nextCursor: null, unreadable: [] });
    expect(read.reduce((sum, entries) => sum + entries.length, 0)).toBe(made);
  });
  it('ask no stream for what is older than its first entry, since Redis would look at all of it', async () => {
    const { id } = await subscribe();
    const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
    await attempt(deliveryId, 1, { kind: 'succeeded' });
    await deleteSubscription(store, (await subscribe()).id, time.nowMs, { operator: 'anna' });
    const xrevrange = jest.spyOn(store.redis, 'xrevrange');
    const toMs = time.nowMs - DAY_MS;
    const page = { limit: 5 };
    expect((await listDeliveries(store, { subscriptionId: id }, page, time.nowMs)).items).toHaveLength(1);
    expect((await listAudit(store, {}, page, time.nowMs)).items).toHaveLength(1);
    for (const filter of [{ toMs }, { toMs, subscriptionId: id }])
      expect((await listDeliveries(store, filter, page, time.nowMs)).items).toEqual([]);
    expect((await listAudit(store, { toMs }, page, time.nowMs)).items).toEqual([]);
    const calls = xrevrange.mock.calls.map(([key, start]) => ({ key, start: String(start) }));
    xrevrange.mockRestore();
    expect(calls).not.toEqual([]);
    for (const { key, start } of calls) {
      const [oldest] = await store.redis.xrange(key, '-', '+', 'COUNT', 1);
      if (oldest && start !== '+')
        expect(Number.parseInt(start, 10)).toBeGreaterThanOrEqual(Number.parseInt(oldest[0], 10));
    }
  });
  it('of an address contain each delivery once that outlives its entry in the stream of the address', async () => {
    const [a, b] = [await subscribe(), await subscribe()];
    const startMs = time.nowMs - 20 * DAY_MS;
    const verdicts: (Verdict | undefined)[] = [
      undefined,
      failure,
      { kind: 'succeeded' },
      { kind: 'retry', nextAttemptAtMs: startMs + 15 * DAY_MS },
    ];
    const made: { id: string; createdAtMs: number }[] = [];
    for (let i = 0; i < 40; i++) {
      // Several have the same time, also where the stream is cut.
      time.nowMs = startMs + Math.floor(i / 6) * DAY_MS;
      const [{ deliveryId } = { deliveryId: '' }] = await deliver([a.id]);
      await deliver([b.id]);
      made.push({ id: deliveryId, createdAtMs: time.nowMs });
    }
    // All attempts are late: whatever succeeds is still kept.
    time.nowMs = startMs + 15 * DAY_MS;
    for (const [i, { id }] of made.entries()) {
      const verdict = verdicts[i % verdicts.length];
      if (verdict) await attempt(id, 1, verdict, 1_000);
    }
    const cutMs = startMs + 3 * DAY_MS;
    const stream = bySubscriptionKey(prefixOfSubscription(store, a.id), a.id);
    const expected = made.toSorted((x, y) => y.createdAtMs - x.createdAtMs).map(({ id }) => id);
    const pages = async (limit: number, filter: Parameters<typeof listDeliveries>[1] = {}) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listDeliveries(store, { subscriptionId: a.id, ...filter }, { limit, cursor }, time.nowMs);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return found;
    };
    const before = await pages(7);
    expect(before.toSorted()).toEqual(expected.toSorted());
    // The stream is trimmed node by node, and so in the middle of a millisecond.
    const entries = await store.redis.xrange(stream, '-', '+');
    const cut = entries.findIndex(([id]) => id.startsWith(`${cutMs}-`)) + 3;
    await store.redis.xtrim(stream, 'MINID', entries[cut]![0]);
    for (const limit of [1, 3, 7, 100]) {
      const found = await pages(limit);
      expect(found.toSorted()).toEqual(expected.toSorted());
      const times = found.map((id) => made.find((one) => one.id === id)!.createdAtMs);
      expect(times).toEqual(times.toSorted((x, y) => y - x));
    }
    const [fromMs, toMs] = [startMs + DAY_MS, startMs + 4 * DAY_MS];
    const between = made.filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs).map(({ id }) => id);
    expect((await pages(4, { fromMs, toMs })).toSorted()).toEqual(between.toSorted());
    await store.redis.del(stream);
    expect((await pages(7)).toSorted()).toEqual(expected.toSorted());
  });
  it('of an address read its stream in parts, however many entries are about as old as its first one', async () => {
    const { id } = await subscribe();
    const stream = bySubscriptionKey(prefixOfSubscription(store, id), id);
    const pipeline = store.redis.pipeline();
    for (let i = 0; i < 2_100; i++) pipeline.xadd(stream, `${time.nowMs + i}-1`, 'd', `gone${i}`);
    await pipeline.exec();
    // Its entry is behind them, although it is as old as the first one.
    const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
    await attempt(deliveryId, 1, failure);
    const xrange = jest.spyOn(store.redis, 'xrange');
    const page = await listDeliveries(store, { subscriptionId: id }, { limit: 5 }, time.nowMs + 9 * DAY_MS);
    const read = await Promise.all(xrange.mock.results.map(({ value }) => value as Promise<unknown[]>));
    xrange.mockRestore();
    expect(page).toMatchObject({ items: [{ id: deliveryId }], nextCursor: null });
    expect(read.map((entries) => entries.length).filter((length) => length > 1)).toEqual([2_000, 101]);
  });
  it('contain the succeeded in the order of creation, whenever and in whichever format they succeeded', async () => {
    const [a, b] = [await subscribe(), await subscribe()];
    const made: { id: string; createdAtMs: number }[] = [];
    for (let i = 0; i < 150; i++) {
      if (i % 3 === 0) time.nowMs += i % 50 === 0 ? 1_500 : 7;
      const [one] = await deliver([i % 2 ? a.id : b.id]);
      made.push({ id: one!.deliveryId, createdAtMs: time.nowMs });
    }
    // In another order: most a little later than others that were made after them, some much later.
    const order = made.map((one, i) => ({ ...one, at: i + ((i * 7_919) % 31) + (i % 17 === 0 ? 300 : 0) }));
    for (const [i, { id }] of order.toSorted((x, y) => x.at - y.at).entries()) {
      const format = { current: () => (i % 11 === 0 ? 1 : 2), confirm: () => undefined, doubt: () => undefined };
      const delivery = await loadOne(id);
      const attempt = { number: 1, startedAtMs: time.nowMs, durationMs: 10, statusCode: 200, error: null };
      const limits = { pauseAfter: 20, maxAttempts: 6 };
      await recordVerdict({ ...store, format }, { delivery, attempt, verdict: { kind: 'succeeded' }, limits });
    }
    const sizes = await Promise.all(
      [a, b].map(async ({ id }) => {
        const prefix = prefixOfSubscription(store, id);
        return [
          await store.redis.xlen(succeededKey(prefix)),
          await store.redis.zcard(byStatusKey(prefix, 'succeeded')),
        ];
      }),
    );
    for (const [inStream = 0, inSet = 0] of sizes) expect([inStream > 30, inSet > 5]).toEqual([true, true]);
    const newest = made.toSorted((x, y) => y.createdAtMs - x.createdAtMs || (x.id < y.id ? 1 : -1)).map(({ id }) => id);
    const pages = async (filter: Parameters<typeof listDeliveries>[1], limit: number) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listDeliveries(store, filter, { limit, cursor });
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return found;
    };
    for (const limit of [7, 200]) {
      expect(await pages({ status: 'succeeded' }, limit)).toEqual(newest);
      expect(await pages({}, limit)).toEqual(newest);
    }
    const ofA = new Set(made.filter((_, i) => i % 2).map(({ id }) => id));
    expect(await pages({ subscriptionId: a.id, status: 'succeeded' }, 9)).toEqual(newest.filter((id) => ofA.has(id)));
    const [fromMs, toMs] = [made[40]!.createdAtMs, made[110]!.createdAtMs];
    const between = new Set(
      made.filter((one) => one.createdAtMs >= fromMs && one.createdAtMs <= toMs).map(({ id }) => id),
    );
    expect(await pages({ status: 'succeeded', fromMs, toMs }, 9)).toEqual(newest.filter((id) => between.has(id)));
    expect((await countStored(store, time.nowMs)).deliveries.succeeded).toBe(150);
    // What expires is pruned, the rest stays.
    const kept = newest.filter((_, i) => i % 4 !== 0);
    const gone = newest.filter((_, i) => i % 4 === 0);
    await Promise.all(gone.map((id) => store.redis.del(deliveryKey(prefixOfId(store, id), id))));
    for (const partition of [0, 1, 2, 3]) {
      const range = { beforeMs: time.nowMs, maxChunks: 10, maxKept: 1_000 };
      await pruneFinished(store, partition, 'succeeded', range);
      expect(await pruneSucceeded(store, partition, range)).toBeUndefined();
    }
    expect((await countStored(store, time.nowMs)).deliveries.succeeded).toBe(kept.length);
    expect(await pages({ status: 'succeeded' }, 70)).toEqual(kept);
  });
  it('of an event contain its replays, and do not ask about each subscription that it was not replayed to', async () => {
    const ids = (await Promise.all(Array.from({ length: 600 }, () => subscribe()))).map(({ id }) => id);
    const [sent, other] = [event(), event()];
    const made = await deliver(ids, sent);
    await deliver(ids, other);
    const asked = jest.spyOn(store.redis, 'zrange');
    const pages = async (filter: Parameters<typeof listDeliveries>[1]) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listDeliveries(store, filter, { limit: 250, cursor });
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return found;
    };
    const { id: eventId } = sent;
    expect((await pages({ eventId })).sort()).toEqual(made.map(({ deliveryId }) => deliveryId).sort());
    expect(await pages({ eventId, status: 'failed' })).toEqual([]);
    expect(asked).not.toHaveBeenCalled();
    const [{ deliveryId, subscriptionId } = { deliveryId: '', subscriptionId: '' }] = made;
    await attempt(deliveryId, 1, failure);
    const failedOne = await loadOne(deliveryId);
    time.nowMs += 1;
    const replay = await replayDelivery(store, failedOne, time.nowMs, 'anna', 'nonce');
    const replayId = 'deliveryId' in replay ? replay.deliveryId : '';
    expect((await pages({ eventId })).slice(0, 1)).toEqual([replayId]);
    asked.mockClear();
    expect(await pages({ eventId, subscriptionId })).toEqual([replayId, deliveryId]);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(await pages({ eventId, subscriptionId, environment: 'production' })).toEqual([]);
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
