/** That events stored in one turn of the event loop share a script, and nothing else. */
import { describe, expect, it } from '@jest/globals';
import { type Event, eventRef, newEventId, partitionOf } from '@posthorn/core';
import type { Redis } from 'ioredis';
import { deleteSubscription, laneLength, storeEvent } from '../index.ts';
import { eventKey, laneIndexKey, laneKey, prefixOfSubscription, topicsVersionKey } from '../keys.ts';
import { event, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { loadEvent, prefixOfEvent } from './events.ts';

const storedOf = (sent: Event, subscriptionIds: readonly string[]) => ({
  ref: eventRef(sent),
  event: sent,
  acceptedAtMs: time.nowMs,
  subscriptionIds,
});
const send = (sent: Event, subscriptionIds: readonly string[]) =>
  storeEvent(store, storedOf(sent, subscriptionIds), { withDeliveries: true });

/** Counts the scripts that are sent from now on. */
function countScripts(): () => number {
  let count = 0;
  const redis = store.redis as Redis;
  const { sendCommand } = redis;
  redis.sendCommand = (command, ...more) => {
    if (command.name.startsWith('eval')) count += 1;
    return sendCommand.call(redis, command, ...more);
  };
  return () => count;
}

/** A subscription and an event in this partition. */
async function inPartition(partition: number): Promise<{ id: string; sent: Event }> {
  const found = async () => {
    for (;;) {
      const { id } = await subscribe();
      if (partitionOf(id, store.partitions) === partition) return id;
    }
  };
  const id = await found();
  for (;;) {
    const sent = event({ id: newEventId(time.nowMs) });
    if (partitionOf(sent.id, store.partitions) === partition) return { id, sent };
  }
}

describe('events of one turn', () => {
  it('are stored by four scripts for 3 and then one for 16, of all partitions together, each with its own deliveries', async () => {
    const subscriptions = await Promise.all(Array.from({ length: 4 }, () => subscribe()));
    const events = Array.from({ length: 33 }, (_, i) => event({ dataJson: `{"id":"s${i}"}` }));
    const idsOf = (i: number) => subscriptions.slice(0, i % 5).map(({ id }) => id);
    const scripts = countScripts();
    const results = await Promise.all(events.map((sent, i) => send(sent, idsOf(i))));
    // 3, 3, 3 and 3 at once, since none was in flight; then 16, and at the end of the turn 5.
    expect(scripts()).toBe(6);
    for (const [i, sent] of events.entries()) {
      const result = results[i];
      const made = result && 'created' in result ? result.created : [];
      expect(made.map(({ subscriptionId, state }) => [subscriptionId, state])).toEqual(
        idsOf(i).map((id) => [id, 'pending']),
      );
      expect(await loadEvent(store, eventRef(sent))).toMatchObject({ event: sent, subscriptionIds: idsOf(i) });
      for (const { deliveryId, subscriptionId } of made) {
        expect(await loadOne(deliveryId)).toMatchObject({ eventId: sent.id, subscriptionId, status: 'pending' });
      }
    }
  });
  it('are stored by a script for 100 deliveries', async () => {
    const ids = (await Promise.all(Array.from({ length: 40 }, () => subscribe()))).map(({ id }) => id);
    const scripts = countScripts();
    const results = await Promise.all([event(), event(), event()].map((sent) => send(sent, ids)));
    expect(scripts()).toBe(2);
    for (const result of results) expect('created' in result && result.created).toHaveLength(40);
  });
  it('do not fail with one of them that cannot be stored', async () => {
    const { id } = await subscribe();
    const events = Array.from({ length: 5 }, () => event());
    const broken = eventRef(events[2] ?? event());
    await store.redis.rpush(eventKey(prefixOfEvent(store, broken), broken), 'no event');
    const results = await Promise.allSettled(events.map((sent) => send(sent, [id])));
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(results[2]).toMatchObject({ reason: { message: expect.stringMatching(/^WRONGTYPE /) } });
    // The first two were stored by the script that failed at the third, and are found by their own.
    expect(results.map((result) => 'value' in result && Object.keys(result.value)[0])).toEqual([
      'kept',
      'kept',
      false,
      'created',
      'created',
    ]);
    for (const [i, sent] of events.entries()) {
      if (i !== 2) expect(await loadEvent(store, eventRef(sent))).toMatchObject({ event: sent, subscriptionIds: [id] });
    }
  });
  it('are one event if they have one id, and conflict with nobody else', async () => {
    const { id } = await subscribe();
    const [first, other] = [event({ id: 'order-1' }), event({ id: 'order-1', environment: 'production' })];
    const results = await Promise.all([send(first, [id]), send({ ...first, dataJson: '{}' }, [id]), send(other, [id])]);
    expect(results).toMatchObject([
      { created: [{ state: 'pending' }] },
      { kept: { event: first } },
      { created: [{ state: 'pending' }] },
    ]);
  });
  it('are outdated each for itself', async () => {
    const [{ id, sent }, other] = [await inPartition(0), await inPartition(1)];
    const version = (await store.redis.get(topicsVersionKey(prefixOfSubscription(store, id)))) ?? '0';
    const matched = (subscriptionIds: string[], versions: string[]) => ({
      withDeliveries: true,
      match: { subscriptionIds, versions },
    });
    const results = await Promise.all([
      storeEvent(store, storedOf(sent, [id]), matched([id], ['old', '0', '0', '0'])),
      storeEvent(store, storedOf(sent, [id]), matched([id], [version, 'old', '0', '0'])),
      storeEvent(store, storedOf(other.sent, [other.id]), matched([other.id], ['old', '0', '0', '0'])),
      send(event(), [id, other.id]),
    ]);
    expect([results[0], results[2]]).toEqual(['outdated', 'outdated']);
    expect(results[1]).toMatchObject({ created: [{ state: 'pending' }] });
    expect(results[3]).toMatchObject({ created: [{ state: 'pending' }, { state: 'pending' }] });
    expect(await loadEvent(store, eventRef(other.sent))).toBeUndefined();
  });
  it('find the address as the one before has left it', async () => {
    const [full, paused, gone] = [await subscribe(), await subscribe({ status: 'paused' }), await subscribe()];
    await deleteSubscription(store, gone.id, time.nowMs, { operator: 'anna' });
    const prefix = prefixOfSubscription(store, full.id);
    await store.redis.sadd(laneIndexKey(prefix, 'parked'), full.id);
    await store.redis.zadd(
      laneKey(prefix, 'parked', full.id),
      ...Array.from({ length: 100 }, (_, i) => [i, `dlv_${i}`]).flat(),
    );
    const ids = [full.id, paused.id, gone.id];
    const results = await Promise.all([event(), event(), event()].map((sent) => send(sent, ids)));
    for (const result of results) {
      const states = 'created' in result ? result.created.map(({ state }) => state) : [];
      expect(states).toEqual(['without_first_job', 'held', 'none']);
    }
    expect(await laneLength(store, 'parked', full.id)).toBe(103);
    expect(await laneLength(store, 'held', paused.id)).toBe(3);
  });
  it('stay known for a week if the only subscription of each is gone', async () => {
    const { id, sent } = await inPartition(2);
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    expect(await Promise.all([send(sent, [id]), send(sent, [id])])).toMatchObject([
      { created: [{ state: 'none' }] },
      { kept: { event: sent } },
    ]);
  });
});
