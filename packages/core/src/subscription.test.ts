/** What an operator may ask of a subscription. */
import { describe, expect, it } from '@jest/globals';
import { problemsOf } from '@posthorn/testing';
import {
  newSubscriptionSchema,
  OWN_SECRET,
  rotationSchema,
  SESSION_EVENT_TYPES,
  STATUS_REASONS,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  subscriptionPatchSchema,
  testDeliverySchema,
} from './index.ts';

const DAY = 86_400_000;
const least = { url: 'https://example.com', event_types: 'all', environment: 'both' };
const SECRET_PROBLEM = 'secret: Expected 16 to 256 printable ASCII characters';

it('statuses, their reasons and environments are those of the interface', () => {
  expect(SUBSCRIPTION_STATUSES).toEqual(['awaiting_validation', 'active', 'paused', 'refused']);
  expect(STATUS_REASONS).toEqual([
    'private_address',
    'local_address',
    'redirect',
    'unreachable',
    'consecutive_failures',
    'operator',
  ]);
  expect(SUBSCRIPTION_ENVIRONMENTS).toEqual(['sandbox', 'production', 'both']);
});

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
  const types = `event_types: Expected "all" or a non-empty list of ${SESSION_EVENT_TYPES.join(', ')}`;
  it.each([
    [{ url: '' }, 'url: Too small: expected string to have >=1 characters'],
    [{ url: 'x'.repeat(2_049) }, 'url: Too big: expected string to have <=2048 characters'],
    [{ event_types: [] }, types],
    [{ event_types: 'some' }, types],
    [{ event_types: ['webhook.test'] }, types],
    [{ event_types: ['all'] }, types],
    [{ environment: 'test' }, 'environment: Invalid option: expected one of "sandbox"|"production"|"both"'],
    [{ description: 'x'.repeat(1_001) }, 'description: Too big: expected string to have <=1000 characters'],
    [{ secret: '!'.repeat(15) }, SECRET_PROBLEM],
    [{ secret: '!'.repeat(257) }, SECRET_PROBLEM],
    [{ secret: `${'a'.repeat(20)} ` }, SECRET_PROBLEM],
    [{ secret: `é${'a'.repeat(20)}` }, SECRET_PROBLEM],
    [{ status: 'active' }, ': Unrecognized key: "status"'],
  ])('with %j is refused: %s', (change, problem) => {
    expect(problemsOf(newSubscriptionSchema, { ...least, ...change })).toEqual([problem]);
  });
  it('takes every printable character in a secret, and no other', () => {
    for (let code = 0; code < 256; code++) {
      const secret = String.fromCharCode(code).repeat(16);
      expect([code, OWN_SECRET.test(secret)]).toEqual([code, code >= 0x21 && code <= 0x7e]);
    }
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
