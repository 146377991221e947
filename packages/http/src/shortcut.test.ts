/** A request that is served past express gets the same response as one that goes through it. */
import { connect } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { AppError } from '@posthorn/core';
import { loadSettings, sharedSettings } from '@posthorn/runtime';
import { eventually } from '@posthorn/testing';
import type { RequestHandler } from 'express';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createAuthFailures } from './auth-failures.ts';
import { createApi, requireBearer, serveApi } from './index.ts';
import { logged, logger } from './test-service.ts';

const KEY = 'shortcut-test-key-0123456789';

/** Starts a service with a route that does what the body says; `seen` has what its middleware saw. */
async function start() {
  const registry = new Registry();
  const failures = createAuthFailures({ registry, logger });
  const api = createApi({
    title: 'Test',
    description: '',
    security: { key: { type: 'http', scheme: 'bearer' } },
    guards: [requireBearer([{ name: 'somebody', key: KEY }], failures)],
  });
  api.tagged('Things').post('/v1/things', {
    summary: 'Does what the body says',
    body: z.object({ do: z.string() }),
    responses: { 202: { description: 'Done' } },
    async handle({ body, caller, request, response }) {
      if (body.do === 'refuse') throw new AppError('too_many_requests', 'Too many.', { retryAfterS: 7 });
      if (body.do === 'break') throw new TypeError('broken');
      if (body.do === 'begin') {
        response.write('a part');
        throw new TypeError('broken');
      }
      const { originalUrl, baseUrl, path, params, ip } = request;
      const seenUrls = [originalUrl, request.url].map((url) => url.replace(/\?.*/, ''));
      return { caller, seenUrls, baseUrl, path, params, ip, locals: response.locals };
    },
  });
  const seen: (string | undefined)[] = [];
  const watch: RequestHandler = (request, _response, next) => {
    seen.push(request.url);
    if (request.headers['x-throw'] === 'before') throw new TypeError('broken before');
    next();
  };
  const shared = sharedSettings(0);
  const settings = loadSettings(z.object(shared), {
    PORT: '0',
    SECRET_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  });
  let reachedExpress = 0;
  const service = serveApi({
    api,
    settings,
    registry,
    checkReady: async () => undefined,
    logger,
    before: [watch],
    addRoutes(app) {
      const router = app.router as unknown as { handle: (...args: unknown[]) => unknown };
      const handle = router.handle.bind(router);
      router.handle = (...args) => {
        reachedExpress += 1;
        return handle(...args);
      };
    },
  });
  await service.start();
  return { url: service.url(), seen, reachedExpress: () => reachedExpress, stop: () => service.stop(1_000) };
}

/** What a client sees of a response, without its time. */
async function responseTo(url: string, init: RequestInit) {
  try {
    const response = await fetch(url, init);
    const headers = Object.fromEntries(response.headers);
    delete headers.date;
    return { status: response.status, headers, body: await response.text() };
  } catch {
    return 'cut';
  }
}

const call = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

describe('shortcut', () => {
  it.each<[string, RequestInit, number | 'cut']>([
    ['a success', call({ do: 'it' }), 202],
    ['an expected error', call({ do: 'refuse' }), 429],
    ['a bug', call({ do: 'break' }), 500],
    ['a bug after the response has begun', call({ do: 'begin' }), 'cut'],
    ['a bug in the middleware before it', call({ do: 'it' }, { 'x-throw': 'before' }), 500],
    ['a body that is not JSON', call('{'), 400],
    ['a body of another type', call('{}', { 'content-type': 'text/plain' }), 415],
    ['an invalid body', call({}), 422],
    ['a wrong key', call({ do: 'it' }, { authorization: 'Bearer wrong' }), 401],
    ['another method', { method: 'PUT' }, 404],
  ])('%s gets the same response as through express', async (_what, init, status) => {
    const service = await start();
    const direct = await responseTo(`${service.url}/v1/things`, init);
    const isDirect = init.method === 'POST';
    expect(service.reachedExpress()).toBe(isDirect ? 0 : 1);
    const through = await responseTo(`${service.url}/v1/things?through`, init);
    expect(service.reachedExpress()).toBe(isDirect ? 1 : 2);
    expect(direct).toEqual(through);
    expect(direct === 'cut' ? direct : direct.status).toBe(status);
    expect(service.seen).toEqual(['/v1/things', '/v1/things?through']);
    if (status === 500) {
      const errors = logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request.failed');
      expect(errors.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /v1/things', 'POST /v1/things']);
    }
    await service.stop();
  });

  it('is not taken for another spelling of the path, nor with two hosts', async () => {
    const service = await start();
    for (const path of ['/v1/things/', '/V1/things', '//v1/things'])
      await responseTo(`${service.url}${path}`, call({ do: 'it' }));
    expect(service.reachedExpress()).toBe(3);
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.on('data', (data) => {
      text += data.toString();
    });
    socket.write('POST /v1/things HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n');
    await eventually('a response', () => text.includes('more than one Host header'));
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
    await service.stop();
  });
});
