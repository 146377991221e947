/** What the publisher does with the answers of an ingest, on a real server. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SESSION_EVENT_TYPES } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import {
  createPublisher,
  EventRefused,
  NotConfirmed,
  type PublishedEvent,
  type Publisher,
  PublisherClosed,
  type PublisherOptions,
  QueueFull,
} from './index.ts';

interface Call {
  path: string;
  key: string | undefined;
  events: { id: string; created_at: string }[];
  traceparent: unknown;
  traceparents: unknown;
  response: ServerResponse;
}
let calls: Call[];
let answer: (call: Call) => void;
let url: string;
let publisher: Publisher;

beforeEach(async () => {
  calls = [];
  answer = accept;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const path = request.url ?? '';
    const { authorization: key, traceparent } = request.headers;
    const { traceparents } = body;
    const call = { path, key, events: body.events ?? [body], traceparent, traceparents, response };
    calls.push(call);
    answer(call);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});

const json = (response: ServerResponse, status: number, content: unknown, headers = {}) =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(content));
const accepted = (id: string) => ({ status: 202, id, duplicate: false, deliveries: 1 });
function accept({ path, events, response }: Call): void {
  const results = events.map(({ id }) => accepted(id));
  if (path.endsWith('/v1/events')) json(response, 202, results[0]);
  else json(response, 200, { results });
}
/** An event of a session of its own, unless one is given. */
const event = (id?: string, session: string = crypto.randomUUID()): PublishedEvent => ({
  ...(id !== undefined && { id }),
  type: 'session.approved',
  environment: 'sandbox',
  data: { id: session, status: 'approved' },
});
function start(options: Partial<PublisherOptions> = {}): Publisher {
  publisher = createPublisher({ url, key: 'secret-key', ...options });
  atEnd(() => publisher.close(0));
  return publisher;
}

/** Events that are held until they are let go. */
function hold() {
  const held: Call[] = [];
  answer = (call) => void held.push(call);
  return {
    held,
    letGo() {
      answer = accept;
      for (const call of held.splice(0)) accept(call);
    },
  };
}
/** Lets each timer fire at once, and returns how long they were to take. */
function skipTime(): number[] {
  const real = setTimeout;
  const waits: number[] = [];
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms: number) => {
    waits.push(ms);
    return real(act, 0);
  }) as typeof setTimeout);
  return waits;
}

