/** What a deletion of a subscription must remove, and which saves are refused. */
import { describe, expect, it } from '@jest/globals';
import {
  clearDeletedSubscription,
  deleteSubscription,
  deletionOf,
  loadSubscriptions,
  newSubscription,
  saveSubscription,
} from '../index.ts';
import { store } from '../test-deliveries.ts';

const nowMs = Date.now();

const fields = {
  url: 'https://a.example/',
  eventTypes: 'all',
  environment: 'both',
  description: 'd',
  sealedSecret: 'sealed',
} as const;

describe('a deletion', () => {
  it('leaves nothing of the subscription and its secrets', async () => {
    const made = newSubscription(fields, nowMs);
    await saveSubscription(store, made);
    const [key] = await store.redis.keys(`${store.prefix}:*:subscription:${made.id}`);
    expect(Object.values(await store.redis.hgetall(key!)).join()).toContain('sealed');
    await deleteSubscription(store, made.id, nowMs, { operator: 'anna' });
    expect(await loadSubscriptions(store, [made.id])).toEqual([undefined]);
    expect(await store.redis.hgetall(key!)).toEqual({ status: 'deleted', deletion: expect.any(String) });
  });
});

it('a save of a subscription that was deleted and created again under its key since it was loaded is refused', async () => {
  const created = async (createdAtMs: number, url: string) => {
    const id = 'sub_AAAAAAAAAAAAAAAAAAAAAAAAAA';
    expect(await saveSubscription(store, newSubscription({ ...fields, id, key: 'key', url }, createdAtMs))).toBe(true);
    return (await loadSubscriptions(store, [id]))[0]!;
  };
  const loaded = await created(nowMs, 'https://before.example/');
  await deleteSubscription(store, loaded.id, nowMs, { operator: 'anna' });
  await clearDeletedSubscription(store, loaded.id, await deletionOf(store, loaded.id));
  const again = await created(nowMs + 1, 'https://after.example/');
  expect(again.revision).toBe(loaded.revision);
  expect(await saveSubscription(store, { ...loaded, description: 'changed' })).toBe(false);
  expect(await loadSubscriptions(store, [loaded.id])).toEqual([again]);
});
