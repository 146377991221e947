/** The address and the customer of each subscription in a table of other things. */
import { chunksOf, cutText } from '@posthorn/core';
import { MAX_LOOKUP_IDS, type SubscriptionName, subscriptionNamesSchema } from '@posthorn/operator-api';
import type { Client } from './client.ts';

/** Longer descriptions are cut off in tables. */
const MAX_CUSTOMER_CHARACTERS = 40;

/**
 * Resolves with the names of subscriptions by id, without those that were deleted. Makes one call for every 250 of
 * them.
 */
export async function namesOf(client: Client, ids: Iterable<string>): Promise<Map<string, SubscriptionName>> {
  const wanted = [...new Set(ids)];
  const names = new Map<string, SubscriptionName>();
  for (const some of chunksOf(wanted, MAX_LOOKUP_IDS)) {
    const { data } = await client.get(subscriptionNamesSchema, '/v1/subscriptions/lookup', { ids: some.join(',') });
    for (const name of data) names.set(name.id, name);
  }
  return names;
}

/** Returns the beginning of the first line of a description: operators put the customer there. */
export function customerOf({ description }: Pick<SubscriptionName, 'description'>): string | null {
  const [line = ''] = description.split('\n');
  return cutText(line, MAX_CUSTOMER_CHARACTERS) || null;
}

type OfAddress = Readonly<{ subscription_id: string }>;

/**
 * The columns of items that belong to an address: its customer, and its url, which comes last because it may be long.
 */
export async function addressColumns(client: Client, items: readonly OfAddress[]) {
  const names = await namesOf(
    client,
    items.map((item) => item.subscription_id),
  );
  const nameOf = (item: OfAddress) => names.get(item.subscription_id);
  return {
    customer: (item: OfAddress) => customerOf(nameOf(item) ?? { description: '' }),
    address: (item: OfAddress) => nameOf(item)?.url ?? item.subscription_id,
  };
}