describe('publishing', () => {
  it('sends a lone event at once, with an id and a time of its own', async () => {
    const { id } = await start().publish(event());
    expect(calls).toMatchObject([{ path: '/v1/events', key: 'Bearer secret-key', events: [{ id }] }]);
    expect(id).toMatch(/^evt_[0-9a-f-]{36}$/);
    expect(Date.parse(calls[0]!.events[0]!.created_at)).toBeGreaterThan(0);
  });
  it('makes an id and a time also where the event has undefined ones', async () => {
    const given: object = { ...event(), id: undefined, created_at: undefined };
    await start().publish(given as PublishedEvent);
    expect(calls[0]?.events).toMatchObject([{ id: expect.any(String), created_at: expect.any(String) }]);
  });
  it('has a later time than the event of its session before, by which receivers tell the newer one', async () => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(1_800_000_000_000);
    start();
    const all = ['a1', 'a2', 'b1'].map((id) => publisher.publish(event(id, id.slice(0, 1))));
    now.mockReturnValue(1_800_000_000_001);
    all.push(...['a3', 'b2'].map((id) => publisher.publish(event(id, id.slice(0, 1)))));
    await Promise.all(all);
    const events = calls.flatMap((call) => call.events).map(({ id, created_at }) => [id, created_at.slice(-4)]);
    expect(Object.fromEntries(events)).toEqual({ a1: '000Z', a2: '001Z', b1: '000Z', a3: '002Z', b2: '001Z' });
  });
  it('gathers events in batches of at most 500 while calls are in flight', async () => {
    start({ concurrency: 1 });
    const all = await Promise.all(Array.from({ length: 1_101 }, (_, i) => publisher.publish(event(`e${i}`))));
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 1_101 }, (_, i) => `e${i}`));
    expect(calls.map(({ events }) => events.length)).toEqual([500, 500, 101]);
    expect(publisher.pending).toBe(0);
  });
  it('has the events of a session in one call at a time, in their order, and sends others meanwhile', async () => {
    const { held, letGo } = hold();
    start();
    const all = [publisher.publish(event('a1', 'a'))];
    await eventually('a call', () => held.length === 1);
    all.push(...['a2', 'b1', 'a3'].map((id) => publisher.publish(event(id, id.slice(0, 1)))));
    await eventually('another call', () => held.length === 2);
    letGo();
    await Promise.all(all);
    expect(calls.map(({ events }) => events.map(({ id }) => id))).toEqual([['a1'], ['b1'], ['a2', 'a3']]);
  });
  it('sends the events of other sessions also where thousands of one wait for its call', async () => {
    const { held, letGo } = hold();
    start();
    const all = [publisher.publish(event('a', 'a'))];
    await eventually('a call', () => held.length === 1);
    all.push(...Array.from({ length: 2_000 }, (_, i) => publisher.publish(event(`a${i}`, 'a'))));
    all.push(publisher.publish(event('b', 'b')));
    await eventually('another call', () => held.length === 2);
    expect(held[1]?.events.map(({ id }) => id)).toEqual(['b']);
    letGo();
    await Promise.all(all);
    const ofOne = calls.flatMap(({ events }) => events.map(({ id }) => id)).filter((id) => id !== 'b');
    expect(ofOne).toEqual(['a', ...Array.from({ length: 2_000 }, (_, i) => `a${i}`)]);
  });
  it('gives up, and ends with close, also what waits for the call of its session', async () => {
    const { held } = hold();
    start({ giveUpAfterMs: 50 });
    const publish = (id: string) => publisher.publish(event(id, 'a')).catch((error: unknown) => error);
    const first = publish('a1');
    await eventually('a call', () => held.length === 1);
    expect(await publish('a2')).toBeInstanceOf(NotConfirmed);
    const last = publish('a3');
    await publisher.close(0);
    for (const one of [first, last]) expect(await one).toBeInstanceOf(NotConfirmed);
  });
  it('sends at most 1 MiB in a batch, and a larger event alone', async () => {
    start({ concurrency: 1 });
    const sizes = [2_000_000, 400_000, 400_000, 400_000];
    const large = (size: number) => ({ ...event(), data: { id: 's', status: 'x', pad: 'x'.repeat(size) } });
    await Promise.all(sizes.map((size) => publisher.publish(large(size))));
    expect(calls.map(({ events }) => events.length)).toEqual([1, 2, 1]);
  });
  it('has four calls in flight unless told otherwise, each for at most 30 s', async () => {
    const limit = jest.spyOn(AbortSignal, 'timeout');
    const { letGo } = hold();
    start({ maxBatch: 1 });
    const all = Array.from({ length: 6 }, () => publisher.publish(event()));
    await eventually('four calls', () => calls.length >= 4);
    expect(calls).toHaveLength(4);
    letGo();
    await Promise.all(all);
    expect(limit.mock.calls).toEqual(Array.from({ length: 6 }, () => [30_000]));
  });
  it('sends the traceparent of each event, alone or in a batch, and leaves out what is none', async () => {
    start({ concurrency: 1 });
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const given = [{ traceparent }, { traceparent }, undefined, { traceparent: 'x\r\ny' }, { traceparent: undefined }];
    await Promise.all(given.map((options) => publisher.publish(event(), options)));
    await publisher.publish(event(), { traceparent: `${traceparent}\n` });
    await Promise.all([publisher.publish(event()), publisher.publish(event())]);
    expect(calls.map((call) => [call.traceparent, call.traceparents])).toEqual([
      [undefined, [traceparent, traceparent, null, null, null]],
      [undefined, undefined],
      [undefined, undefined],
    ]);
    await publisher.publish(event(), { traceparent });
    expect(calls[3]).toMatchObject({ path: '/v1/events', traceparent });
  });
  it('settles each event of a batch on its own, and repeats only those that may be accepted later', async () => {
    start();
    answer = (call) => {
      if (calls.length > 1) return accept(call);
      const [good] = call.events;
      const error = { detail: 'Invalid.', errors: [{ path: 'type', message: 'Expected another' }] };
      json(
        call.response,
        200,
        { results: [accepted(good!.id), { status: 422, error }, { status: 503, error: {} }] },
        { 'retry-after': '0' },
      );
    };
    const [good, bad, later] = await Promise.allSettled(['a', 'b', 'c'].map((id) => publisher.publish(event(id))));
    expect(good).toMatchObject({ value: { id: 'a' } });
    expect(bad).toMatchObject({
      reason: { name: 'EventRefused', status: 422, eventId: 'b', message: 'Invalid. type: Expected another' },
    });
    expect(later).toMatchObject({ value: { id: 'c' } });
    expect(calls[1]!.events.map(({ id }) => id)).toEqual(['c']);
  });
});

