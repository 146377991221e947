/** The same deliveries over each kind of server. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { deliveryHeaders } from '@posthorn/signing';
import { atEnd } from '@posthorn/testing/at-end';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { fastifyReceiver } from './adapters/fastify.ts';
import { nodeHandler } from './adapters/node.ts';
import { createReceiver, fetchHandler, type Receiver } from './index.ts';

const SECRET = 'whsec_of_the_receiver';

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;
}

/** A server of the Fetch API: each request of node:http is turned into one. */
function serveFetch(handler: (request: Request) => Response | Promise<Response>): Promise<string> {
  return listen((request, response) => {
    const body = request.method === 'GET' ? null : (ReadableStream.from(request) as ReadableStream<Uint8Array>);
    const headers = new Headers(request.headers as Record<string, string>);
    const init = { method: request.method ?? '', headers, body, duplex: 'half' } as RequestInit;
    void Promise.resolve(handler(new Request(`http://127.0.0.1${request.url}`, init))).then(async (reply) => {
      response.writeHead(reply.status, Object.fromEntries(reply.headers)).end(await reply.text());
    });
  });
}

const SERVERS: Record<string, (receiver: Receiver) => Promise<string>> = {
  'node:http': (receiver) => listen(nodeHandler(receiver)),
  express: (receiver) => listen(express().post('/webhooks', nodeHandler(receiver))),
  'express with express.raw': (receiver) =>
    listen(
      express()
        .use(express.raw({ type: '*/*', limit: '2mb' }))
        .post('/webhooks', nodeHandler(receiver)),
    ),
  fastify: async (receiver) => {
    const app = fastify();
    await app.register(fastifyReceiver(receiver, '/webhooks'));
    // Another route of the app keeps its parser of bodies.
    app.post('/other', async (request) => request.body);
    atEnd(() => app.close());
    return `${await app.listen({ port: 0, host: '127.0.0.1' })}/webhooks`;
  },
  'a fetch handler': (receiver) => serveFetch(fetchHandler(receiver)),
  Hono: (receiver) => {
    const handle = fetchHandler(receiver);
    const app = new Hono().post('/webhooks', (c) => handle(c.req.raw));
    return serveFetch((request) => app.fetch(request));
  },
};

const body = JSON.stringify({
  id: 'evt_1',
  type: 'session.approved',
  created_at: '2026-01-01T00:00:00.000Z',
  environment: 'production',
  data: { id: 'session-1', status: 'approved', note: 'é\u2028' },
});
const signed = (text: string) =>
  deliveryHeaders(
    { id: 'dlv_1', eventId: 'evt_1', eventType: 'session.approved' },
    text,
    [SECRET],
    (Date.now() / 1000) | 0,
  );

describe.each(Object.keys(SERVERS))('over %s', (name) => {
  const start = async () => {
    const processed: string[] = [];
    const errors: unknown[] = [];
    const receiver = createReceiver({
      secrets: SECRET,
      onEvent: ({ id }, { deliveryId }) => void processed.push(`${id} ${deliveryId}`),
      onError: (error) => void errors.push(error),
    });
    const url = await SERVERS[name]!(receiver);
    const post = (text: string | ReadableStream, headers: Record<string, string>) =>
      fetch(url, { method: 'POST', body: text, headers, duplex: 'half' } as RequestInit);
    return { receiver, processed, errors, post, url };
  };
  it('a delivery is verified over its raw body, answered and processed', async () => {
    const { receiver, post, processed } = await start();
    expect((await post(body, signed(body))).status).toBe(200);
    await receiver.idle();
    expect(processed).toEqual(['evt_1 dlv_1']);
    expect((await post(`${body} `, signed(body))).status).toBe(400);
    expect((await post('{}', { 'content-type': 'application/json' })).status).toBe(200);
  });
  it('a body of more than 1 MiB gets 413, also without a Content-Length', async () => {
    const { post, processed } = await start();
    const large = 'x'.repeat(1024 * 1024 + 1);
    expect((await post(large, signed(large))).status).toBe(413);
    if (name === 'express with express.raw') return;
    const stream = ReadableStream.from([new TextEncoder().encode(large)]) as ReadableStream;
    expect((await post(stream, { 'content-type': 'application/json' })).status).toBe(413);
    expect(processed).toEqual([]);
  });
});

