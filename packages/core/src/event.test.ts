/** The event: what a publisher may send, and what every receiver gets. */
import { describe, expect, it } from '@jest/globals';
import { problemsOf } from '@posthorn/testing';
import { z } from 'zod';
import {
  ENVIRONMENTS,
  EVENT_TYPES,
  eventBody,
  newTestEvent,
  parseJson,
  publishedEventSchema,
  SESSION_EVENT_TYPES,
  sessionSnapshotSchema,
} from './index.ts';

/** Specification, section 6. */
const SPECIFIED_TYPES = [
  'session.created',
  'session.started',
  'session.submitted',
  'session.in_review',
  'session.approved',
  'session.declined',
  'session.resubmission_requested',
  'session.expired',
  'session.cancelled',
];
/** Records hold the position of a type in this list. */
const STORED_TYPES = [...SPECIFIED_TYPES, 'webhook.test'];

const published = {
  id: 'evt_1',
  type: 'session.created',
  created_at: '2026-01-02T03:04:05Z',
  environment: 'sandbox',
  data: {
    id: 's',
    status: 'created',
    reference: 'r',
    country: 'FR',
    tier: 1,
    achieved_tier: 0,
    metadata: { user_id: 'u' },
    more: { a: [1] },
  },
};

describe('event types and environments', () => {
  it('are those of the specification, and the test', () => {
    expect(SESSION_EVENT_TYPES).toEqual(SPECIFIED_TYPES);
    expect(new Set(EVENT_TYPES)).toEqual(new Set(STORED_TYPES));
  });
  it('keep the positions that records hold: a new type goes to the end of EVENT_TYPES, behind webhook.test', () => {
    expect(EVENT_TYPES.slice(0, STORED_TYPES.length)).toEqual(STORED_TYPES);
    expect(ENVIRONMENTS).toEqual(['sandbox', 'production']);
  });
});