it.each([400, 403, 409, 413, 422])('sends the events of a batch that is refused with %d one by one', async (status) => {
  answer = (call) => (call.path === '/v1/events' ? accept(call) : json(call.response, status, { detail: 'refused' }));
  start();
  const all = await Promise.all(['a', 'b', 'c'].map((id) => publisher.publish(event(id))));
  expect(all.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  expect(calls.map(({ events }) => events.length)).toEqual([3, 1, 1, 1]);
});

it('says of an event that was accepted before that it is a duplicate', async () => {
  answer = ({ response }) => json(response, 200, { ...accepted('a'), duplicate: true });
  const one = start({ giveUpAfterMs: 30 }).publish(event('a'));
  expect(await one).toEqual({ id: 'a', duplicate: true, deliveries: 1 });
});

describe('an event that is not confirmed', () => {
  it('is repeated with the same id and time after a lost response, a 503, a 429 and a 408', async () => {
    answer = (call) => {
      if (calls.length === 1) call.response.destroy();
      else if (calls.length === 2) json(call.response, 503, {}, { 'retry-after': '0' });
      else if (calls.length === 3) json(call.response, 429, {}, { 'retry-after': '0' });
      else if (calls.length === 4) json(call.response, 408, {}, { 'retry-after': '0' });
      else accept(call);
    };
    await start().publish(event());
    expect(calls).toHaveLength(5);
    expect(new Set(calls.map(({ events }) => JSON.stringify(events))).size).toBe(1);
  });
  it('is repeated before those that were published later, also if their calls fail later', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const { held, letGo } = hold();
    start();
    const first = [publisher.publish(event('x')), publisher.publish(event('a'))];
    await eventually('a call', () => held.length === 1);
    const last = publisher.publish(event('b'));
    await eventually('another call', () => held.length === 2);
    const [one, other] = held.splice(0);
    json(one!.response, 200, { results: [accepted('x'), { status: 503, error: {} }] }, { 'retry-after': '1' });
    await first[0];
    letGo();
    json(other!.response, 503, {});
    await Promise.all([...first, last]);
    expect(calls.slice(2).map(({ events }) => events.map(({ id }) => id))).toEqual([['a', 'b']]);
  });
  it('leaves no timer that would keep the process alive once it is confirmed', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    answer = (call) => (calls.length === 1 ? json(call.response, 503, {}) : accept(call));
    await start().publish(event());
    expect(calls).toHaveLength(2);
    expect(timers()).toBeLessThanOrEqual(before);
  });
  it('follows no redirect, which would take the key elsewhere', async () => {
    answer = (call) =>
      calls.length === 1 ? json(call.response, 307, {}, { location: `${url}/elsewhere` }) : accept(call);
    await start().publish(event());
    expect(calls.map(({ path }) => path)).toEqual(['/v1/events', '/v1/events']);
  });
  it('goes to the next address after a failure', async () => {
    const unreachable = 'http://127.0.0.1:1';
    await start({ url: [unreachable, url] }).publish(event('a'));
    expect(calls).toHaveLength(1);
  });
  it.each([402, 404, 405, 415, 417, 425, 431, 451, 499])(
    'goes to the next address after a %d, with which no ingest refuses an event',
    async (status) => {
      answer = (call) => (call.path.startsWith('/first') ? json(call.response, status, {}) : accept(call));
      const failures: string[] = [];
      start({ url: [`${url}/first`, `${url}/next`], onFailure: ({ message }) => failures.push(message) });
      await Promise.all([publisher.publish(event('a')), publisher.publish(event('b'))]);
      expect(calls.map(({ path }) => path)).toEqual(['/first/v1/events/batch', '/next/v1/events/batch']);
      expect(failures).toEqual([`${url}/first/v1/events/batch returned ${status}.`]);
    },
  );
  it('goes to the next address also when several calls fail together, which count as one failure', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const { held } = hold();
    const failures: number[] = [];
    start({ url: [`${url}/first`, `${url}/next`], maxBatch: 1, onFailure: (_, retryInMs) => failures.push(retryInMs) });
    const all = ['a', 'b', 'c', 'd'].map((id) => publisher.publish(event(id)));
    await eventually('four calls', () => held.length === 4);
    answer = accept;
    for (const { response } of held.splice(0)) json(response, 503, {});
    await Promise.all(all);
    const paths = calls.map(({ path }) => path);
    expect(paths).toEqual([...Array(4).fill('/first/v1/events'), ...Array(4).fill('/next/v1/events')]);
    expect(failures).toEqual([50, 50, 50, 50]);
  });
  it('goes to the next address although the first one asks for a long pause', async () => {
    const failures: number[] = [];
    answer = (call) =>
      call.path.startsWith('/first') ? json(call.response, 503, {}, { 'retry-after': '500' }) : accept(call);
    start({ url: [`${url}/first`, `${url}/next`], onFailure: (_, retryInMs) => failures.push(retryInMs) });
    await publisher.publish(event());
    expect(calls.map(({ path }) => path)).toEqual(['/first/v1/events', '/next/v1/events']);
    expect(failures[0]).toBeLessThanOrEqual(100);
  });
  it('is not repeated earlier than Retry-After asks for because another call fails', async () => {
    const { held } = hold();
    const failures: number[] = [];
    start({ maxBatch: 1, onFailure: (_, retryInMs) => failures.push(retryInMs), giveUpAfterMs: 400_000 });
    const all = ['a', 'b'].map((id) => publisher.publish(event(id)).catch((error: unknown) => error));
    await eventually('two calls', () => held.length === 2);
    json(held[0]!.response, 503, {}, { 'retry-after': '500' });
    await eventually('a failure', () => failures.length === 1);
    held[1]!.response.destroy();
    await eventually('another failure', () => failures.length === 2);
    expect(failures[1]).toBeGreaterThan(400_000);
    await publisher.close(0);
    await Promise.all(all);
    expect(calls).toHaveLength(2);
  });
  it('is given up in time if it waits for a call that hangs', async () => {
    const { held } = hold();
    start({ concurrency: 1, giveUpAfterMs: 50 });
    const first = publisher.publish(event()).catch((error: unknown) => error);
    await eventually('a call', () => held.length === 1);
    await expect(publisher.publish(event())).rejects.toBeInstanceOf(NotConfirmed);
    await publisher.close(0);
    expect(await first).toBeInstanceOf(NotConfirmed);
  });
  it('is refused at once if a repetition does not help', async () => {
    for (const status of [400, 401, 403, 409, 413, 422]) {
      answer = ({ response }) => json(response, status, { detail: `refused with ${status}` });
      const failure = await start()
        .publish(event())
        .catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(EventRefused);
      expect(failure).toMatchObject({ status, message: `refused with ${status}` });
    }
  });
  it.each([{ errors: { id: ['is taken'] } }, { errors: 'one' }, { errors: [null] }, [], null])(
    'is refused too if what refuses it is no problem document of Posthorn: %j',
    async (content) => {
      answer = ({ response }) => json(response, 400, content);
      const refused = start({ giveUpAfterMs: 30 }).publish(event());
      await expect(refused).rejects.toMatchObject({ name: 'EventRefused', status: 400, problem: content });
    },
  );
  it('is repeated after pauses that double up to 30 s, half of each by chance; after a success from the first one on', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const failing = 11;
    answer = (call) => (calls.length <= failing ? json(call.response, 503, {}) : accept(call));
    start();
    const waits = skipTime();
    const pauses = () => waits.splice(0).filter((ms) => ms <= 30_000);
    await publisher.publish(event());
    expect(pauses()).toEqual([...Array.from({ length: 9 }, (_, i) => 50 * 2 ** i), 15_000, 15_000]);
    answer = (call) => (calls.length === failing + 2 ? json(call.response, 503, {}) : accept(call));
    await publisher.publish(event());
    expect(pauses()).toEqual([50]);
    expect(calls).toHaveLength(failing + 3);
  });
  it.each([
    ['600', 600_000],
    ['315360000', 600_000],
    [new Date(4_000_000_000_000 - 3_000_000).toUTCString(), 600_000],
    [new Date(4_000_000_000_000 - 3_590_000).toUTCString(), 10_000],
    ['0', 50],
    [new Date(0).toUTCString(), 50],
  ])('is repeated after the time that Retry-After asks for, if that is no absurd one: %s', async (retryAfter, ms) => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    jest.spyOn(Date, 'now').mockReturnValue(4_000_000_000_000 - 3_600_000);
    answer = (call) =>
      calls.length === 1 ? json(call.response, 503, {}, { 'retry-after': retryAfter }) : accept(call);
    start();
    const waits = skipTime();
    await publisher.publish(event());
    expect(waits).toContain(ms);
  });
  it.each([
    ['5', 7_500],
    ['60', 67_500],
  ])(
    'is repeated somewhat later than Retry-After (%s) asks for, so that not all publishers come back at once',
    async (seconds, ms) => {
      jest.spyOn(Math, 'random').mockReturnValue(0.5);
      answer = (call) => (calls.length === 1 ? json(call.response, 503, {}, { 'retry-after': seconds }) : accept(call));
      start();
      const waits = skipTime();
      await publisher.publish(event());
      expect(waits).toContain(ms);
    },
  );
  it('is given up after ten minutes unless told otherwise', async () => {
    let nowMs = 0;
    jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
    answer = (call) => {
      nowMs = calls.length === 1 ? 599_999 : 600_000;
      if (calls.length > 2) accept(call);
      else json(call.response, 503, {});
    };
    start();
    skipTime();
    await expect(publisher.publish(event())).rejects.toThrow('did not confirm the event within 600000 ms.');
    expect(calls).toHaveLength(2);
  });
  it('is given up after the time that was set', async () => {
    answer = ({ response }) => json(response, 503, {}, { 'retry-after': '0' });
    const failure = await start({ giveUpAfterMs: 30 })
      .publish(event('a'))
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotConfirmed);
    expect(failure).toMatchObject({ eventId: 'a', cause: { message: `${url}/v1/events returned 503.` } });
  });
  it('may be one of a batch whose response has no result for it', async () => {
    answer = ({ response }) => json(response, 200, { results: [] }, { 'retry-after': '0' });
    start({ giveUpAfterMs: 30 });
    const all = await Promise.allSettled([publisher.publish(event('a')), publisher.publish(event('b'))]);
    const cause = { message: expect.stringContaining(' returned 200, but no result for the event.') };
    expect(all).toMatchObject([{ reason: { eventId: 'a', cause } }, { reason: { eventId: 'b', cause } }]);
  });
  it('has what it was sent with in the error, to be published again', async () => {
    answer = ({ response }) => json(response, 503, {}, { 'retry-after': '0' });
    const failure = await start({ giveUpAfterMs: 1 })
      .publish(event())
      .catch((error: NotConfirmed) => error);
    answer = accept;
    await start().publish((failure as NotConfirmed).event);
    expect(calls.at(-1)?.events).toEqual(calls[0]?.events);
  });
  it.each(['600', '315360000'])('is given up in time, although Retry-After asks for %s s', async (seconds) => {
    answer = ({ response }) => json(response, 503, {}, { 'retry-after': seconds });
    start({ giveUpAfterMs: 30 });
    const first = publisher.publish(event());
    await expect(first).rejects.toBeInstanceOf(NotConfirmed);
    // Published while nothing is sent.
    await expect(publisher.publish(event())).rejects.toBeInstanceOf(NotConfirmed);
    expect(calls).toHaveLength(1);
  });
  it('is told to onFailure, with the time until the call is repeated', async () => {
    answer = ({ response }) => json(response, 503, {}, { 'retry-after': '600' });
    const failures: unknown[] = [];
    const onFailure = (failure: Error, retryInMs: number) => failures.push([failure.message, retryInMs]);
    await expect(start({ giveUpAfterMs: 30, onFailure }).publish(event())).rejects.toThrow();
    expect(failures).toEqual([[`${url}/v1/events returned 503.`, 600_000]]);
  });
  it.each([
    ['the connection ends', 'other side closed', ({ response }: Call) => void response.destroy()],
    ['a redirect responds', 'unexpected redirect', ({ response }: Call) => json(response, 307, {}, { location: '/' })],
  ])('says why it was not confirmed where %s', async (_case, why, then) => {
    answer = then;
    const published = start({ giveUpAfterMs: 1 }).publish(event());
    const cause = { message: `The call of ${url}/v1/events failed: ${why}`, cause: { name: 'TypeError' } };
    await expect(published).rejects.toMatchObject({ name: 'NotConfirmed', cause });
  });
});

