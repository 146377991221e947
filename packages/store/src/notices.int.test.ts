/** Notices and the audit trail: what a change writes, and who reads it. */
import { describe, expect, it } from '@jest/globals';
import { type Attempt, partitionOf } from '@posthorn/core';
import type { AuditFilter } from './audit.ts';
import {
  addOutageNotice,
  appendAudit,
  changeSubscription,
  droppedNotices,
  endDeliveries,
  listAudit,
  partitionsWithNotices,
  recordFailure,
  removeNotices,
  reportedDropped,
  waitingNotices,
} from './index.ts';
import { deliverTo, failed, run, start } from './replays/test-replays.ts';
import { loadOne, store, subscribe, time } from './test-deliveries.ts';
import { RETENTION } from './test-store.ts';

describe('notices', () => {
  it('are stored with the change that they report, until the notifier removes them', async () => {
    const subscription = await subscribe();
    const { id } = subscription;
    const partition = partitionOf(id, store.partitions);
    const deliveryId = await failed(id);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused', statusReason: 'operator' }));
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active', statusReason: null }));
    const replayId = await start(id);
    await run(replayId);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'refused', statusReason: 'redirect' }));
    const notices = await waitingNotices(store, partition, 10, {});
    expect(notices).toMatchObject([
      { type: 'delivery.failed', subscriptionId: id, deliveryId, reason: 'timeout', atMs: time.nowMs },
      { type: 'subscription.paused', subscriptionId: id, deliveryId: null, reason: 'operator' },
      { type: 'replay.done', subscriptionId: id, replayId, reason: null },
      { type: 'subscription.refused', subscriptionId: id, reason: 'redirect' },
    ]);
    expect(new Set(notices.map((notice) => notice.id)).size).toBe(4);
    expect(await waitingNotices(store, partition, 10, { after: notices[2]!.entryId })).toHaveLength(1);
    await removeNotices(
      store,
      partition,
      notices.slice(0, 3).map(({ entryId }) => entryId),
    );
    expect(await waitingNotices(store, partition, 10, {})).toMatchObject([{ type: 'subscription.refused' }]);
  });
  it('of deliveries that expire at once are one for each address, with their number', async () => {
    const one = await subscribe({ status: 'paused' });
    const partition = partitionOf(one.id, store.partitions);
    let other = await subscribe({ status: 'paused' });
    while (partitionOf(other.id, store.partitions) !== partition) other = await subscribe({ status: 'paused' });
    const ids = [];
    for (const { id } of [one, other, one, one]) ids.push(await deliverTo(id));
    const deliveries = await Promise.all(ids.map(loadOne));
    const expire = () =>
      endDeliveries(store, { partition, deliveries, reason: 'expired', nowMs: time.nowMs, onlyHeld: true });
    const notices = async () =>
      (await waitingNotices(store, partition, 100, {})).filter(({ type }) => type === 'delivery.failed');
    await expire();
    expect(await notices()).toMatchObject([
      { subscriptionId: one.id, deliveryId: ids[0], deliveries: 3, reason: 'expired' },
      { subscriptionId: other.id, deliveryId: ids[1], deliveries: 1, reason: 'expired' },
    ]);
    const statuses = (await Promise.all(ids.map(loadOne))).map(({ status }) => status);
    expect(statuses).toEqual(['failed', 'failed', 'failed', 'failed']);
    await expire();
    expect(await notices()).toHaveLength(2);
  });
  it('beyond about 100,000 are dropped, oldest first, and counted', async () => {
    const { id } = await subscribe();
    const partition = partitionOf(id, store.partitions);
    const key = `${store.prefix}:{${partition}}:notices`;
    const fill = "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], i .. '-1', 'k', 'outage.ended') end";
    await store.redis.eval(fill, 1, key, 100_499);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused', statusReason: 'operator' }));
    const left = await store.redis.xlen(key);
    expect([left >= 100_000, left < 100_200]).toEqual([true, true]);
    expect(await droppedNotices(store, partition)).toBe(100_500 - left);
    const [oldest] = await waitingNotices(store, partition, 1, {});
    expect(oldest!.entryId).toBe(`${100_500 - left + 1}-1`);
    const [newest] = await store.redis.xrevrange(key, '+', '-', 'COUNT', 1);
    expect(newest![1]).toContain('subscription.paused');
    await reportedDropped(store, partition, 100_500 - left);
    expect(await droppedNotices(store, partition)).toBe(0);
  });
  it('are looked for where there are some, not where all were removed', async () => {
    let { id } = await subscribe();
    while (partitionOf(id, store.partitions) === 0) ({ id } = await subscribe());
    const other = partitionOf(id, store.partitions);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused', statusReason: 'operator' }));
    const outage = {
      id: 'o',
      type: 'outage.started',
      atMs: time.nowMs,
      reason: 'dns',
      worker: 'w',
      sinceMs: 0,
    } as const;
    await addOutageNotice(store, outage);
    expect(await partitionsWithNotices(store)).toEqual(new Set([0, other]));
    const [notice] = await waitingNotices(store, 0, 10, {});
    await removeNotices(store, 0, [notice!.entryId]);
    expect(await partitionsWithNotices(store)).toEqual(new Set([other]));
  });
  it('report a pause after consecutive failures, which the audit trail has without an operator', async () => {
    const { id } = await subscribe();
    for (let i = 0; i < 3; i++) {
      const delivery = await loadOne(await deliverTo(id));
      const attempt: Attempt = { number: 1, startedAtMs: time.nowMs, durationMs: 0, statusCode: 500, error: 'status' };
      const verdict = { kind: 'failed', reason: 'status' } as const;
      await recordFailure(store, { delivery, attempt, verdict, limits: { pauseAfter: 2, maxAttempts: 1 } });
    }
    const notices = await waitingNotices(store, partitionOf(id, store.partitions), 10, {});
    expect(notices.filter(({ type }) => type === 'subscription.paused')).toMatchObject([
      { reason: 'consecutive_failures' },
    ]);
    const { items } = await listAudit(store, { subscriptionId: id }, { limit: 10 }, time.nowMs);
    expect(items).toMatchObject([
      { action: 'subscription.paused', operator: null, detail: { reason: 'consecutive_failures' } },
    ]);
  });
});

