/** What stays in Redis, and for how long. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, type Event, eventRef, HOUR_MS, partitionOf } from '@posthorn/core';
import {
  type CreatedDelivery,
  changeSubscription,
  endDeliveries,
  heldBefore,
  laneLength,
  partitionPrefix,
  pruneFinished,
  shortenEvents,
  storeEvent,
} from '../index.ts';
import {
  attempt,
  begin,
  deliver,
  event,
  failure,
  loadOne,
  park,
  release,
  store,
  subscribe,
  time,
} from '../test-deliveries.ts';
import { sendTwice } from '../test-send-twice.ts';
import { RETENTION, RETENTION_SUCCEEDED } from '../test-store.ts';
import { keepEvent } from './events.ts';

describe('retention', () => {
  const expiryOf = async (key: string) => await store.redis.pexpiretime(key);
  const deliveryKey = (subscriptionId: string, id: string) =>
    `${partitionPrefix(store, partitionOf(subscriptionId, store.partitions))}:delivery:${id}`;
  const eventKey = (sent: Event) =>
    `${partitionPrefix(store, partitionOf(sent.id, store.partitions))}:event:${eventRef(sent)}`;

  it('keeps a failed delivery and its event for a day longer than it can be replayed', async () => {
    const subscription = await subscribe();
    const sent = event();
    const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
    time.nowMs += 14 * HOUR_MS;
    await attempt(deliveryId, 1, failure);
    // A day longer than it can be replayed, so that one who comes too late is told so.
    const until = time.nowMs + 10 + RETENTION + DAY_MS;
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(until);
    expect(await expiryOf(eventKey(sent))).toBe(until);
  });
  it('gives an unfinished delivery no expiry, and its event a day more than the retention', async () => {
    const subscription = await subscribe();
    const sent = event();
    const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(-1);
    expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it('keeps a succeeded delivery for RETENTION_SUCCEEDED: from its creation if it succeeded within a minute, otherwise from then', async () => {
    const subscription = await subscribe();
    const [prompt] = await deliver([subscription.id]);
    const [late] = await deliver([subscription.id]);
    const createdAtMs = time.nowMs;
    time.nowMs += 59_000;
    await attempt(prompt!.deliveryId, 1, { kind: 'succeeded' });
    time.nowMs += HOUR_MS;
    await attempt(late!.deliveryId, 1, { kind: 'succeeded' });
    const untilOf = (made: CreatedDelivery) => expiryOf(deliveryKey(subscription.id, made.deliveryId));
    expect(await untilOf(prompt!)).toBe(createdAtMs + RETENTION_SUCCEEDED);
    expect(await untilOf(late!)).toBe(time.nowMs + 10 + RETENTION_SUCCEEDED);
  });
  it('keeps the event of a delivery that succeeded after weeks as long as the delivery', async () => {
    const subscription = await subscribe({ status: 'paused' });
    const sent = event();
    const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
    time.nowMs += 29 * DAY_MS;
    await attempt(deliveryId, 1, { kind: 'succeeded' });
    const untilMs = time.nowMs + 10 + RETENTION_SUCCEEDED;
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(untilMs);
    // It is stored for a day longer than the retention.
    expect(await expiryOf(eventKey(sent))).toBe(Math.max(untilMs, time.nowMs + 2 * DAY_MS));
  });
  it('keeps an event that matched nobody for RETENTION_SUCCEEDED', async () => {
    const sent = event();
    await storeEvent(store, { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: [] });
    expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION_SUCCEEDED);
  });
  it('never shortens the life of an event that is to be kept', async () => {
    const sent = event();
    await storeEvent(store, { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: ['sub_a'] });
    await keepEvent(store, eventRef(sent), time.nowMs + 1_000);
    expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it('fails held deliveries older than the retention as expired, and they can still be replayed', async () => {
    const subscription = await subscribe({ status: 'paused' });
    const sent = event();
    const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
    const partition = partitionOf(subscription.id, store.partitions);
    expect(await heldBefore(store, partition, time.nowMs - 1, 10)).toMatchObject({ deliveries: [] });
    const { deliveries } = await heldBefore(store, partition, time.nowMs, 10);
    time.nowMs += RETENTION;
    await endDeliveries(store, { partition, deliveries, reason: 'expired', nowMs: time.nowMs, onlyHeld: true });
    expect(await loadOne(deliveryId)).toMatchObject({
      status: 'failed',
      failureReason: 'expired',
      finishedAtMs: time.nowMs,
    });
    expect(await laneLength(store, 'held', subscription.id)).toBe(0);
    expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it.each(['as it is made', 'as its attempt is due', 'as it is released'])(
    'keeps the event of a delivery that is held %s for longer than it is held: it can be replayed then',
    async (when) => {
      const subscription = await subscribe({ status: when === 'as it is made' ? 'paused' : 'active' });
      const sent = event();
      const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
      const job = { deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(sent) };
      if (when === 'as it is released') await park(job);
      await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
      if (when === 'as its attempt is due') await begin(job);
      if (when === 'as it is released') await release('parked', subscription.id, 1);
      expect(await loadOne(deliveryId)).toMatchObject({ status: 'held' });
      expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION + DAY_MS);
    },
  );
  it('keeps the event of a delivery that is held as it is released also if that reply is lost', async () => {
    const subscription = await subscribe();
    const sent = event();
    const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
    await park({ deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(sent) });
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    sendTwice(store, 'release');
    await release('parked', subscription.id, 1);
    expect(await loadOne(deliveryId)).toMatchObject({ status: 'held' });
    // A held delivery ends after the retention, and can be replayed then.
    expect(await expiryOf(eventKey(sent))).toBeGreaterThan(time.nowMs + RETENTION);
  });
  it.each(['is held', 'fails'])(
    'keeps an event that was shortened for a success which a failover has lost, if the delivery %s then',
    async (what) => {
      const subscription = await subscribe();
      const sent = event();
      const [{ deliveryId }] = (await deliver([subscription.id], sent)) as [CreatedDelivery];
      const job = { deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(sent) };
      await shortenEvents(
        store,
        partitionOf(sent.id, store.partitions),
        [{ event: job.event, count: 1, position: 0 }],
        time.nowMs,
      );
      expect(await expiryOf(eventKey(sent))).toBe(time.nowMs + RETENTION_SUCCEEDED);
      if (what === 'fails') await attempt(deliveryId, 1, failure);
      else await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
      if (what === 'is held') await begin(job);
      expect(await loadOne(deliveryId)).toMatchObject({ status: what === 'fails' ? 'failed' : 'held' });
      expect(await expiryOf(eventKey(sent))).toBeGreaterThanOrEqual(time.nowMs + RETENTION + DAY_MS);
    },
  );
  it('prunes index entries whose delivery has expired, and keeps the others', async () => {
    const subscription = await subscribe();
    const [gone] = await deliver([subscription.id]);
    const [kept] = await deliver([subscription.id]);
    for (const { deliveryId } of [gone!, kept!]) await attempt(deliveryId, 1, failure);
    await store.redis.del(deliveryKey(subscription.id, gone!.deliveryId));
    const partition = partitionOf(subscription.id, store.partitions);
    await pruneFinished(store, partition, 'failed', { beforeMs: time.nowMs, maxChunks: 1, maxKept: 1 });
    const key = `${partitionPrefix(store, partition)}:by_status:failed`;
    expect(await store.redis.zrange(key, '0', '-1')).toEqual([kept!.deliveryId]);
  });
});