describe('options', () => {
  const moreThanPath = ['http://user:password@ingest.example', 'http://ingest.example?a=1', 'http://ingest.example#a'];
  it.each(['', 'ingest.example', 'localhost:3000', 'ftp://ingest.example', 'http://', [], ...moreThanPath])(
    'with the url %j are refused',
    (wrong) => {
      expect(() => createPublisher({ url: wrong, key: 'k' })).toThrow(TypeError);
    },
  );
  it.each([
    ['concurrency', 0],
    ['concurrency', Number.NaN],
    ['maxEvents', -1],
    ['maxBatch', Number.NaN],
    ['timeoutMs', 0],
    ['timeoutMs', Number.NaN],
  ])('with %s %d are refused: publish might never settle', (name, limit) => {
    const wrong = `The option ${name} of a publisher must be more than 0, not ${limit}.`;
    expect(() => createPublisher({ url, key: 'k', [name]: limit })).toThrow(wrong);
  });
  it('without a key are refused', () => {
    for (const key of ['', ' \n', undefined as unknown as string])
      expect(() => createPublisher({ url, key })).toThrow('A publisher needs a key.');
    expect(() => createPublisher({ url, key: '\u{3a9}' })).toThrow('The key has characters that no publisher key has.');
  });
  it('may have a key with a line break around it, as in a file', async () => {
    await start({ key: '\nk\n' }).publish(event());
    expect(calls[0]?.key).toBe('Bearer k');
  });
  it.each([1_000.5, 3_000_000_000, Number.POSITIVE_INFINITY])('may have the time limit %d ms', async (timeoutMs) => {
    const accepted = start({ timeoutMs, giveUpAfterMs: 10_000 }).publish(event());
    await expect(accepted).resolves.toMatchObject({ deliveries: 1 });
  });
  it('may have a url with a path', async () => {
    answer = ({ events, response }) => json(response, 202, accepted(events[0]!.id));
    await start({ url: `${url}/webhooks/` }).publish(event());
    expect(calls[0]?.path).toBe('/webhooks/v1/events');
  });
});

