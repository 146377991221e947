/** A worker that starts beside addresses that are failing, on a real Redis. */
import { expect, it } from '@jest/globals';
import { failingKey, prefixOfSubscription } from '../../../../packages/store/src/keys.ts';
import { store, subscriptionIdIn } from '../../../../packages/store/src/test-deliveries.ts';
import { createFailingBefore } from './failing-before.ts';
import { Slots } from './slots.ts';

const newSlots = () => new Slots({ total: 4, perAddress: 4, perHost: 4, now: () => 0 });
const warnings: unknown[] = [];
const logger = { warn: (_fields: object, event: string) => warnings.push(event) } as never;

it('counts them as slow, and starts also if they cannot be read', async () => {
  const failing = subscriptionIdIn(0);
  const key = failingKey(prefixOfSubscription(store, failing));
  await store.redis.zadd(key, 1, failing);
  const slots = newSlots();
  await createFailingBefore({ store, slots, logger }).start();
  const acquired = () => Array.from({ length: 4 }, () => slots.acquire(failing)).filter((slot) => slot !== undefined);
  // Slow addresses have half of all slots.
  expect(acquired()).toHaveLength(2);
  await store.redis.set(key, 'text of another program');
  await createFailingBefore({ store, slots: newSlots(), logger }).start();
  expect(warnings).toEqual(['failing_addresses.not_read']);
});
