/** Bad input by the hundred, to every route of both APIs: each gets a clear answer, nothing breaks, and what was accepted arrives. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type Receiver, startReceiver } from '@posthorn/testing';
import fc from 'fast-check';
import { OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, startWorld, type World } from './world.ts';

let on: World;
let to: Receiver;
let subscriptionId: string;
beforeAll(async () => {
  on = await startWorld({ env: { OPERATOR_RATE_LIMIT: '0', ATTEMPT_TIMEOUT: '300ms', RELEASE_RATE: '10000' } });
  to = await startReceiver();
  subscriptionId = (await on.subscribe(to.url)).id;
});
afterAll(async () => {
  await on.stop();
  await to.close();
});

/** Texts that are not what they seem. */
const corpus = [
  '',
  'null',
  '0',
  '"text"',
  '[]',
  '{}',
  '{"',
  '{"a":1,}',
  '\ufeff{}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"url":{"toString":"x"},"event_types":{"length":1},"environment":["sandbox"]}',
  `{"id":"e","id":"f","type":"session.created","environment":"sandbox","data":{"id":"s","status":"x"}}`,
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  `{"data":${'{"a":'.repeat(500)}1${'}'.repeat(500)}}`,
  `{"type":"session.created","environment":"sandbox","data":{"id":"s","status":"x","tier":1e400}}`,
  `{"type":"session.created","environment":"sandbox","data":{"id":"s","status":"x","tier":${'9'.repeat(5_000)}}}`,
  '{"type":"session.created","environment":"sandbox","data":{"id":"\\ud800","status":"\\udfff"}}',
  '{"type":"session.created","environment":"sandbox","data":{"id":"\\u0000","status":"x","__proto__":{"a":1}}}',
  '{"type":"session.created","environment":"sandbox","data":{"id":"s","status":"x","metadata":{"__proto__":"x"}}}',
  '{"type":"session.created","environment":"sandbox","created_at":"2026-02-30T00:00:00Z","data":{"id":"s","status":"x"}}',
  '{"token":"\\u0000"}',
  `{"subscription_id":"sub_${'A'.repeat(22)}","from":"0000-01-01T00:00:00Z","to":"9999-12-31T23:59:59Z"}`,
  '{"overlap":"1e999d"}',
  '{"events":[null,1,"x",[],{},{"id":1}]}',
];

interface Target {
  app: 'ingest' | 'console';
  method: string;
  path: string;
}
let targets: Target[];
beforeAll(async () => {
  targets = [];
  for (const app of ['ingest', 'console'] as const) {
    const { paths } = (await (await fetch(`${urlOf(app)}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, unknown>>;
    };
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) targets.push({ app, method: method.toUpperCase(), path });
    }
  }
});
const urlOf = (app: Target['app']) => (app === 'ingest' ? on.ingestUrls[0]! : on.consoleUrl);

async function send({ app, method, path }: Target, id: string, query: string, body: string | Uint8Array | undefined) {
  const response = await fetch(urlOf(app) + path.replace('{id}', encodeURIComponent(id)) + query, {
    method,
    headers: {
      authorization: `Bearer ${app === 'ingest' ? PUBLISHER_KEY : OPERATOR_TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined || method === 'GET' ? {} : { body: body as string }),
  });
  const text = await response.text();
  return { status: response.status, text, type: response.headers.get('content-type') ?? '' };
}
/** Below 500, and a problem says what it is. */
function expectClear(target: Target, answer: Awaited<ReturnType<typeof send>>): void {
  const { status, text, type } = answer;
  if (status >= 500) throw new Error(`${target.method} ${target.path} answered ${status}: ${text}`);
  if (status < 400) return;
  expect(type).toContain('application/problem+json');
  expect(JSON.parse(text)).toMatchObject({ status, code: expect.any(String), detail: expect.any(String) });
}

const ids = fc.oneof(
  fc.constantFrom(
    'sub_AAAAAAAAAAAAAAAAAAAAAA',
    'dlv_AAAAAAAAAAAAAAAAAAAAAAAAAA',
    'rpl_',
    '..',
    '%',
    '__proto__',
    '\u0000',
    'meta',
  ),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
);
const queries = fc.oneof(
  fc.constantFrom(
    '',
    '?limit=-1',
    '?limit=1e9',
    '?cursor=AAAA',
    '?from=x&to=y',
    '?status=&status=x',
    '?__proto__=1',
    '?%',
    '?a[b]=c',
  ),
  fc
    .dictionary(
      fc.constantFrom(
        'limit',
        'cursor',
        'status',
        'from',
        'to',
        'event_id',
        'subscription_id',
        'attempt',
        'action',
        'x',
      ),
      fc.string({ maxLength: 30 }),
    )
    .map((fields) => `?${new URLSearchParams(fields)}`),
);
const bodies = fc.oneof(fc.constantFrom(...corpus), fc.json({ maxDepth: 4 }), fc.uint8Array({ maxLength: 200 }));

describe('every route', () => {
  it('answers clearly whatever comes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), ids, queries, fc.option(bodies, { nil: undefined }), async (n, id, query, body) => {
        const target = targets[n % targets.length]!;
        expectClear(target, await send(target, id, query, body));
      }),
      { numRuns: 3_000 },
    );
    for (const target of targets)
      for (const body of corpus) expectClear(target, await send(target, subscriptionId, '', body));
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  }, 60_000);
});

describe('an event with one field replaced', () => {
  it('is refused by that field, or accepted and delivered as it came', async () => {
    // The tries above may have changed it.
    subscriptionId = (await on.subscribe(to.url, { description: 'for mutated events' })).id;
    const before = to.requests.length;
    const accepted: string[] = [];
    const values = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: 'binary' }), fc.constant(undefined));
    const paths = fc.constantFrom(
      'id',
      'type',
      'created_at',
      'environment',
      'data',
      'data.id',
      'data.status',
      'data.tier',
      'data.country',
      'data.metadata',
      'data.extra',
      'extra',
    );
    await fc.assert(
      fc.asyncProperty(paths, values, async (path, value) => {
        const event: Record<string, unknown> = structuredClone(sampleEvent());
        const [first, second] = path.split('.') as [string, string?];
        if (second === undefined) event[first] = value;
        else (event[first] as Record<string, unknown>)[second] = value;
        const { status, body } = await on.publish(event);
        if (status === 202) accepted.push(body.id);
        else if (status === 422) {
          const named = body.errors.map((error: { path: string }) => error.path);
          expect(
            named.some((one: string) => one === path || one.startsWith(`${path}.`) || path.startsWith(`${one}.`)),
          ).toBe(true);
        } else expect([200, 409]).toContain(status);
      }),
      { numRuns: 300 },
    );
    expect(accepted.length).toBeGreaterThan(10);
    await eventually('all accepted to arrive', () => {
      const arrived = new Set(
        to.requests
          .slice(before)
          .filter(isDelivery)
          .map(({ body }) => JSON.parse(body).id),
      );
      return accepted.every((id) => arrived.has(id));
    });
  }, 60_000);
});
