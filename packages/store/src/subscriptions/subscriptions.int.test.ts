/** What a deletion of a subscription must remove. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { deleteSubscription, loadSubscriptions, newSubscription, type Store, saveSubscription } from '../index.ts';
import { openTestStore } from '../test-store.ts';

let store: Store;
let close: () => Promise<void>;
const nowMs = Date.now();
beforeEach(async () => {
  ({ store, close } = await openTestStore(1));
});
afterEach(() => close());

describe('a deletion', () => {
  it('leaves nothing of the subscription and its secrets', async () => {
    const made = newSubscription(
      { url: 'https://a.example/', eventTypes: 'all', environment: 'both', description: 'd', sealedSecret: 'sealed' },
      nowMs,
    );
    await saveSubscription(store, made);
    const [key] = await store.redis.keys(`${store.prefix}:*:subscription:${made.id}`);
    expect(Object.values(await store.redis.hgetall(key!)).join()).toContain('sealed');
    await deleteSubscription(store, made.id, nowMs, { operator: 'anna' });
    expect(await loadSubscriptions(store, [made.id])).toEqual([undefined]);
    expect(await store.redis.hgetall(key!)).toEqual({ status: 'deleted', deletion: expect.any(String) });
  });
});
