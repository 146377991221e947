/** The HTTP side that both APIs share, over real connections: bodies, keys, problem documents, a graceful stop. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { AppError } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import type { Express } from 'express';
import { ReplyError } from 'ioredis';
import { Registry } from 'prom-client';
import {
  createAuthFailures,
  createBudget,
  createExpress,
  createHttpService,
  createLogger,
  type HttpService,
  holderOf,
  isStorageFailure,
  jsonBody,
  keepHolder,
  notFoundHandler,
  problemHandler,
  requireBearer,
} from './index.ts';

const logged: string[] = [];
const logger = createLogger({ app: 'test', level: 'info', destination: { write: (line) => void logged.push(line) } });
const limits = { maxClientConnections: 1_000, trustedProxies: [], registry: new Registry() };
let service: HttpService | undefined;
afterEach(async () => {
  await service?.stop(1_000);
  logged.length = 0;
});

async function serve(routes: (app: Express) => void): Promise<string> {
  const app = createExpress();
  routes(app);
  app.use(notFoundHandler, problemHandler(logger));
  service = createHttpService({ app, host: '127.0.0.1', port: 0, limits });
  await service.start();
  return service.url();
}
const json = (body: string | Buffer, type = 'application/json') => ({
  method: 'POST',
  headers: { 'content-type': type },
  body,
});

describe('requests sent without waiting for answers', () => {
  /** A service that answers nothing before `open` is called. */
  async function serveLater() {
    const gate = Promise.withResolvers<void>();
    let taken = 0;
    const url = await serve((app) => {
      app.all('/later', jsonBody({ limitBytes: 100_000 }), async (request, response) => {
        taken += 1;
        await gate.promise;
        response.json(request.body ?? null);
      });
    });
    return { url, open: gate.resolve, taken: () => taken };
  }
  /** Sends all at once and counts the answers, each of which starts with a number: see `numbered`. */
  function send(url: string, requests: string[]) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const answered: number[] = [];
    let [rest, closed] = ['', false];
    socket.on('data', (data) => {
      const answers = (rest + data.toString()).split('HTTP/1.1 200');
      rest = answers.pop()!;
      // The last one may not be complete.
      const last = /"(\d+)\.x*"$/.exec(rest);
      if (last) {
        answers.push(rest);
        rest = '';
      }
      for (const answer of answers) {
        const number = /"(\d+)\./.exec(answer)?.[1];
        if (number !== undefined) answered.push(Number(number));
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed = true;
    });
    socket.write(requests.join(''));
    return { socket, answered, closed: () => closed };
  }
  const numbered = (i: number, length: number) => {
    const body = JSON.stringify(`${i}.`.padEnd(length, 'x'));
    return `POST /later HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };

  it('are taken one after the other, read no further than some kilobytes ahead, and all answered', async () => {
    // In all, more than the system's buffers hold.
    const all = Array.from({ length: 400 }, (_, i) => i);
    const { url, open, taken } = await serveLater();
    const { socket, answered } = send(
      url,
      all.map((i) => numbered(i, 50_000)),
    );
    await eventually('the first to be taken', () => taken() === 1);
    for (let i = 0; i < 20; i++) expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
    expect(taken()).toBe(1);
    expect(socket.writableLength).toBeGreaterThan(0);
    open();
    await eventually('all answers', () => answered.length === all.length);
    expect(answered).toEqual(all);
    socket.destroy();
  });

  it('by tens of thousands over many connections: some of those are closed, the others are answered, and so is who waits', async () => {
    const { url, open } = await serveLater();
    // As many as are read from a connection at once, and more of them in all than may wait.
    const each = 500;
    const requests = Array.from({ length: each }, (_, i) => numbered(i, 4));
    const clients = Array.from({ length: 60 }, () => send(url, requests));
    await eventually('one to be closed', () => clients.some(({ closed }) => closed()));
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404);
    const others = clients.filter(({ closed }) => !closed());
    expect(others.length).toBeGreaterThan(5);
    // To answer some of them shows as much as to answer all.
    for (const { socket } of others.splice(5)) socket.destroy();
    open();
    await eventually('the others to be answered', () => others.every(({ answered }) => answered.length === each));
    for (const { socket } of clients) socket.destroy();
  });
});

describe('json body', () => {
  const echo = () =>
    serve((app) => {
      app.post('/', jsonBody({ limitBytes: 100 }), (request, response) => void response.json(request.body));
    });
  it.each([
    ['not JSON', json('{'), 400, 'invalid_json'],
    ['empty', json(''), 400, 'invalid_json'],
    ['not UTF-8', json(Buffer.from([0x22, 0xff, 0x22])), 400, 'invalid_json'],
    ['too large', json(JSON.stringify('x'.repeat(200))), 413, 'body_too_large'],
    ['of another type', json('{}', 'text/plain'), 415, 'unsupported_media_type'],
    ['in another charset', json('{}', 'application/json; charset=latin1'), 415, 'unsupported_media_type'],
  ])('a body that is %s is answered with its problem', async (_what, init, status, code) => {
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
  it('compressed bodies are refused', async () => {
    const response = await fetch(await echo(), {
      ...json('{}'),
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    });
    expect(response.status).toBe(415);
  });
  it('what finds no room beside the bodies of its caller is refused, with or without a length; others are not; room comes back with each response', async () => {
    const budget = createBudget(200);
    const held: (() => void)[] = [];
    const url = await serve((app) => {
      app.use((request, response, next) => {
        keepHolder(response, { name: String(request.headers['x-caller']), key: '' });
        next();
      });
      app.post('/', jsonBody({ limitBytes: 100, admissions: [{ budget, weigh: (bytes) => bytes }] }), (_, response) => {
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
    await eventually('all room to be back', () => budget.claimFor('c').hasRoomFor(200));
  });
  it('a body without a length is cut off at the limit', async () => {
    const endless = new ReadableStream({
      pull(controller) {
        controller.enqueue(Buffer.from(' '.repeat(64)));
      },
    });
    const response = await fetch(await echo(), {
      ...json(''),
      body: endless,
      duplex: 'half',
    } as unknown as RequestInit).catch((error: unknown) => error);
    if (response instanceof Response) expect(response.status).toBe(413);
  });
  it('a good one arrives, charset and all', async () => {
    const response = await fetch(await echo(), json('{"a":"é"}', 'application/json; charset=UTF-8'));
    expect(await response.json()).toEqual({ a: 'é' });
  });
});

describe('keys', () => {
  it('only a known key gets in, and whose it is is known', async () => {
    const url = await serve((app) => {
      app.use(
        requireBearer(
          [
            { name: 'a', key: 'key-a' },
            { name: 'b', key: 'key-b' },
          ],
          createAuthFailures({ registry: new Registry(), logger }),
        ),
      );
      app.get('/', (_request, response) => void response.json(holderOf(response)));
    });
    const get = (authorization?: string) =>
      fetch(url, { headers: authorization === undefined ? {} : { authorization } });
    for (const bad of [undefined, 'Bearer', 'Bearer key-', 'Bearer key-aa', 'Basic key-a', 'key-a']) {
      const response = await get(bad);
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
    expect(await (await get('bearer key-b')).json()).toMatchObject({ name: 'b' });
    expect(logged.join('')).not.toContain('key-');
  });
});

describe('problems', () => {
  it('an unknown route, a path that does not decode, a bug and a storage failure each get theirs', async () => {
    const url = await serve((app) => {
      app.get('/bug', () => {
        throw new Error('secret detail');
      });
      app.get('/redis', () => {
        throw new ReplyError('OOM command not allowed when used memory > maxmemory');
      });
      app.get('/limited', () => {
        throw new AppError('too_many_requests', 'Slow down.', { retryAfterS: 7 });
      });
      app.get('/item/:id', (_request, response) => void response.end());
    });
    expect((await fetch(`${url}/none`)).status).toBe(404);
    expect((await fetch(`${url}/item/%zz`)).status).toBeLessThan(500);
    const bug = await fetch(`${url}/bug`);
    expect([bug.status, await bug.text()]).toEqual([500, expect.not.stringContaining('secret detail')]);
    const redis = await fetch(`${url}/redis`);
    expect([redis.status, redis.headers.get('retry-after')]).toEqual([503, '5']);
    expect((await fetch(`${url}/limited`)).headers.get('retry-after')).toBe('7');
    expect(logged.filter((line) => line.includes('request.failed'))).toHaveLength(1);
  });
  it.each([
    new ReplyError('OOM command not allowed'),
    new ReplyError("READONLY You can't write against a read only replica. script: f00, on @user_script:1."),
    new ReplyError('LOADING Redis is loading'),
    new ReplyError('UNBLOCKED force unblock from blocking operation'),
    new ReplyError('EXECABORT Transaction discarded because of previous errors.'),
    new ReplyError('ERR max number of clients reached'),
    new Error('Connection is closed.'),
    new Error('Command timed out'),
    Object.assign(new Error('Command aborted due to connection close'), { name: 'AbortError' }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
  ])('%s means that storage is away', (error) => {
    expect(isStorageFailure(error)).toBe(true);
  });
  it.each([
    new TypeError('x is not a function'),
    new ReplyError("ERR unknown command 'HSETT'"),
    new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value'),
    new DOMException('This operation was aborted', 'AbortError'),
  ])('%s is no storage failure', (error) => {
    expect(isStorageFailure(error)).toBe(false);
  });
});

describe('logger', () => {
  it('strikes secrets out, and shows no command of a failed call', () => {
    const error = Object.assign(new Error('boom'), { command: { args: ['whsec_x'] } });
    logger.info({ headers: { authorization: 'Bearer hunter2' }, secret: 'hunter2', err: error }, 'x');
    expect(logged[0]).toContain('boom');
    expect(logged[0]).not.toMatch(/hunter2|whsec_x/);
  });
});

describe('stop', () => {
  it('answers what has begun, then closes; a second stop does nothing', async () => {
    const begun = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const url = await serve((app) => {
      app.get('/slow', async (_request, response) => {
        begun.resolve();
        await finish.promise;
        response.end('done');
      });
    });
    const answer = fetch(`${url}/slow`);
    await begun.promise;
    const stopped = service!.stop(60_000);
    finish.resolve();
    expect(await (await answer).text()).toBe('done');
    await stopped;
    await service!.stop(1);
    await expect(fetch(url)).rejects.toThrow();
  });
  it('a client that never ends its request is cut off when the grace ends', async () => {
    const url = await serve(() => undefined);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.resume().once('close', resolve));
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n');
    await service!.stop(50);
    await closed;
  });
});
