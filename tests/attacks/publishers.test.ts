/** One publisher with a valid key attacks ingest: the others must not notice. */
import { describe, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { ownWorld } from '../own.ts';
import { PUBLISHER_KEY, sampleEvent } from '../world.ts';
import { chunk, head, openMany } from './connections.ts';

const EVIL_KEY = 'key-of-an-evil-publisher-0000';
const PUBLISHERS = { PUBLISHER_KEYS: `good:both:${PUBLISHER_KEY},evil:sandbox:${EVIL_KEY}` };
const world = (env: Record<string, string> = {}) => ownWorld({ workers: 0, env: { ...PUBLISHERS, ...env } });
const chunked = (path: string) =>
  head('POST', path, {
    Authorization: `Bearer ${EVIL_KEY}`,
    'Content-Type': 'application/json',
    'Transfer-Encoding': 'chunked',
  });

describe('unfinished bodies of one publisher', () => {
  it('reserve nothing for bytes that are announced and never sent: the publisher itself can still publish', async () => {
    const on = await world();
    const open = await openMany(60, on.ingestUrls[0]!, chunked('/v1/events/batch'));
    for (const key of [PUBLISHER_KEY, EVIL_KEY]) expect((await on.publish(sampleEvent(), key)).status).toBe(202);
    expect(open.map(({ text }) => text()).join('')).toBe('');
  });

  it('leave half of the room for events to other publishers', async () => {
    const on = await world();
    // By its bytes, each counts as 500 events.
    const part = chunked('/v1/events/batch') + chunk(`{"events":[${' '.repeat(50_000)}`);
    const open = await openMany(40, on.ingestUrls[0]!, part);
    const refused = () => open.filter(({ text }) => text() !== '');
    // There is room for 12,000 events: for 12 of them.
    await eventually('the rest to be refused', () => refused().length >= 28);
    expect((await on.publish(sampleEvent(), EVIL_KEY)).status).toBe(503);
    expect((await on.publishBatch(Array.from({ length: 500 }, () => sampleEvent()))).status).toBe(200);
    expect(refused().length).toBeLessThan(40);
    for (const { text } of refused()) expect(text()).toMatch(/^HTTP\/1\.1 503.*Retry-After: 1\r.*"code":"overloaded"/s);
  });

  it('leave half of the memory for bodies to other publishers', async () => {
    const on = await world({ MAX_EVENT_BYTES: '1048576' });
    const part = chunked('/v1/events') + chunk(' '.repeat(1_000_000));
    const open = await openMany(40, on.ingestUrls[0]!, part);
    await eventually('the rest to be refused', () => open.some(({ text }) => text().startsWith('HTTP/1.1 503')));
    const large = sampleEvent({ data: { id: 's', status: 'x', pad: 'x'.repeat(1_000_000) } });
    expect((await on.publish(large)).status).toBe(202);
    expect(open.filter(({ text }) => text() === '').length).toBeGreaterThan(10);
  });
});

describe('events with very many wrong fields', () => {
  const wrongMetadata = (count: number) =>
    sampleEvent({
      data: {
        id: 's',
        status: 'x',
        metadata: Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, 0])),
      },
    });
  const unknownFields = (count: number) =>
    sampleEvent(Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 0])));

  it.each([
    ['values of metadata', wrongMetadata, { path: 'data.metadata.m0', message: 'Expected a string' }],
    ['unknown fields', unknownFields, { path: 'f0', message: 'Unknown field' }],
  ])('get 20 of them named and the others counted: %s', async (_what, make, first) => {
    const on = await world();
    const few = await on.publish(make(20));
    expect(few.status).toBe(422);
    expect(few.body.errors).toHaveLength(20);
    const { status, body } = await on.publish(make(1_100));
    expect(status).toBe(422);
    expect(body.errors).toHaveLength(21);
    expect(body.errors[0]).toEqual(first);
    expect(body.errors[20]).toEqual({ path: '', message: '1080 more invalid fields are not listed' });
  });

  it('in a batch of 500 get a response smaller than the request, with a result for each', async () => {
    const on = await world();
    for (const make of [wrongMetadata, unknownFields]) {
      const events = Array.from({ length: 500 }, (_, i) => (i === 499 ? sampleEvent() : make(300)));
      const { status, body } = await on.publishBatch(events);
      expect(status).toBe(200);
      expect(body.results.map((result: { status: number }) => result.status)).toEqual([...Array(499).fill(422), 202]);
      const errors = body.results.flatMap((result: { error?: { errors: unknown[] } }) => result.error?.errors ?? []);
      // 500 errors are listed, and one entry per event counts the rest.
      expect(errors).toHaveLength(500 + 499);
      expect(body.results[498].error.errors).toEqual([{ path: '', message: '300 more invalid fields are not listed' }]);
      expect(JSON.stringify(body).length).toBeLessThan(300_000);
    }
  });

  it('get long names back shortened, and not every one of very many names at the top of a batch', async () => {
    const on = await world();
    const long = await on.publish(sampleEvent({ ['n'.repeat(100_000)]: 0 }));
    expect(long.body.errors).toEqual([{ path: `${'n'.repeat(200)}…`, message: 'Unknown field' }]);
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`t${i}`, 0]));
    const response = await fetch(`${on.ingestUrls[0]}/v1/events/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PUBLISHER_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [sampleEvent()], ...many }),
    });
    expect(response.status).toBe(422);
    expect((await response.text()).length).toBeLessThan(5_000);
  });
});

describe('an event id', () => {
  it.each(['.', '..'])('is refused with the value %j, which no URL can hold', async (id) => {
    const on = await world();
    const { status, body } = await on.publish(sampleEvent({ id }));
    expect([status, body.errors[0].path]).toEqual([422, 'id']);
    for (const good of ['...', '.a', '~..']) expect((await on.publish(sampleEvent({ id: good }))).status).toBe(202);
    expect((await on.operate('GET', '/v1/events/...')).status).toBe(200);
  });
});
