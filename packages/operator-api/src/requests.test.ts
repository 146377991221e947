/** The bodies that the operator API accepts. */
import { describe, expect, it } from '@jest/globals';
import { EVENT_TYPES, newSubscriptionId } from '@posthorn/core';
import { problemsOf } from '@posthorn/testing';
import {
  bulkResumeSchema,
  listenQuerySchema,
  newReplaySchema,
  newSubscriptionSchema,
  rotationSchema,
  subscriptionPatchSchema,
  testDeliverySchema,
} from './index.ts';

const DAY = 86_400_000;
const least = { url: 'https://example.com', event_types: 'all', environment: 'both' };
const INVISIBLE_PROBLEM = 'url: Expected a URL without invisible characters, such as a zero-width space';
const SECRET_PROBLEM = 'secret: Expected 16 to 256 printable ASCII characters';

describe('a new subscription', () => {
  it.each([
    least,
    { ...least, environment: 'sandbox', description: 'x'.repeat(1_000), secret: '!'.repeat(16) },
    { ...least, environment: 'production', description: '', secret: '~'.repeat(256), url: 'x'.repeat(2_048) },
  ])('may be %j', (body) => {
    expect(newSubscriptionSchema.parse(body)).toEqual(body);
  });
  it('keeps the chosen types once each, in the order of the specification', () => {
    const types = ['session.declined', 'session.created', 'session.declined'];
    const { event_types } = newSubscriptionSchema.parse({ ...least, event_types: types });
    expect(event_types).toEqual(['session.created', 'session.declined']);
  });
  it('may choose every type of the specification, also webhook.test alone', () => {
    for (const event_types of [[...EVENT_TYPES], ['webhook.test']])
      expect(newSubscriptionSchema.parse({ ...least, event_types }).event_types).toEqual(event_types);
  });
  const types = `event_types: Expected "all" or a non-empty list of ${EVENT_TYPES.join(', ')}`;
  it.each([
    [{ url: '' }, 'url: Too small: expected string to have >=1 characters'],
    [{ url: 'x'.repeat(2_049) }, 'url: Too big: expected string to have <=2048 characters'],
    [{ event_types: [] }, types],
    [{ event_types: 'some' }, types],
    [{ event_types: ['all'] }, types],
    [{ environment: 'test' }, 'environment: Invalid option: expected one of "sandbox"|"production"|"both"'],
    [{ description: 'x'.repeat(1_001) }, 'description: Too big: expected string to have <=1000 characters'],
    [{ url: 'https://a.example/\ud800' }, 'url: Expected text without half of a surrogate pair'],
    [{ url: 'https://a.example/\u200b' }, INVISIBLE_PROBLEM],
    [{ url: 'https://a.example/\u202egnp' }, INVISIBLE_PROBLEM],
    [{ url: 'https://a.example/\u2003' }, INVISIBLE_PROBLEM],
    [{ description: '\udc00' }, 'description: Expected text without half of a surrogate pair'],
    [{ secret: '!'.repeat(15) }, SECRET_PROBLEM],
    [{ secret: '!'.repeat(257) }, SECRET_PROBLEM],
    [{ secret: `${'a'.repeat(20)} ` }, SECRET_PROBLEM],
    [{ secret: `é${'a'.repeat(20)}` }, SECRET_PROBLEM],
    [{ status: 'active' }, ': Unrecognized key: "status"'],
  ])('with %j is refused: %s', (change, problem) => {
    expect(problemsOf(newSubscriptionSchema, { ...least, ...change })).toEqual([problem]);
  });
});

describe('a change', () => {
  it.each([{ url: 'x' }, { event_types: ['session.created'] }, { environment: 'both' }, { description: '' }])(
    'may be %j',
    (patch) => {
      expect(subscriptionPatchSchema.parse(patch)).toEqual(patch);
    },
  );
  it.each([
    [{}, ': Expected at least one field to change'],
    [{ secret: 'a'.repeat(20) }, ': Unrecognized key: "secret"'],
    [{ url: 1 }, 'url: Invalid input: expected string, received number'],
  ])('%j is refused: %s', (patch, problem) => {
    expect(problemsOf(subscriptionPatchSchema, patch)).toContain(problem);
  });
});

describe('the overlap of a rotation', () => {
  it.each([
    [{}, DAY],
    [{ overlap: '90s' }, 90_000],
    [{ overlap: '0s' }, 0],
    [{ overlap: '0ms' }, 0],
    [{ overlap: '30d' }, 30 * DAY],
  ])('of %j is %i ms', (body, overlap) => {
    expect(rotationSchema.parse(body)).toEqual({ overlap });
  });
  it.each(['', '0', '00s', '0sx', 'x0s', '10', '31d', `${30 * DAY + 1}ms`])('may not be %j', (overlap) => {
    expect(problemsOf(rotationSchema, { overlap })).toEqual([
      'overlap: Expected a number and ms, s, m, h or d, such as 24h; at most 30d',
    ]);
  });
  it('stands alone in the body', () => {
    expect(problemsOf(rotationSchema, { until: 1 })).toEqual([': Unrecognized key: "until"']);
  });
});

describe('a test delivery', () => {
  it('may name an environment, and nothing else', () => {
    expect(testDeliverySchema.parse({})).toEqual({});
    expect(testDeliverySchema.parse({ environment: 'production' })).toEqual({ environment: 'production' });
    expect(problemsOf(testDeliverySchema, { environment: 'both' })).toHaveLength(1);
    expect(problemsOf(testDeliverySchema, { type: 'x' })).toEqual([': Unrecognized key: "type"']);
  });
});

describe('a bulk replay', () => {
  const subscription_id = newSubscriptionId();
  const [earlier, later] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'];
  it.each([
    [{}, {}],
    [{ from: earlier }, { from: Date.parse(earlier) }],
    [{ to: earlier }, { to: Date.parse(earlier) }],
    [
      { from: earlier, to: later },
      { from: Date.parse(earlier), to: Date.parse(later) },
    ],
    [
      { from: earlier, to: earlier },
      { from: Date.parse(earlier), to: Date.parse(earlier) },
    ],
  ])('the time %j is read as %j', (time, ms) => {
    expect(newReplaySchema.parse({ subscription_id, ...time })).toEqual({ subscription_id, canary: false, ...ms });
  });

  it.each([
    [{ from: later, to: earlier }, 'to: Expected an instant that is not before from'],
    [{ subscription_id: 'sub_1' }, 'subscription_id: Expected the id of a subscription'],
    [{ from: 'yesterday' }, 'from: Expected an ISO 8601 instant with a zone, such as 2026-01-31T12:00:00Z'],
    [{ status: 'failed' }, ': Unrecognized key: "status"'],
  ])('%j is refused: %s', (change, problem) => {
    expect(problemsOf(newReplaySchema, { subscription_id, ...change })).toContain(problem);
  });
});

describe('a query of new events of the sandbox', () => {
  it('names a type that publishers may send', () => {
    const query = { event_type: 'session.approved' };
    expect(listenQuerySchema.parse(query)).toEqual(query);
    expect(problemsOf(listenQuerySchema, { event_type: 'webhook.test' })).toEqual([
      expect.stringMatching(/^event_type: Invalid option/),
    ]);
  });
});

describe('a bulk resume', () => {
  it.each(['consecutive_failures', 'operator', 'unreachable'])('may be of all paused for %s', (status_reason) => {
    expect(bulkResumeSchema.parse({ status_reason })).toMatchObject({ status_reason });
  });
});