it('rejects an event that is no JSON, and keeps nothing of it', async () => {
  const data = { id: 's', status: 'approved', amount: 1n };
  await expect(start().publish({ ...event(), data })).rejects.toThrow(TypeError);
  expect(publisher.pending).toBe(0);
});

describe('limits', () => {
  it('refuse events beyond the queue, and tell when there is room', async () => {
    const { held, letGo } = hold();
    start({ maxEvents: 2, concurrency: 1, maxBatch: 1 });
    const first = [publisher.publish(event('a')), publisher.publish(event('b'))];
    await expect(publisher.publish(event('c'))).rejects.toBeInstanceOf(QueueFull);
    const room = publisher.ready();
    await eventually('a call', () => held.length > 0);
    letGo();
    await room;
    expect((await publisher.publish(event('c'))).id).toBe('c');
    await Promise.all(first);
  });
  it('let in as many as there is room for, those that have waited longest first', async () => {
    start({ maxEvents: 2, concurrency: 1 });
    const ids = Array.from({ length: 50 }, (_, i) => `e${i}`);
    const publish = async (id: string) => {
      await publisher.ready();
      await publisher.publish(event(id));
    };
    await Promise.all(ids.map(publish));
    expect(calls.flatMap(({ events }) => events.map(({ id }) => id))).toEqual(ids);
  });
  it.each([
    ['10,000 events', {}, 10_000],
    ['the bytes that were set', { maxBytes: 1 }, 1],
  ])('are %s', async (_what, options, count) => {
    const { letGo } = hold();
    start(options);
    const all = Array.from({ length: count }, () => publisher.publish(event()));
    const beyond = publisher.publish(event());
    letGo();
    await expect(beyond).rejects.toBeInstanceOf(QueueFull);
    await Promise.all(all);
  });
});

