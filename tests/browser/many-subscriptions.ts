/** Ten thousand subscriptions beside those of a test. They get none of its events. */
import { expect } from '@jest/globals';
import { subscriptionIdOfKey } from '@posthorn/core';
import { newSubscription, type Store, saveSubscription } from '@posthorn/store';

const OTHERS = 10_000;

/** Stores them, made one millisecond after the other from `firstMs` on; the first `paused` of them are paused. */
export async function addManySubscriptions(store: Store, firstMs: number, paused = 0): Promise<void> {
  await Promise.all(
    Array.from({ length: OTHERS }, async (_, i) => {
      // Not random: a search also looks at ids, and a random id may contain a word that a test searches for.
      const id = subscriptionIdOfKey(`customer ${i}`);
      const fields = { url: `https://hooks-${i}.example/in`, description: `Customer ${i}`, sealedSecret: 'sealed' };
      const made = newSubscription(
        { ...fields, id, eventTypes: ['session.expired'], environment: 'production' },
        firstMs + i,
      );
      const status = i < paused ? 'paused' : 'active';
      expect(await saveSubscription(store, { ...made, status, takesEvents: true })).toBe(true);
    }),
  );
}