describe('audit trail', () => {
  it('is one list over all partitions, newest first, with pages and filters, kept for the retention', async () => {
    for (let i = 0; i < 25; i++) {
      const { id } = await subscribe();
      const audit = { operator: i % 2 === 0 ? 'anna' : 'bert', action: 'subscription.updated' } as const;
      await changeSubscription(
        store,
        id,
        (now) => ({ ...now, description: `${i}`, updatedAtMs: time.nowMs }),
        () => ({
          ...audit,
          detail: { i },
        }),
      );
      // Some share a millisecond.
      if (i % 3 === 0) time.nowMs += 1;
    }
    await appendAudit(store, { operator: 'anna', action: 'session.started' }, time.nowMs);
    const seen: unknown[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await listAudit(store, {}, { limit: 7, cursor }, time.nowMs);
      seen.push(...page.items);
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toHaveLength(26);
    expect(new Set(seen.map((entry) => (entry as { id: string }).id)).size).toBe(26);
    const times = seen.map((entry) => (entry as { atMs: number }).atMs);
    expect(times).toEqual([...times].sort((a, b) => b - a));
    const filtered = async (filter: object) => (await listAudit(store, filter, { limit: 50 }, time.nowMs)).items.length;
    expect(await filtered({ operator: 'bert' })).toBe(12);
    expect(await filtered({ action: 'session.started' })).toBe(1);
    expect(await filtered({ fromMs: time.nowMs, toMs: time.nowMs })).toBe(1);
    time.nowMs += RETENTION + 1;
    expect(await filtered({})).toBe(0);
  });

  it('is filtered by what an entry is about and by who acted', async () => {
    const one = await subscribe();
    const by = { operator: 'anna', subscriptionId: one.id };
    const [failed, made] = [`dlv_${'a'.repeat(22)}`, `dlv_${'b'.repeat(22)}`];
    const detail = { new_delivery_id: made };
    await appendAudit(store, { ...by, action: 'delivery.replayed', deliveryId: failed, detail }, time.nowMs);
    await appendAudit(store, { ...by, action: 'replay.started', replayId: 'rpl_x' }, time.nowMs);
    await appendAudit(store, { ...by, operator: null, action: 'subscription.paused' }, time.nowMs);
    const actions = async (filter: AuditFilter) =>
      (await listAudit(store, filter, { limit: 50 }, time.nowMs)).items.map(({ action }) => action);
    expect(await actions({ target: failed })).toEqual(['delivery.replayed']);
    expect(await actions({ target: made })).toEqual(['delivery.replayed']);
    const erasure = { erasure_id: 'ers_x' };
    await appendAudit(store, { operator: 'anna', action: 'erasure.done', detail: erasure }, time.nowMs);
    expect(await actions({ target: 'ers_x' })).toEqual(['erasure.done']);
    expect(await actions({ target: 'rpl_x' })).toEqual(['replay.started']);
    expect(await actions({ target: one.id })).toHaveLength(3);
    expect(await actions({ target: one.id, actor: 'posthorn' })).toEqual(['subscription.paused']);
    expect(await actions({ target: one.id, actor: 'operator' })).toHaveLength(2);
    expect(await actions({ actor: 'posthorn', operator: 'anna' })).toEqual([]);
  });

  it('is read in bounded parts by a filter that matches hardly anything, and its pages miss and repeat nothing', async () => {
    const wanted = new Set<string>();
    for (let i = 0; i < 12_000; i++) {
      if (i % 10 === 0) time.nowMs += 1;
      const operator = i % 4_000 === 17 ? 'rare' : 'anna';
      const entry = { operator, action: 'session.started', detail: { i } } as const;
      // Nobody waits for each one: the last one comes after all others.
      const written = appendAudit(store, entry, time.nowMs);
      if (i % 500 === 499 || operator === 'rare') await written;
      if (operator === 'rare') wanted.add(`${i}`);
    }
    let commands = 0;
    const xrevrange = (...args: Parameters<typeof store.redis.xrevrange>) => {
      commands += 1;
      return store.redis.xrevrange(...args);
    };
    const redis = new Proxy(store.redis, {
      get: (target, name) => (name === 'xrevrange' ? xrevrange : Reflect.get(target, name)),
    });
    const found: string[] = [];
    let calls = 0;
    for (let cursor: string | undefined; ; ) {
      commands = 0;
      const page = await listAudit({ ...store, redis }, { operator: 'rare' }, { limit: 1, cursor }, time.nowMs);
      // Each call looks at about 5,000 entries, in parts of up to 500.
      expect(commands).toBeGreaterThan(0);
      expect(commands).toBeLessThan(25 * store.partitions);
      calls += 1;
      found.push(...page.items.map(({ detail }) => `${detail?.i}`));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(found.sort()).toEqual([...wanted].sort());
    expect(calls).toBeLessThanOrEqual(wanted.size + 3);
  });
});