it('a delivery that something else has answered meanwhile is processed', async () => {
  const processed: string[] = [];
  let timeOut = () => {};
  const receiver = createReceiver({
    secrets() {
      timeOut();
      return [SECRET];
    },
    onEvent: ({ id }) => void processed.push(id),
  });
  const handle = nodeHandler(receiver);
  const handled = Promise.withResolvers<void>();
  const url = await listen((request, response) => {
    timeOut = () => void response.writeHead(503).write(' ');
    handle(request, response).then(handled.resolve, handled.reject);
  });
  expect((await fetch(url, { method: 'POST', body, headers: signed(body) })).status).toBe(503);
  await handled.promise;
  expect(processed).toEqual(['evt_1']);
  await receiver.idle();
});

it('a delivery whose response a middleware fails to send is processed', async () => {
  const processed: string[] = [];
  const receiver = createReceiver({ secrets: SECRET, onEvent: ({ id }) => void processed.push(id) });
  const handle = nodeHandler(receiver);
  const failures: unknown[] = [];
  const url = await listen((request, response) => {
    response.writeHead = () => {
      throw new Error('of a middleware');
    };
    handle(request, response).catch((error) => {
      failures.push(error);
      response.destroy();
    });
  });
  await expect(fetch(url, { method: 'POST', body, headers: signed(body) })).rejects.toThrow();
  expect(failures).toMatchObject([{ message: 'of a middleware' }]);
  await receiver.idle();
  expect(processed).toEqual(['evt_1']);
});

it('a body that a parser has left unread is verified', async () => {
  const receiver = createReceiver({ secrets: SECRET, onEvent: () => undefined });
  const app = express().use((request, _response, next) => {
    // As the parsers of express 4 do for other types of content.
    request.body = {};
    next();
  });
  const url = await listen(app.post('/webhooks', nodeHandler(receiver)));
  expect((await fetch(url, { method: 'POST', body, headers: signed(body) })).status).toBe(200);
});

it('a body that something else reads at the same time gets 500', async () => {
  const receiver = createReceiver({ secrets: SECRET, onEvent: () => undefined, onError: () => undefined });
  const request = new Request('http://127.0.0.1/', { method: 'POST', body, headers: signed(body) });
  request.body?.getReader();
  expect((await fetchHandler(receiver)(request)).status).toBe(500);
});

it('a fetch handler does not fail if the sender goes away within the body', async () => {
  const errors: unknown[] = [];
  const receiver = createReceiver({
    secrets: SECRET,
    onEvent: () => undefined,
    onError: (error) => void errors.push(error),
  });
  const ended = new ReadableStream({ start: (controller) => controller.error(new Error('aborted')) });
  const init = { method: 'POST', body: ended, headers: signed(body), duplex: 'half' } as RequestInit;
  expect((await fetchHandler(receiver)(new Request('http://127.0.0.1/', init))).status).toBe(400);
  expect(errors).toEqual([]);
});

it('a body of which something else has read a part gets 500', async () => {
  const receiver = createReceiver({ secrets: SECRET, onEvent: () => undefined, onError: () => undefined });
  const app = express().use((request, _response, next) => {
    request.once('data', () => {
      request.pause();
      request.body = {};
      next();
    });
  });
  const url = await listen(app.post('/webhooks', nodeHandler(receiver)));
  expect((await fetch(url, { method: 'POST', body, headers: signed(body) })).status).toBe(500);
});

it('a body that something else has parsed gets 500, and the reason is reported', async () => {
  const errors: unknown[] = [];
  const receiver = createReceiver({
    secrets: SECRET,
    onEvent: () => undefined,
    onError: (error) => void errors.push(error),
  });
  const url = await listen(express().use(express.json()).post('/webhooks', nodeHandler(receiver)));
  expect((await fetch(url, { method: 'POST', body, headers: signed(body) })).status).toBe(500);
  expect(errors).toMatchObject([{ message: expect.stringContaining('signatures cover the raw body') }]);
});
