/** The HTTP server over real connections: what is not valid HTTP, and a graceful stop. */
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import type { Express } from 'express';
import { startService } from './test-service.ts';

describe('what is not valid HTTP', () => {
  const host = 'Host: x\r\n';
  it.each([
    ['no Host header', 'GET / HTTP/1.1\r\n\r\n', 400, 'bad_request'],
    ['an unknown method', `BREW / HTTP/1.1\r\n${host}\r\n`, 400, 'bad_request'],
    ['too large a header', `GET / HTTP/1.1\r\n${host}X: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['an expectation', `GET / HTTP/1.1\r\n${host}Expect: more\r\n\r\n`, 417, 'expectation_failed'],
    ['a URL without a path', `GET http://[::1/ HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, 400, 'bad_request'],
  ])('gets a problem document: %s', async (_what, request, status, code) => {
    const service = await startService(() => undefined);
    const socket = connect(Number(new URL(service.url()).port), '127.0.0.1');
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk)).write(request);
    await once(socket, 'end');
    const [head = '', body = ''] = Buffer.concat(received).toString().split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\\ncontent-type: application/problem\\+json`, 'i'));
    expect(body).toContain(`"code":"${code}"`);
  });
});

describe('a start', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1:0: this machine does not have this IP. Set HOST.'],
    ['::ffff:192.0.2.1', '[::ffff:192.0.2.1]:0: this machine does not have this IP. Set HOST.'],
    ['no such name', 'no such name:0: no such name. Set HOST to an IP.'],
  ])('says why it cannot listen, and which setting to change: %s', async (HOST, said) => {
    await expect(startService(() => undefined, { HOST })).rejects.toThrow(`Cannot listen on ${said}`);
  });
});

describe('an idle connection', () => {
  it.each([
    ['about a minute', [], 66_000],
    ['65 minutes if a proxy opened it', ['127.0.0.0/8'], 3_900_000],
  ])('is kept for %s, and the next request has the limit of any other', async (_what, TRUSTED_PROXIES, idleMs) => {
    const timeouts: (number | undefined)[] = [];
    const routes = (app: Express) =>
      void app.get('/', ({ socket }, response) => {
        timeouts.push(socket.timeout);
        response.once('finish', () => timeouts.push(socket.timeout)).end('');
      });
    const { hostname, port } = new URL((await startService(routes, { TRUSTED_PROXIES })).url());
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let calls = 0; calls < 2; calls++) await text((await once(get({ hostname, port, agent }), 'response'))[0]);
    agent.destroy();
    expect(timeouts).toEqual([120_000, idleMs, 120_000, idleMs]);
  });
});

describe('stop', () => {
  it('finishes requests in flight, then closes; a second stop does nothing', async () => {
    const begun = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const service = await startService((app) => {
      app.get('/slow', async (_request, response) => {
        begun.resolve();
        await finish.promise;
        response.end('done');
      });
    });
    const url = service.url();
    const answer = fetch(`${url}/slow`);
    await begun.promise;
    const stopped = service.stop(60_000);
    finish.resolve();
    const response = await answer;
    expect(response.headers.get('connection')).toBe('close');
    expect(await response.text()).toBe('done');
    await stopped;
    await service.stop(1);
    await expect(fetch(url)).rejects.toThrow();
  });
  it('answers a request that was just sent on a connection kept alive', async () => {
    const service = await startService((app) => {
      app.get('/', (_request, response) => void response.end('done'));
    });
    const socket = connect(Number(new URL(service.url()).port), '127.0.0.1').setEncoding('utf8');
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    socket.write(request);
    expect(String(await once(socket, 'data'))).toContain('Connection: keep-alive');
    // The server has not read it yet when its stop begins.
    socket.write(request);
    const stopped = service.stop(60_000);
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200 .*Connection: close.*done/s);
    await stopped;
  });
  it.each(['', 'GET / HT', 'GET / HTTP/1.1\r\nHos'])(
    'does not wait for a connection that has sent %j',
    async (sent) => {
      const service = await startService(() => undefined);
      const socket = connect(Number(new URL(service.url()).port), '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      if (sent) await new Promise((written) => socket.write(sent, written));
      const closed = new Promise((resolve) => socket.resume().once('close', resolve));
      await service.stop(3_600_000);
      await closed;
    },
  );
  it('closes the connection of an unfinished request after the grace period', async () => {
    const service = await startService(() => undefined);
    const socket = connect(Number(new URL(service.url()).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.resume().once('close', resolve));
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n');
    await service.stop(50);
    await closed;
  });
});
