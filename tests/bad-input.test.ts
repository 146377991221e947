/**
 * Random and malformed input to every route of every app: each gets a clear response, nothing breaks, and accepted
 * events arrive.
 */
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type Receiver } from '@posthorn/testing';
import fc from 'fast-check';
import { ownReceiver, ownWorld } from './own.ts';
import { OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
let subscriptionId: string;
beforeEach(async () => {
  on = await ownWorld({ env: { OPERATOR_RATE_LIMIT: '0', RELEASE_RATE: '10000' } });
  to = await ownReceiver();
  subscriptionId = (await on.subscribe(to.url)).id;
});

/** Texts that are hard to parse correctly. */
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
  app: 'ingest' | 'console' | 'worker';
  method: string;
  path: string;
}
let targets: Target[];
beforeEach(async () => {
  // The worker has no OpenAPI document.
  targets = ['/healthz', '/readyz', '/metrics', '/v1/events', '/{id}'].flatMap((path) =>
    ['GET', 'POST', 'DELETE'].map((method): Target => ({ app: 'worker', method, path })),
  );
  for (const app of ['ingest', 'console'] as const) {
    const { paths } = (await (await fetch(`${urlOf(app)}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, unknown>>;
    };
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) targets.push({ app, method: method.toUpperCase(), path });
    }
  }
});
const urlOf = (app: Target['app']) =>
  app === 'ingest' ? on.ingestUrls[0]! : app === 'worker' ? on.workerUrls[0]! : on.consoleUrl;

async function send({ app, method, path }: Target, id: string, query: string, body: string | Uint8Array | undefined) {
  const response = await fetch(urlOf(app) + path.replace('{id}', encodeURIComponent(id)) + query, {
    method,
    headers: {
      authorization: `Bearer ${app === 'ingest' ? PUBLISHER_KEY : OPERATOR_TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined || method === 'GET' ? {} : { body: body as string }),
  });
  const type = response.headers.get('content-type') ?? '';
  // A stream has no end.
  if (type === 'text/event-stream') await response.body?.cancel();
  const text = type === 'text/event-stream' ? '' : await response.text();
  return { status: response.status, text, type };
}
/** Checks that the status is below 500 and that a problem document explains an error. */
function expectClear(target: Target, answer: Awaited<ReturnType<typeof send>>): void {
  const { status, text, type } = answer;
  if (status >= 500) throw new Error(`${target.method} ${target.path} returned ${status}: ${text}`);
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
  it('answers any input with a status below 500, and each error with a problem document', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), ids, queries, fc.option(bodies, { nil: undefined }), async (n, id, query, body) => {
        const target = targets[n % targets.length]!;
        expectClear(target, await send(target, id, query, body));
      }),
      { numRuns: 1_000 },
    );
    for (const target of targets)
      for (const body of corpus) expectClear(target, await send(target, subscriptionId, '', body));
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('a period that ends before it begins', () => {
  it.each(['deliveries', 'audit', 'subscriptions/{id}/failed-deliveries'])('is refused: %s', async (list) => {
    const query = 'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z';
    const { status, body } = await on.operate('GET', `/v1/${list.replace('{id}', subscriptionId)}?${query}`);
    expect([status, body.errors]).toEqual([
      422,
      [{ path: 'to', message: 'Expected an instant that is not before from' }],
    ]);
  });
});

/** Sends bytes over a new connection, and leaves it open. */
function sendBytes(url: string, bytes: string | Buffer) {
  const { hostname, port } = new URL(url);
  let text = '';
  const socket = connect(Number(port), hostname, () => socket.write(bytes));
  socket.on('data', (data) => {
    text += data;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, text: () => text, closed };
}

describe('malformed HTTP', () => {
  const host = 'Host: x\r\n';
  const authorized = `Authorization: Bearer ${PUBLISHER_KEY}\r\nContent-Type: application/json\r\n`;
  const post = `POST /v1/events HTTP/1.1\r\n${host}${authorized}`;
  const cases: Record<string, string | Buffer> = {
    nothing: '',
    garbage: Buffer.from(Array.from({ length: 2_000 }, (_, i) => (i * 7919) % 256)),
    'half a request line': 'POST /v1/ev',
    'half a header': `${post}X-`,
    'a body that never comes': `${post}Content-Length: 100\r\n\r\n{`,
    'a length and chunks': `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    'a negative length': `${post}Content-Length: -1\r\n\r\n{}`,
    'a length beyond all numbers': `${post}Content-Length: ${'9'.repeat(40)}\r\n\r\n{}`,
    'a chunk that is no chunk': `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n`,
    'too many headers': `GET /healthz HTTP/1.1\r\n${host}${'X: y\r\n'.repeat(50_000)}\r\n`,
    'a long header': `GET /healthz HTTP/1.1\r\n${host}X: ${'y'.repeat(1_000_000)}\r\n\r\n`,
    'a long path': `GET /${'y'.repeat(1_000_000)} HTTP/1.1\r\n${host}\r\n`,
    'an unknown method': `BREW /v1/events HTTP/1.1\r\n${host}\r\n`,
    'an upgrade': `GET /v1/events HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    'a proxy request': `GET http://169.254.169.254/ HTTP/1.1\r\n${host}\r\n`,
    'a tunnel': `CONNECT 127.0.0.1:6379 HTTP/1.1\r\n${host}\r\n`,
    'many requests in one': `GET /healthz HTTP/1.1\r\n${host}\r\n`.repeat(500),
    'an old protocol': 'GET /healthz HTTP/0.9\r\n\r\n',
    TLS: Buffer.from('16030100c8010000c40303', 'hex'),
  };
  /** No response is possible before more of these has arrived. */
  const incomplete = ['nothing', 'half a request line', 'half a header', 'a body that never comes'];
  it.each(Object.keys(cases))('does not disturb other connections: %s', async (name) => {
    const apps = ['ingest', 'console', 'worker'] as const;
    for (const app of apps) {
      const { socket, text, closed } = sendBytes(urlOf(app), cases[name]!);
      if (!incomplete.includes(name))
        await eventually('a response, or the end of the connection', () => text() !== '' || socket.destroyed);
      // While the connection is open, the app serves others.
      expect((await fetch(`${urlOf(app)}/healthz`)).status).toBe(200);
      socket.end();
      await closed;
      expect(text()).not.toMatch(/^HTTP\/1\.1 (500|2\d\d Connection)/m);
    }
  });
});

describe('an event with one field replaced', () => {
  it('is refused naming that field, or accepted and delivered', async () => {
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
      const arrived = new Set(to.requests.filter(isDelivery).map(({ body }) => JSON.parse(body).id));
      return accepted.every((id) => arrived.has(id));
    });
  });
});
