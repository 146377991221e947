/** Reads names of subscriptions by id: all that are asked for at the same moment in one call. */
import type { SubscriptionName, SubscriptionNames } from '@posthorn/operator-api';
import { call } from './api.ts';

/** The most ids that the console takes in one call. */
const MAX_IDS = 250;

let waiting = new Map<string, Promise<SubscriptionName | null>>();
let batch: { ids: string[]; names: Promise<Map<string, SubscriptionName>> } | undefined;

/** Resolves with the name of a subscription, or null if there is none. Throws `ApiError`. */
export function loadName(id: string): Promise<SubscriptionName | null> {
  const earlier = waiting.get(id);
  if (earlier) return earlier;
  if (batch === undefined || batch.ids.length === MAX_IDS) batch = openBatch();
  batch.ids.push(id);
  const name = batch.names.then((names) => names.get(id) ?? null);
  waiting.set(id, name);
  return name;
}

/** A batch is sent as soon as the code that is running now has ended. */
function openBatch() {
  const ids: string[] = [];
  const names = Promise.resolve().then(async () => {
    batch = undefined;
    waiting = new Map();
    const { data } = await call<SubscriptionNames>('GET', `/v1/subscriptions/lookup?ids=${ids.join(',')}`);
    return new Map(data.map((name) => [name.id, name]));
  });
  return { ids, names };
}
