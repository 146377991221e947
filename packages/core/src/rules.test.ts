/** The rules of the specification as properties: matching, schedule, identifiers, the event's bytes. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  AppError,
  DEFAULT_RETRY_DELAYS_MS,
  DELIVERY_ID,
  decide,
  deliveryId,
  ENVIRONMENTS,
  EVENT_TYPES,
  type Event,
  errorOfStatus,
  eventBody,
  eventRef,
  newEventId,
  newSubscriptionId,
  newSubscriptionSchema,
  parseJson,
  partitionOf,
  partitionOfId,
  publishedEventSchema,
  SESSION_EVENT_TYPES,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_ID,
  type Subscription,
  topicsOfEvent,
  topicsOfSubscription,
  utcInstant,
} from './index.ts';

const subscriptionChoice: fc.Arbitrary<Pick<Subscription, 'eventTypes' | 'environment'>> = fc.record({
  eventTypes: fc.oneof(fc.constant('all' as const), fc.subarray([...SESSION_EVENT_TYPES], { minLength: 1 })),
  environment: fc.constantFrom(...SUBSCRIPTION_ENVIRONMENTS),
});

describe('match', () => {
  it('an event goes to a subscription exactly when type and environment both fit', () => {
    const event = fc.record({
      type: fc.constantFrom(...SESSION_EVENT_TYPES),
      environment: fc.constantFrom(...ENVIRONMENTS),
    });
    fc.assert(
      fc.property(subscriptionChoice, event, (subscription, { type, environment }) => {
        const topics = topicsOfSubscription(subscription);
        const matches = topicsOfEvent({ type, environment }).some((topic) => topics.includes(topic));
        const typeFits = subscription.eventTypes === 'all' || subscription.eventTypes.includes(type);
        const environmentFits = subscription.environment === 'both' || subscription.environment === environment;
        expect(matches).toBe(typeFits && environmentFits);
      }),
    );
  });
});

describe('schedule', () => {
  const MINUTE = 60_000;
  it('the default delays are 1 m, 5 m, 30 m, 2 h and 12 h', () => {
    expect(DEFAULT_RETRY_DELAYS_MS).toEqual([MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 720 * MINUTE]);
  });
  it('each failed attempt before the last is followed after exactly its delay; the sixth fails the delivery', () => {
    for (const [i, delayMs] of DEFAULT_RETRY_DELAYS_MS.entries()) {
      expect(decide(i + 1, 'timeout', DEFAULT_RETRY_DELAYS_MS, 1_000)).toEqual({
        kind: 'retry',
        delayMs,
        nextAttemptAtMs: 1_000 + delayMs,
      });
    }
    expect(decide(6, 'timeout', DEFAULT_RETRY_DELAYS_MS, 1_000)).toEqual({ kind: 'failed', reason: 'timeout' });
  });
  it('a success ends the delivery at whichever attempt', () => {
    for (let attempt = 1; attempt <= 6; attempt++) {
      expect(decide(attempt, null, DEFAULT_RETRY_DELAYS_MS, 0)).toEqual({ kind: 'succeeded' });
    }
  });
  it('only the 2xx statuses succeed, and every 3xx is a redirect', () => {
    for (let status = 100; status < 1000; status++) {
      const expected = status >= 200 && status < 300 ? null : status >= 300 && status < 400 ? 'redirect' : 'status';
      expect(errorOfStatus(status)).toBe(expected);
    }
  });
});

const sandboxEvent = (id: string) => eventRef({ id, environment: 'sandbox' });

describe('identifiers', () => {
  it('the delivery of an event to a subscription has the same id every time, and another for a replay', () => {
    const [event, subscription] = [sandboxEvent(newEventId(Date.now())), newSubscriptionId()];
    expect(deliveryId(event, subscription)).toBe(deliveryId(event, subscription));
    expect(deliveryId(event, subscription, 'nonce')).not.toBe(deliveryId(event, subscription));
  });
  it('a delivery is in the partition of its subscription, whatever the number of partitions', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 256 }), (event, partitions) => {
        const subscription = newSubscriptionId();
        const id = deliveryId(sandboxEvent(event), subscription);
        expect(id).toMatch(DELIVERY_ID);
        expect(id).toHaveLength(30);
        expect(subscription).toMatch(SUBSCRIPTION_ID);
        expect(partitionOfId(id, partitions)).toBe(partitionOf(subscription, partitions));
      }),
    );
  });
  it('event ids made later sort later', () => {
    expect(newEventId(1_700_000_000_000) < newEventId(1_700_000_000_001)).toBe(true);
  });
});

describe('event', () => {
  const event: Event = {
    id: 'evt_1',
    type: 'session.approved',
    createdAt: '2026-01-02T03:04:05.006Z',
    environment: 'sandbox',
    dataJson: '{"id":"s"}',
  };
  it('the body is compact JSON with its keys in the order of the specification', () => {
    expect(eventBody(event)).toBe(
      '{"id":"evt_1","type":"session.approved","created_at":"2026-01-02T03:04:05.006Z","environment":"sandbox","data":{"id":"s"}}',
    );
  });
  it.each([
    ['2026-02-28T23:59:59.1239+05:30', '2026-02-28T18:29:59.123Z'],
    ['2026-02-28T23:59Z', '2026-02-28T23:59:00.000Z'],
    ['2024-02-29T00:00:00z', '2024-02-29T00:00:00.000Z'],
  ])('the instant %s is delivered as %s', (given, expected) => {
    expect(utcInstant(given)).toBe(expected);
  });
  it.each([
    '2026-02-30T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01',
    'now',
    '2026-13-01T00:00:00Z',
  ])('%s is no instant', (given) => {
    expect(publishedEventSchema.safeParse({ ...published, created_at: given }).success).toBe(false);
  });
  const published = { type: 'session.created', environment: 'sandbox', data: { id: 's', status: 'created' } };
  it('the nine session types are accepted and webhook.test is refused', () => {
    for (const type of EVENT_TYPES) {
      expect(publishedEventSchema.safeParse({ ...published, type }).success).toBe(type !== 'webhook.test');
    }
  });
  it.each([
    ['an unknown field', { extra: 1 }],
    ['an id with a space', { id: 'a b' }],
    ['an id that is too long', { id: 'x'.repeat(129) }],
    ['a number as id', { id: 7 }],
    ['data without status', { data: { id: 's' } }],
    ['a lower-case country', { data: { id: 's', status: 'x', country: 'fr' } }],
    ['a tier that is no integer', { data: { id: 's', status: 'x', tier: 1.5 } }],
    ['metadata with a number', { data: { id: 's', status: 'x', metadata: { a: 1 } } }],
    ['data that is a list', { data: [] }],
  ])('an event with %s is refused', (_what, change) => {
    expect(publishedEventSchema.safeParse({ ...published, ...change }).success).toBe(false);
  });
  it('unknown fields of data are let through', () => {
    expect(
      publishedEventSchema.safeParse({ ...published, data: { ...published.data, more: { a: [1] } } }).success,
    ).toBe(true);
  });
});

describe('subscription', () => {
  it('the chosen types are kept once each, in the order of the specification', () => {
    const parsed = newSubscriptionSchema.parse({
      url: 'https://example.com',
      event_types: ['session.declined', 'session.created', 'session.declined'],
      environment: 'both',
    });
    expect(parsed.event_types).toEqual(['session.created', 'session.declined']);
  });
  it.each([[[]], ['some'], [['webhook.test']], [['session.unknown']]])('event types %j are refused', (eventTypes) => {
    const parsed = newSubscriptionSchema.safeParse({
      url: 'https://a.b',
      event_types: eventTypes,
      environment: 'both',
    });
    expect(parsed.success).toBe(false);
  });
});

describe('parseJson', () => {
  it('what was written comes back, number for number', () => {
    for (const text of [
      '12345678901234567890',
      '1.50',
      '-0',
      '1e400',
      '0.1',
      '1E5',
      '123456789.123456789123',
      '[1,2.0]',
    ]) {
      expect(JSON.stringify(parseJson(text))).toBe(text);
    }
  });
  it('any JSON value survives', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.stringify(parseJson(text))).toBe(text);
      }),
    );
  });
  it('a key named __proto__ stays an ordinary key', () => {
    const text = '{"__proto__":{"polluted":true},"a":1}';
    expect(JSON.stringify(parseJson(text))).toBe(text);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
  it.each(['', '{', '[1,]', 'nul', '{"a":01}', '"\u0001"'])('%j is refused', (text) => {
    expect(() => parseJson(text)).toThrow(AppError);
  });
  it('deep nesting is refused before it can exhaust the stack, brackets in strings are not', () => {
    expect(() => parseJson('['.repeat(100_000) + ']'.repeat(100_000))).toThrow(/deeper/);
    expect(parseJson(JSON.stringify('['.repeat(1000)))).toBe('['.repeat(1000));
  });
});
