/** The search index: what is found, in which order, and for how long. */
import { describe, expect, it } from '@jest/globals';
import {
  DAY_MS,
  type Environment,
  type Event,
  eventRef,
  HOUR_MS,
  newEventId,
  type SearchTerm,
  searchTermsOf,
} from '@posthorn/core';
import { searchEvents, storeEvent } from '../index.ts';
import { eventKey } from '../keys.ts';
import { store } from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';
import { prefixOfEvent } from './events.ts';

const nowMs = Date.now();
interface Change {
  id?: string;
  environment?: Environment;
  acceptedAtMs?: number;
  subscriptionIds?: string[];
}
async function keep(data: Record<string, unknown>, change: Change = {}) {
  const { environment = 'sandbox', acceptedAtMs = nowMs, id, subscriptionIds = [] } = change;
  const event: Event = {
    id: id ?? newEventId(acceptedAtMs),
    type: 'session.approved',
    createdAt: new Date(acceptedAtMs).toISOString(),
    environment,
    dataJson: JSON.stringify({ status: 'approved', ...data }),
  };
  const stored = { ref: eventRef(event), event, acceptedAtMs, subscriptionIds };
  await storeEvent(store, stored, { searchTerms: searchTermsOf(JSON.parse(event.dataJson)) });
  return event.id;
}
const session = (value: string): SearchTerm[] => [{ field: 'session_id', value }];
async function find(terms: SearchTerm[], environment?: Environment, limit = 50) {
  const { events, hasMore } = await searchEvents(store, terms, environment, limit, nowMs);
  return { ids: events.map(({ event }) => event.id), hasMore };
}
const listKeys = () => store.redis.keys(`${store.prefix}:*:search:*`);

