/** Events whose script was sent again because its reply was lost, on a real Redis. */
import { expect, it } from '@jest/globals';
import type { Event } from '@posthorn/core';
import { createMatcher, listDeliveries } from '@posthorn/store';
import { store, subscribe } from '../../../packages/store/src/test-deliveries.ts';
import { sendTwice } from '../../../packages/store/src/test-send-twice.ts';
import { EventTurns } from './event-turns.ts';
import { InFlight } from './in-flight.ts';
import { type IngestContext, ingestEvent } from './ingest-event.ts';

const PUBLISHER = { name: 'p', environment: 'both' } as const;

const input = { type: 'session.approved', environment: 'sandbox', data: { id: 's', status: 'x' } };

const contextWith = (published: (event: Event) => void = () => undefined): IngestContext => ({
  turns: new EventTurns(),
  inFlight: new InFlight(),
  store,
  matcher: createMatcher(store, () => 0),
  logger: { info() {}, warn() {} },
  clock: { now: Date.now },
  isSearchOn: false,
  maxEventBytes: 1_000,
  replicaWait: undefined,
  sandboxFeed: { published },
  quota: { count: () => undefined },
});

it('an event without an id is stored once, also if it matches others when it is sent again', async () => {
  const address = await subscribe();
  sendTwice(store, 'storeEvents', async () => void (await subscribe()));
  const { event } = await ingestEvent(contextWith(), input, PUBLISHER);
  const { items } = await listDeliveries(store, { eventId: event.id }, { limit: 10 });
  expect(items.map(({ subscriptionId }) => subscriptionId)).toEqual([address.id]);
});

it('an event is told to those who listen to the sandbox', async () => {
  const told: string[] = [];
  const context = contextWith(({ id }) => told.push(id));
  sendTwice(store, 'storeEvents');
  await ingestEvent(context, { ...input, id: 'a' }, PUBLISHER);
  expect(told).toEqual(['a']);
});
