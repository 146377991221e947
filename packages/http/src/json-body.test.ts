/** JSON bodies over real connections: limits, media types, and budgets shared among callers. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { createBudget, setPrincipal } from './index.ts';
import { jsonBody } from './json-body.ts';
import { json, serve } from './test-service.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

describe('json body', () => {
  const echo = () =>
    serve((app) => {
      app.post('/', jsonBody({ maxBytes: 100 }), (request, response) => void response.json(request.body));
    });
  it.each([
    ['not JSON', json('{'), 400, 'invalid_json'],
    ['empty', json(''), 400, 'invalid_json'],
    ['not UTF-8', json(Buffer.from([0x22, 0xff, 0x22])), 400, 'invalid_json'],
    ['too large', json(JSON.stringify('x'.repeat(200))), 413, 'body_too_large'],
    ['of another type', json('{}', 'text/plain'), 415, 'unsupported_media_type'],
    ['of a type that begins alike', json('{}', 'application/json5'), 415, 'unsupported_media_type'],
    ['in another charset', json('{}', 'application/json; charset=latin1'), 415, 'unsupported_media_type'],
  ])('a body that is %s results in its problem document', async (_what, init, status, code) => {
    const response = await fetch(await echo(), init);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await response.json()).toMatchObject({
      type: 'about:blank',
      status,
      code,
      title: expect.any(String),
      detail: expect.any(String),
    });
  });
  it('refuses compressed bodies', async () => {
    const response = await fetch(await echo(), {
      ...json('{}'),
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    });
    expect(response.status).toBe(415);
  });
  it("a body beyond its caller's share of the budget is refused, with or without a length; each response frees its share", async () => {
    const budget = createBudget(200);
    const held: (() => void)[] = [];
    const url = await serve((app) => {
      app.use((request, response, next) => {
        setPrincipal(response, { name: String(request.headers['x-caller']) });
        next();
      });
      app.post('/', jsonBody({ maxBytes: 100, bodyBudgets: [{ budget, weigh: (bytes) => bytes }] }), (_, response) => {
        held.push(() => void response.json({}));
      });
    });
    const as = (caller: string, init: RequestInit) =>
      fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), 'x-caller': caller } });
    const body = JSON.stringify('x'.repeat(90));
    const first = as('a', json(body));
    await eventually('the first to be in flight', () => held.length === 1);
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(body));
        controller.close();
      },
    });
    for (const init of [json(body), { ...json(''), body: chunked, duplex: 'half' }]) {
      const refused = await as('a', init as RequestInit);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
      expect(await refused.json()).toMatchObject({ code: 'overloaded' });
    }
    const others = as('b', json(body));
    await eventually('the body of another caller to be in flight', () => held.length === 2);
    for (const answer of held) answer();
    expect([(await first).status, (await others).status]).toEqual([200, 200]);
    await eventually('the whole budget to be free', () => budget.shareFor('c').hasRoomFor(200));
  });
  /** Sends a body in chunks over a connection of its own. Returns what comes back. */
  function sendChunks(url: string, chunks: readonly string[]): () => string {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    let received = '';
    socket.on('data', (data) => {
      received += data.toString();
    });
    socket.on('error', () => undefined);
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    socket.write(head + chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join(''));
    return () => received;
  }
  it('cuts a body without a length off at the limit', async () => {
    const received = sendChunks(await echo(), ['x'.repeat(50), 'x'.repeat(51)]);
    await eventually('the response', () => received().includes('"The body is larger than 100 bytes."'));
    expect(received()).toMatch(/^HTTP\/1\.1 413 /);
  });
  it.each([
    ['that announces too much', { 'content-length': '20000000' }, 413],
    ['that becomes too large', { 'transfer-encoding': 'chunked' }, 413],
    ['on a connection for one request', { 'content-length': '20000000', connection: 'close' }, 413],
    ['of another type', { 'content-length': '20000000', 'content-type': 'text/plain' }, 415],
  ])('gets its response to a client that sends all before it reads: a body %s', async (_what, headers, status) => {
    const sending = request(await echo(), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
    });
    const sent = once(sending, 'finish');
    const response = once(sending, 'response') as Promise<[IncomingMessage]>;
    response.catch(() => undefined);
    // More than the buffers of both sockets hold.
    sending.end('x'.repeat(20_000_000));
    await sent;
    expect((await response)[0].statusCode).toBe(status);
    sending.destroy();
  });
  it.each([
    [1_000, 200, /^"x{998}"$/],
    [20_000, 413, /"The body came in 16384 pieces or more. Send larger chunks."/],
  ])('a body in %d chunks of a byte gets %d', async (count, status, text) => {
    const url = await serve((app) => {
      app.post('/', jsonBody({ maxBytes: 100_000 }), (request, response) => void response.json(request.body));
    });
    const received = sendChunks(url, [...JSON.stringify('x'.repeat(count - 2)), '']);
    await eventually('the response', () => text.test(received().split('\r\n\r\n')[1]?.trim() ?? ''));
    expect(received()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });
  it.each([
    'application/json; charset=UTF-8',
    'Application/JSON ; version=1;charset="utf8"',
    'application/json;odata=verbose',
    'application/json;',
  ])('a valid body is parsed as UTF-8: %s', async (type) => {
    const response = await fetch(await echo(), json('{"a":"é"}', type));
    expect(await response.json()).toEqual({ a: 'é' });
  });
});