describe('the search index', () => {
  it('finds events by session, reference and user, in all partitions, newest first', async () => {
    const data = { id: 's-1', reference: 'order é 7', metadata: { user_id: 'u-1' } };
    const ids = [];
    for (let i = 0; i < 6; i++) ids.unshift(await keep(data, { acceptedAtMs: nowMs - 10_000 + i }));
    await keep({ id: 's-2' });
    for (const [field, value] of [
      ['session_id', 's-1'],
      ['reference', 'order é 7'],
      ['user_id', 'u-1'],
    ] as const)
      expect(await find([{ field, value }])).toEqual({ ids, hasMore: false });
    // A value is found in its own field only.
    expect((await find([{ field: 'reference', value: 's-1' }])).ids).toEqual([]);
    expect(await find(session('s-1'), undefined, 2)).toEqual({ ids: ids.slice(0, 2), hasMore: true });
  });

  it('finds a value that was cut off within a character', async () => {
    const id = await keep({ id: 'order \u{1f600}'.slice(0, -1) });
    expect((await find(session('order \ufffd'))).ids).toEqual([id]);
  });

  it('finds any form of id, each event once, and tells environments apart', async () => {
    const data = { id: 'same', reference: 'same' };
    const ids = ['order:7~a', 'evt_01A201D3-2D2F-75F2-8475-C02D8F7AFB76', 'evt_01a201d3-2d2f-75f2-8475-c02d8f7afb76'];
    for (const id of ids) await keep(data, { id });
    await keep(data, { id: ids[0]!, environment: 'production' });
    const any: SearchTerm[] = [...session('same'), { field: 'reference', value: 'same' }];
    expect((await find(any, 'sandbox')).ids.toSorted()).toEqual(ids.toSorted());
    expect((await find(any, 'production')).ids).toEqual([ids[0]]);
  });

  it('names an event whose data are no JSON, and hides no other one', async () => {
    const damaged = await keep({ id: 's-1' });
    const found = await keep({ id: 's-1' });
    const ref = eventRef({ id: damaged, environment: 'sandbox' });
    await store.redis.set(eventKey(prefixOfEvent(store, ref), ref), '0 1 1 \n{"id":"s-1"');
    const { events, unreadable } = await searchEvents(store, session('s-1'), undefined, 50, nowMs);
    expect(events.map(({ event }) => event.id)).toEqual([found]);
    expect(unreadable).toMatchObject([{ id: damaged, message: expect.stringContaining(damaged) }]);
  });

  it('adds a repeated event once', async () => {
    const id = await keep({ id: 's-1' }, { id: 'order-1' });
    await keep({ id: 's-1' }, { id });
    const [key = ''] = await listKeys();
    expect(await store.redis.llen(key)).toBe(1);
  });

  it('never writes a value, only its hash', async () => {
    await keep({ id: 'session-of-anna', reference: 'anna-1', metadata: { user_id: 'anna' } }, { id: 'e-1' });
    const keys = await listKeys();
    const entries = await Promise.all(keys.map((key) => store.redis.lrange(key, 0, -1)));
    expect(entries.flat()).toHaveLength(3);
    expect(JSON.stringify([keys, entries])).not.toContain('anna');
  });

  it('keeps a list as long as any of its events can be kept without a replay', async () => {
    const acceptedAtMs = nowMs - 20 * DAY_MS;
    await keep({ id: 's-old' }, { acceptedAtMs, subscriptionIds: ['sub_a'] });
    const [key = ''] = await listKeys();
    const untilMs = (Math.floor(acceptedAtMs / DAY_MS) + 1) * DAY_MS + RETENTION + 2 * DAY_MS;
    expect(await store.redis.pexpiretime(key)).toBe(untilMs);
    // 14 h 36 min until a delivery fails, and a day longer than it can be replayed.
    expect(untilMs).toBeGreaterThan(acceptedAtMs + 15 * HOUR_MS + RETENTION + DAY_MS);
    expect((await find(session('s-old'))).ids).toHaveLength(1);
  });

  it('passes over the entries of another session that fill the same list', async () => {
    const id = await keep({ id: 's-1' }, { acceptedAtMs: nowMs - 1 });
    const [key = ''] = await listKeys();
    const others = Array.from({ length: 4_100 }, (_, i) => `####sother-${i}`);
    await store.redis.rpush(key, ...others);
    expect(await find(session('s-1'))).toEqual({ ids: [id], hasMore: false });
  });

  it.each(['events of the other environment', 'events that are gone'])('finds an event behind %s', async (newer) => {
    const id = await keep({ id: 's-1' }, { environment: 'production', acceptedAtMs: nowMs - 1 });
    const [key = ''] = await listKeys();
    const [entry = ''] = await store.redis.lrange(key, 0, -1);
    const letter = newer === 'events that are gone' ? 'p' : 's';
    const others = Array.from({ length: 2_100 }, (_, i) => `${entry.slice(0, 4)}${letter}other-${i}`);
    await store.redis.rpush(key, ...others);
    expect(await find(session('s-1'), 'production', 2)).toEqual({ ids: [id], hasMore: false });
  });

  it('keeps no event while it searches: one that goes meanwhile is not returned', async () => {
    const [gone, kept] = [await keep({ id: 's-1' }, { id: 'gone' }), await keep({ id: 's-1' }, { id: 'kept' })];
    const get = async (key: string) => {
      const text = await store.redis.get(key);
      if (key.includes(gone)) await store.redis.del(key);
      return text;
    };
    const redis: typeof store.redis = Object.create(store.redis, { get: { value: get } });
    const { events, hasMore } = await searchEvents({ ...store, redis }, session('s-1'), undefined, 50, nowMs);
    expect({ ids: events.map(({ event }) => event.id), hasMore }).toEqual({ ids: [kept], hasMore: false });
  });

  it('ends after 200,000 entries and says that there may be more', async () => {
    await keep({ id: 's-1' }, { acceptedAtMs: nowMs - 1 });
    const [key = ''] = await listKeys();
    const others = Array.from({ length: 50_000 }, (_, i) => `####sother-${i}`);
    for (let i = 0; i < 4; i++) await store.redis.rpush(key, ...others);
    expect(await find(session('s-1'))).toEqual({ ids: [], hasMore: true });
  });

  it('tells terms with the same mark apart, and leaves out events that are gone', async () => {
    await keep({ id: 's-1' }, { id: 'mine', acceptedAtMs: nowMs - 1 });
    const other = await keep({ id: 's-2' }, { id: 'other' });
    const keys = await listKeys();
    const all = await Promise.all(keys.map(async (key) => [key, await store.redis.lrange(key, 0, -1)] as const));
    const [key, [entry = '']] = all.find(([, entries]) => entries.some((each) => each.endsWith('smine')))!;
    await store.redis.rpush(key, `${entry.slice(0, 4)}s${other}`, `${entry.slice(0, 4)}sgone`);
    expect(await find(session('s-1'))).toEqual({ ids: ['mine'], hasMore: false });
  });
});