describe('closing', () => {
  it('waits for what was published, and takes nothing more', async () => {
    const one = start().publish(event('a'));
    const closed = publisher.close();
    await expect(publisher.publish(event('b'))).rejects.toBeInstanceOf(PublisherClosed);
    await closed;
    expect((await one).id).toBe('a');
    await publisher.close();
  });
  it('ends what is left after its time', async () => {
    answer = ({ response }) => json(response, 503, {}, { 'retry-after': '600' });
    const one = start()
      .publish(event('a'))
      .catch((error: unknown) => error);
    await eventually('a call', () => calls.length > 0);
    await publisher.close(1);
    expect(await one).toBeInstanceOf(NotConfirmed);
  });
  it('waits for all that is left where it has no limit', async () => {
    const { held, letGo } = hold();
    start({ concurrency: 1, maxBatch: 1 });
    const all = Promise.all([publisher.publish(event('a')), publisher.publish(event('b'))]);
    await eventually('a call', () => held.length > 0);
    const limit = jest.spyOn(globalThis, 'setTimeout');
    const closed = publisher.close(Number.POSITIVE_INFINITY);
    // A longer timer fires at once.
    expect(limit.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
    letGo();
    await closed;
    expect(await all).toHaveLength(2);
  });
  it('ends what waits and what is in flight after its time', async () => {
    const { held } = hold();
    start({ concurrency: 1, maxBatch: 1 });
    const [sent, waiting] = [publisher.publish(event('a')), publisher.publish(event('b'))];
    await eventually('a call', () => held.length > 0);
    const closed = publisher.close(1);
    await expect(waiting).rejects.toMatchObject({ name: 'NotConfirmed', eventId: 'b', cause: undefined });
    const message = `The call of ${url}/v1/events failed: The publisher was closed before the call ended.`;
    const cause = expect.objectContaining({ message });
    await expect(sent).rejects.toMatchObject({ name: 'NotConfirmed', eventId: 'a', cause });
    await closed;
    expect(calls).toHaveLength(1);
  });
});

it('takes each event type that Posthorn accepts, and no other: the package has a copy, since it depends on nothing', async () => {
  start();
  for (const type of SESSION_EVENT_TYPES) await publisher.publish({ ...event(), type });
  expect(calls).toHaveLength(SESSION_EVENT_TYPES.length);
  // The compiler checks the other direction: this does not compile if the package has a type that Posthorn lacks.
  const isAccepted = (type: PublishedEvent['type']) => SESSION_EVENT_TYPES.includes(type);
  expect(isAccepted(event().type)).toBe(true);
});