describe('a published event', () => {
  it('may have every field of the specification and more inside data, all kept unchanged', () => {
    expect(publishedEventSchema.parse(published)).toEqual(published);
  });
  it.each(SPECIFIED_TYPES)('may be of the type %s', (type) => {
    expect(problemsOf(publishedEventSchema, { ...published, type })).toEqual([]);
  });
  it('needs only type, environment, data.id and data.status', () => {
    const least = { type: 'session.created', environment: 'production', data: { id: 's', status: 'created' } };
    expect(publishedEventSchema.parse(least)).toEqual(least);
  });
  it.each(['a', 'A-Z.a_z:0~9', 'x'.repeat(128)])('may have the id %s', (id) => {
    expect(problemsOf(publishedEventSchema, { ...published, id })).toEqual([]);
  });
  const types = SPECIFIED_TYPES.join(', ');
  it.each([
    [{ id: '' }, 'id: Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -'],
    [{ id: 'a b' }, 'id: Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -'],
    [{ id: 'x'.repeat(129) }, 'id: Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -'],
    [{ id: 'é' }, 'id: Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -'],
    [{ type: 'webhook.test' }, 'type: webhook.test is made from the console alone'],
    [{ type: 'session.lost' }, `type: Expected one of ${types}`],
    [{ type: undefined }, `type: Expected one of ${types}`],
    [{ created_at: 'now' }, 'created_at: Expected an ISO 8601 instant with a zone, such as 2026-01-31T12:00:00Z'],
    [{ environment: 'both' }, 'environment: Invalid option: expected one of "sandbox"|"production"'],
    [{ extra: 1 }, ': Unrecognized key: "extra"'],
    [{ data: [] }, 'data: Invalid input: expected object, received array'],
  ])('is refused with %j: %s', (change, problem) => {
    expect(problemsOf(publishedEventSchema, { ...published, ...change })).toContain(problem);
  });
  it.each([
    [{ id: '' }, 'data.id: Too small: expected string to have >=1 characters'],
    [{ id: 'x'.repeat(257) }, 'data.id: Too big: expected string to have <=256 characters'],
    [{ status: '' }, 'data.status: Too small: expected string to have >=1 characters'],
    [{ status: 'x'.repeat(129) }, 'data.status: Too big: expected string to have <=128 characters'],
    [{ status: undefined }, 'data.status: Invalid input: expected string, received undefined'],
    [{ reference: 1 }, 'data.reference: Invalid input: expected string, received number'],
    [{ country: 'fr' }, 'data.country: Expected two uppercase letters'],
    [{ country: 'F' }, 'data.country: Expected two uppercase letters'],
    [{ country: 'FRA' }, 'data.country: Expected two uppercase letters'],
    [{ tier: 1.5 }, 'data.tier: Expected an integer'],
    [{ tier: '1' }, 'data.tier: Expected an integer'],
    [{ achieved_tier: null }, 'data.achieved_tier: Expected an integer'],
    [{ metadata: { a: 1 } }, 'data.metadata.a: Expected a string'],
  ])('is refused with data %j: %s', (change, problem) => {
    expect(problemsOf(publishedEventSchema, { ...published, data: { ...published.data, ...change } })).toEqual([
      problem,
    ]);
  });
  it.each([null, [], 'text', 1])('is refused with metadata %j, which is no object', (metadata) => {
    const data = { ...published.data, metadata };
    expect(problemsOf(publishedEventSchema, { ...published, data })).toEqual(['data.metadata: Expected an object']);
  });
  it('gets 20 wrong values of metadata named, and the others counted', () => {
    const wrong = (count: number) => {
      const metadata = { good: 'text', ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, i])) };
      const parsed = publishedEventSchema.safeParse({ ...published, data: { ...published.data, metadata } });
      return parsed.error!.issues.map(({ path, message, ...issue }) => [path.join('.'), message, issue]);
    };
    expect(wrong(20)).toHaveLength(20);
    expect(wrong(20).at(-1)).toMatchObject(['data.metadata.key19', 'Expected a string', {}]);
    expect(wrong(22)).toHaveLength(21);
    expect(wrong(22).at(-1)).toMatchObject(['data.metadata', 'More values are wrong', { params: { more: 2 } }]);
  });
  it.each(['.', '..'])('is refused with the id %j, which no URL can contain', (id) => {
    expect(problemsOf(publishedEventSchema, { ...published, id })).toEqual([
      'id: Must not be . or .. because URLs cannot contain them as a segment',
    ]);
  });
  it.each(['...', '.a', 'a.'])('may have the id %j', (id) => {
    expect(problemsOf(publishedEventSchema, { ...published, id })).toEqual([]);
  });
  it('may have an id of 256 characters and a status of 128 in its data', () => {
    const data = { id: 'x'.repeat(256), status: 'x'.repeat(128) };
    expect(problemsOf(publishedEventSchema, { ...published, data })).toEqual([]);
  });
  it.each([
    ['12345678901234567890', true],
    ['-12345678901234567890', true],
    ['2.0', true],
    ['2E0', true],
    ['1e+3', true],
    ['1.50', false],
    ['1e-1', false],
    ['12345678901234567890.5', false],
    ['1e400', false],
  ])('keeps a tier of %s, which a double would change; it is an integer: %j', (number, isInteger) => {
    const snapshot = parseJson(`{"id":"s","status":"x","tier":${number}}`);
    expect(problemsOf(sessionSnapshotSchema, snapshot)).toEqual(isInteger ? [] : ['tier: Expected an integer']);
  });
  it('has a JSON schema that describes its fields', () => {
    // The integer is a custom type; its `override` is what the OpenAPI documents show.
    const jsonSchema = z.toJSONSchema(sessionSnapshotSchema, {
      unrepresentable: 'any',
      override: (context) => Object.assign(context.jsonSchema, z.globalRegistry.get(context.zodSchema)?.override),
    });
    expect(jsonSchema).toMatchObject({
      properties: {
        id: { type: 'string', description: 'Session identifier' },
        metadata: { type: 'object', additionalProperties: { type: 'string' } },
        status: { type: 'string', description: 'Session status at the time of the event' },
        tier: { type: 'integer' },
        achieved_tier: { type: 'integer' },
      },
    });
  });
});

describe('a delivered event', () => {
  it('is compact JSON with its keys in the order of the specification', () => {
    const event = {
      id: 'evt_1',
      type: 'session.approved',
      createdAt: '2026-01-02T03:04:05.006Z',
      environment: 'sandbox',
      dataJson: '{"id":"s"}',
    } as const;
    expect(eventBody(event)).toBe(
      '{"id":"evt_1","type":"session.approved","created_at":"2026-01-02T03:04:05.006Z","environment":"sandbox","data":{"id":"s"}}',
    );
  });
});

describe('a test event', () => {
  const nowMs = Date.parse('2026-01-02T03:04:05.006Z');
  it.each(ENVIRONMENTS)('has a valid snapshot, marked as a sample, in %s', (environment) => {
    const body = JSON.parse(eventBody(newTestEvent(environment, nowMs)));
    expect(body).toMatchObject({ type: 'webhook.test', created_at: '2026-01-02T03:04:05.006Z', environment });
    expect(body.id).toMatch(/^evt_/);
    expect(problemsOf(sessionSnapshotSchema, body.data)).toEqual([]);
    expect(body.data).toEqual({
      id: '00000000-0000-4000-8000-000000000000',
      reference: 'sample',
      status: 'approved',
      country: 'FR',
      tier: 2,
      achieved_tier: 2,
      metadata: { user_id: 'sample', sample: 'true' },
    });
  });
});
