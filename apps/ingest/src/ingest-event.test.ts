/** Which events a key may publish, and what one counts as among those that its publisher has in flight to Redis. */
import { describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { MAX_DELIVERIES } from '@posthorn/store';
import { type IngestContext, ingestEvent } from './ingest-event.ts';

const REACHED = new Error('nothing is stored here');

/**
 * Ingests an event of the publisher `flood` up to the line in which it waits for Redis, and returns which line that is
 * and what the event weighs.
 */
async function lineOf(options: { subscriptions?: number; dataChars?: number; spansPartitions?: boolean }) {
  const { subscriptions = 0, dataChars = 100, spansPartitions = true } = options;
  const found: unknown[] = [];
  const context = {
    clock: { now: () => 0 },
    maxEventBytes: 100_000,
    matcher: { match: () => ({ subscriptionIds: Array.from({ length: subscriptions }, (_, i) => `sub_${i}`) }) },
    store: { partitions: 16, spansPartitions },
    inFlight: {
      lineOf: (publisher: string, partition: number) => ({
        begin(weight: number) {
          found.push({ publisher, partition, weight });
          return Promise.reject(REACHED);
        },
      }),
    },
  };
  const data = { id: 's', status: 'approved', pad: '' };
  data.pad = 'x'.repeat(dataChars - JSON.stringify(data).length);
  const event = { id: 'evt_1', type: 'session.approved', environment: 'sandbox', data };
  const publisher = { name: 'flood', environment: 'both' } as const;
  await expect(ingestEvent(context as unknown as IngestContext, event, publisher)).rejects.toBe(REACHED);
  return found[0];
}

describe('an event', () => {
  it.each([
    ['one without a subscription', {}, 1],
    ['one with three', { subscriptions: 3 }, 4],
    ['one with more than Redis makes deliveries of at once', { subscriptions: MAX_DELIVERIES + 1 }, 1 + MAX_DELIVERIES],
    ['one of almost 4 KiB', { dataChars: 4_095 }, 2],
    ['one of 4 KiB', { dataChars: 4_096 }, 3],
  ])('weighs one, one for each delivery and for each 2 KiB: %s', async (_what, options, weight) => {
    expect(await lineOf(options)).toEqual({ publisher: 'flood', partition: 0, weight });
  });
  it('is in the line of its partition where partitions may be on several nodes', async () => {
    expect(await lineOf({ spansPartitions: false })).toMatchObject({ partition: partitionOf('evt_1', 16) });
  });
});

it.each([
  ['sandbox', 'production'],
  ['production', 'sandbox'],
] as const)('a key for %s publishes nothing to %s', async (ofKey, environment) => {
  const context = { clock: { now: () => 0 }, maxEventBytes: 100_000 } as unknown as IngestContext;
  const event = { type: 'session.approved', environment, data: { id: 's', status: 'approved' } };
  const publishing = ingestEvent(context, event, { name: 'one', environment: ofKey });
  await expect(publishing).rejects.toMatchObject({ code: 'forbidden_environment' });
});

it('refuses data that nest deeper than 64 levels as a bad field', async () => {
  const context = { clock: { now: () => 0 }, maxEventBytes: 100_000 } as unknown as IngestContext;
  const publishing = (levels: number) => {
    const data = { id: 's', status: 'x', deep: JSON.parse('['.repeat(levels - 1) + ']'.repeat(levels - 1)) };
    // Its key is for another environment, which is checked after the fields.
    const publisher = { name: 'one', environment: 'production' } as const;
    return ingestEvent(context, { type: 'session.approved', environment: 'sandbox', data }, publisher);
  };
  await expect(publishing(64)).rejects.toMatchObject({ code: 'forbidden_environment' });
  await expect(publishing(65)).rejects.toMatchObject({
    code: 'invalid_fields',
    fields: { listed: [{ path: 'data', message: 'Must not nest deeper than 64 levels' }] },
  });
});
