/** An event and its only delivery in one record: when, what it holds, and how long. */
import { describe, expect, it } from '@jest/globals';
import {
  DAY_MS,
  type Event,
  type EventRef,
  eventIdIn,
  eventRef,
  jointRef,
  jointRefOf,
  newEventId,
  partitionOf,
} from '@posthorn/core';
import { testRedisUrl } from '@posthorn/testing';
import { deliveryOfJob } from '../deliveries/jobs.ts';
import { eraseEvent } from '../erasures/erase-found-event.ts';
import { findNextEvents, readPlace } from '../erasures/erasure-events.ts';
import {
  beginAttempt,
  createDeliveries,
  deleteSubscription,
  openStore,
  pruneFinished,
  replayDelivery,
  storeEvent,
} from '../index.ts';
import { byStatusKey, deliveryKey, eventKey, prefixOfId, prefixOfSubscription, queueKey } from '../keys.ts';
import { runScript } from '../scripts.ts';
import { attempt, event, failure, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION, RETENTION_SUCCEEDED } from '../test-store.ts';
import { takeFrom } from '../test-take.ts';
import { decodeEvent } from './event-record.ts';
import { findEvents, keepEvent, keepIfExists, loadEvent, prefixOfEvent } from './events.ts';

/** An event in the partition of a subscription. */
function eventBeside(subscriptionId: string, change: Partial<Event> = {}): Event {
  const id = eventIdIn(partitionOf(subscriptionId, store.partitions), store.partitions, newEventId(time.nowMs));
  return event({ id, ...change });
}
const storedOf = (sent: Event, subscriptionIds: string[]) => ({
  ref: eventRef(sent),
  event: sent,
  acceptedAtMs: time.nowMs,
  subscriptionIds,
});
async function send(sent: Event, subscriptionIds: string[], of = store) {
  return await storeEvent(of, storedOf(sent, subscriptionIds), { withDeliveries: true });
}
/** Stores an event with one delivery; returns the delivery's id. */
async function sendOne(sent: Event, subscriptionId: string): Promise<string> {
  const result = await send(sent, [subscriptionId]);
  if ('kept' in result) throw new Error('not stored');
  return result.created[0]?.deliveryId ?? '';
}
const refOf = (sent: Event): EventRef => jointRef(sent) ?? ('' as EventRef);
const keyOf = (sent: Event) => eventKey(prefixOfEvent(store, refOf(sent)), refOf(sent));
const expiryOf = (sent: Event) => store.redis.pexpiretime(keyOf(sent));
const inFormatOne = async () => {
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: store.prefix, PARTITIONS: 4, RETENTION };
  const formats = { oldest: 1, newest: 1 };
  const opened = openStore(settings, { onError: (error) => Promise.reject(error), formats });
  return {
    ...opened.store,
    format: { current: () => 1, confirm: () => undefined, doubt: () => undefined },
    stop: opened.stop,
  };
};

describe('an event with one delivery', () => {
  it('is one compact key, and is found by its id and by that of its delivery', async () => {
    const { id } = await subscribe();
    for (const environment of ['sandbox', 'production'] as const) {
      const sent = eventBeside(id, { environment, createdAt: new Date(time.nowMs - 5_000).toISOString() });
      const before = await store.redis.keys(`${store.prefix}:*`);
      const deliveryId = await sendOne(sent, id);
      const made = (await store.redis.keys(`${store.prefix}:*`)).filter((key) => !before.includes(key));
      expect(made).toContain(keyOf(sent));
      expect(made.filter((key) => /:(delivery|event):/.test(key))).toEqual([keyOf(sent)]);
      expect(await store.redis.object('ENCODING', keyOf(sent))).toBe('listpack');
      const stored = { ...storedOf(sent, [id]), ref: refOf(sent) };
      expect(await loadEvent(store, eventRef(sent))).toEqual(stored);
      expect(await findEvents(store, sent.id)).toEqual([stored]);
      expect(await loadOne(deliveryId)).toMatchObject({ event: refOf(sent), eventId: sent.id, subscriptionId: id });
      expect([jointRefOf(deliveryId), prefixOfId(store, deliveryId)]).toEqual([
        refOf(sent),
        prefixOfSubscription(store, id),
      ]);
    }
  });
  it('keeps each byte of its payload and its trace, in fields that stay compact', async () => {
    const { id } = await subscribe();
    const trace = { traceId: '0123456789abcdef'.repeat(2), spanId: '0123456789abcdef', flags: 1 };
    for (const text of ['', 'é'.repeat(300), '😀'.repeat(200), 'x'.repeat(900), 'x😀é\\n\\u0001'.repeat(40)]) {
      const sent = eventBeside(id, { dataJson: `{"id":"s","text":"${text}"}` });
      const stored = { ...storedOf(sent, [id]), trace };
      await storeEvent(store, stored, { withDeliveries: true });
      expect(await loadEvent(store, stored.ref)).toEqual({
        ...stored,
        ref: refOf(sent),
        trace: expect.objectContaining(trace),
      });
      expect(await store.redis.object('ENCODING', keyOf(sent))).toBe('listpack');
    }
  });
  it.each<[string, (id: string, other: string) => [Event, string[]]]>([
    ['its id is no UUID', (id) => [eventBeside(id, { id: 'order-1' }), [id]]],
    ['there are two', (id, other) => [eventBeside(id), [id, other]]],
    ['there is none', (id) => [eventBeside(id), []]],
    ['it is long', (id) => [eventBeside(id, { dataJson: `{"id":"${'x'.repeat(1_000)}"}` }), [id]]],
  ])('has a key of its own if %s', async (_why, make) => {
    const [a, b] = [await subscribe(), await subscribe()];
    const [sent, ids] = make(a.id, b.id);
    await send(sent, ids);
    expect(await store.redis.exists(eventKey(prefixOfEvent(store, eventRef(sent)), eventRef(sent)))).toBe(1);
    expect(await loadEvent(store, eventRef(sent))).toEqual(storedOf(sent, ids));
  });
  it('is known by its id, in whichever format it was published first', async () => {
    const { id } = await subscribe();
    const old = await inFormatOne();
    for (const [first, second] of [
      [store, old],
      [old, store],
      [store, store],
    ] as const) {
      const sent = eventBeside(id);
      expect(await send(sent, [id], first)).toMatchObject({ created: [{ state: 'pending' }] });
      const again = await send(sent, [], second);
      const ref = first === store ? refOf(sent) : eventRef(sent);
      expect(again).toEqual({ kept: { ...storedOf(sent, [id]), ref } });
      // A repeat fills no gap, since there is none.
      const kept = (await loadEvent(store, eventRef(sent))) ?? storedOf(sent, []);
      expect((await createDeliveries(store, kept)).map(({ state }) => state)).toEqual(['pending']);
      expect(await findEvents(store, sent.id)).toHaveLength(1);
    }
    await old.stop();
  });
  it('stays known for a week if its subscription is gone before its delivery is made', async () => {
    const { id } = await subscribe();
    const sent = eventBeside(id);
    await deleteSubscription(store, id, time.nowMs, { operator: 'test' });
    expect(await send(sent, [id])).toMatchObject({ created: [{ state: 'none' }] });
    expect(await loadEvent(store, eventRef(sent))).toMatchObject({ event: sent, subscriptionIds: [] });
    expect(await expiryOf(sent)).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it('is not shown as a delivery to another address', async () => {
    const { id } = await subscribe();
    const deliveryId = await sendOne(eventBeside(id), id);
    const other = `${deliveryId.slice(0, 4)}${deliveryId[4] === 'A' ? 'B' : 'A'}${deliveryId.slice(5)}`;
    expect([await loadOne(other), (await loadOne(deliveryId)).status]).toEqual([undefined, 'pending']);
  });
  it('is taken with its event and its address', async () => {
    const { id, url } = await subscribe();
    const sent = eventBeside(id, { dataJson: '{"id":"s","text":"\\u0000 \\u0001é😀"}' });
    const deliveryId = await sendOne(sent, id);
    await store.redis.lpush(queueKey(prefixOfSubscription(store, id), 'wait'), deliveryId);
    const take = { partition: partitionOf(id, store.partitions), token: 'a', limit: 1 };
    const [taken] = await takeFrom(store, take, { lockMs: 60_000, nowMs: time.nowMs });
    if (!taken || !('job' in taken)) throw new Error('no job');
    expect(deliveryOfJob(taken.job)).toEqual({ deliveryId, generation: 0, subscriptionId: id, event: refOf(sent) });
    expect(taken.job.address?.[1]).toBe(url);
    expect(decodeEvent(refOf(sent), taken.job.event ?? '')).toEqual(await loadEvent(store, refOf(sent)));
    // What was read in the same step begins the same attempt as what is read now.
    const job = { deliveryId, generation: 0, subscriptionId: id };
    const begun = await beginAttempt(store, job, time.nowMs);
    expect(begun).toMatchObject({ kind: 'attempt', url, previousSealedSecret: null, dueAtMs: null });
    expect(beginAttempt(store, job, time.nowMs, 0, taken.job)).toEqual(begun);
  });
});

describe('the life of an event with one delivery', () => {
  it('has no end before that of its delivery: then a week if it succeeded, else a month and a day', async () => {
    const { id } = await subscribe();
    const [good, bad] = [eventBeside(id), eventBeside(id)];
    const [succeeded, failed] = [await sendOne(good, id), await sendOne(bad, id)];
    await keepEvent(store, refOf(good), time.nowMs + 1);
    expect([await expiryOf(good), await expiryOf(bad)]).toEqual([-1, -1]);
    await attempt(succeeded, 1, { kind: 'succeeded' });
    await attempt(failed, 1, failure, 1_000);
    expect(await expiryOf(good)).toBe(time.nowMs + RETENTION_SUCCEEDED);
    expect(await expiryOf(bad)).toBe(time.nowMs + 10 + RETENTION + DAY_MS);
  });
  it('is extended for a replay, but the failed delivery is gone at its time', async () => {
    const { id } = await subscribe();
    const sent = eventBeside(id);
    const failed = await sendOne(sent, id);
    await attempt(failed, 1, failure, 1_000);
    const endsAtMs = await expiryOf(sent);
    time.nowMs += 20 * DAY_MS;
    const replayed = await replayDelivery(store, await loadOne(failed), time.nowMs, 'test', 'nonce');
    if ('refused' in replayed) throw new Error(replayed.refused);
    expect(await loadOne(replayed.deliveryId)).toMatchObject({ event: refOf(sent), eventId: sent.id });
    expect(await expiryOf(sent)).toBe(time.nowMs + RETENTION + DAY_MS);
    expect(await store.redis.hget(deliveryKey(prefixOfId(store, failed), failed), 'u')).toBe(String(endsAtMs));
    expect((await loadOne(failed)).status).toBe('failed');
    await store.redis.hset(keyOf(sent), { u: Date.now() - 1 });
    expect(await loadOne(failed)).toBeUndefined();
    // Nor is it counted among the failed ones.
    const partition = partitionOf(id, store.partitions);
    const index = byStatusKey(prefixOfId(store, failed), 'failed');
    expect(await store.redis.zscore(index, failed)).not.toBeNull();
    await pruneFinished(store, partition, 'failed', { beforeMs: time.nowMs, maxChunks: 100, maxKept: 10_000 });
    expect(await store.redis.zscore(index, failed)).toBeNull();
    expect((await loadEvent(store, eventRef(sent)))?.event).toEqual(sent);
    // Not made anew after its end.
    await store.redis.del(keyOf(sent));
    expect(await keepIfExists(store, refOf(sent), time.nowMs + RETENTION)).toBe(false);
  });
});

it('an erasure finds and erases an event in a joint record, and keeps its delivery and its expiry', async () => {
  const { id } = await subscribe();
  const sent = eventBeside(id, { dataJson: `{"id":"person-1","text":"${'x'.repeat(300)}"}` });
  const deliveryId = await sendOne(sent, id);
  await attempt(deliveryId, 1, { kind: 'succeeded' });
  const expiryMs = await expiryOf(sent);
  const erased = { id: 'ers_1', field: 'session_id' as const, environment: undefined, value: 'person-1' };
  for (let place = await readPlace(store, 'ers_1', 0); place?.passes === '0'; ) {
    await findNextEvents(store, 0, [{ ...erased, place }], time.nowMs);
    place = await readPlace(store, 'ers_1', 0);
  }
  const found = await store.redis.zrange(`${prefixOfEvent(store, refOf(sent))}:erasure_events:ers_1`, '0', '-1');
  expect(found).toEqual([refOf(sent)]);
  const stored = (await loadEvent(store, refOf(sent))) ?? storedOf(sent, []);
  await eraseEvent(store, 'ers_1', stored, { deliveries: 1, ended: 0, responses: 0 }, time.nowMs);
  // As of another process that read the event before it was erased.
  const late = { id: 'ers_1', event: refOf(sent), dueAtMs: 0, deliveries: 1, unsent: 0, lifeMs: DAY_MS };
  await runScript(store, 'findEvent', prefixOfEvent(store, refOf(sent)), late);
  expect(await store.redis.exists(`${prefixOfEvent(store, refOf(sent))}:erasure_events:ers_1`)).toBe(0);
  const after = await loadEvent(store, eventRef(sent));
  expect(after).toMatchObject({ event: { id: sent.id, dataJson: '{}' }, erasedAtMs: time.nowMs });
  expect(JSON.stringify(await store.redis.hgetall(keyOf(sent)))).not.toMatch(/person-1|x{9}/);
  expect([(await loadOne(deliveryId)).status, await expiryOf(sent)]).toEqual(['succeeded', expiryMs]);
});
