/** What ingest guarantees to publishers: idempotence, batches, clear errors, and repair of interrupted calls. */
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventRef, jointRef, jointRefOf, partitionOf } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { confirmFanOut, createDeliveries, finishFanOuts, storeEvent } from '@posthorn/store';
import { eventually, fakeClock, isDelivery, type Receiver } from '@posthorn/testing';
import fc from 'fast-check';
import { ownEnv, ownProcess, ownReceiver, ownStore, ownWorld } from './own.ts';
import { PUBLISHER_KEY, sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
let subscriptionId: string;
beforeEach(async () => {
  on = await ownWorld({ ingests: 2, env: { MAX_EVENT_BYTES: '4096' } });
  to = await ownReceiver();
  subscriptionId = (await on.subscribe(to.url)).id;
});
const deliveredCount = (eventId: string) =>
  to.requests.filter((request) => request.headers['service-event-id'] === eventId).length;
let counter = 0;
const freshId = () => `test:${process.pid}.${counter++}~x`;

describe('a repeated event', () => {
  it('is a duplicate, however its JSON is written, and is delivered once', async () => {
    const id = freshId();
    const event = sampleEvent({ id, data: { id: 's', status: 'x', more: { a: 1, b: [1.5] } } });
    expect(await on.publish(event)).toMatchObject({ status: 202, body: { id, duplicate: false, deliveries: 1 } });
    const again = `{ "data": {"more":{"b":[1.5],"a":1},"status":"x","id":"s"}, "environment":"sandbox","type":"session.approved","id":"${id}"}`;
    for (let i = 0; i < 3; i++)
      expect(await on.publish(again)).toMatchObject({ status: 200, body: { id, duplicate: true, deliveries: 1 } });
    await to.received(1, (request) => request.headers['service-event-id'] === id);
    await eventually('success', async () => (await on.deliveries(`event_id=${id}`))[0].status === 'succeeded');
    await on.publish(event);
    expect(deliveredCount(id)).toBe(1);
  });
  it('is a conflict if it has other content', async () => {
    const id = freshId();
    await on.publish(sampleEvent({ id, created_at: '2026-01-01T00:00:00Z' }));
    for (const change of [
      { type: 'session.declined' },
      { data: { id: 's', status: 'y' } },
      { created_at: '2026-01-02T00:00:00Z' },
    ]) {
      expect(await on.publish(sampleEvent({ id, created_at: '2026-01-01T00:00:00Z', ...change }))).toMatchObject({
        status: 409,
        body: { code: 'conflict' },
      });
    }
    expect(await on.publish(sampleEvent({ id, created_at: '2026-01-01T01:00:00+01:00' }))).toMatchObject({
      status: 200,
    });
  });
  it('makes one event and one delivery when sent many times at once to two processes', async () => {
    const id = freshId();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        fetch(`${on.ingestUrls[i % 2]}/v1/events`, {
          method: 'POST',
          headers: { authorization: `Bearer ${PUBLISHER_KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify(sampleEvent({ id })),
        }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 202]);
    expect(await on.deliveries(`event_id=${id}`)).toHaveLength(1);
    await eventually('success', async () => (await on.deliveries(`event_id=${id}`))[0].status === 'succeeded');
    expect(deliveredCount(id)).toBe(1);
  });
});

describe('an interrupted call', () => {
  /** What a process leaves behind if it dies after the given step. */
  async function interrupted(step: 'event' | 'deliveries') {
    const store = await ownStore(on);
    const acceptedAtMs = Date.now();
    const id = freshId();
    const createdAt = '2026-05-05T05:05:05.000Z';
    const event = {
      id,
      type: 'session.approved' as const,
      createdAt,
      environment: 'sandbox' as const,
      dataJson: '{"id":"s-1","status":"approved"}',
    };
    const stored = { ref: eventRef(event), event, acceptedAtMs, subscriptionIds: [subscriptionId] };
    await storeEvent(store, stored);
    if (step === 'deliveries') await createDeliveries(store, stored);
    return { id, store, acceptedAtMs, published: sampleEvent({ id, created_at: createdAt }) };
  }
  it.each(['event', 'deliveries'] as const)('is completed by a repeat if it stored only the %s', async (step) => {
    const { id, published } = await interrupted(step);
    expect(await on.publish(published)).toMatchObject({ status: 200, body: { duplicate: true, deliveries: 1 } });
    await to.received(1, (request) => request.headers['service-event-id'] === id);
  });
  it.each(['event', 'deliveries'] as const)(
    'is completed by the sweep if it stored only the %s and nobody repeats it',
    async (step) => {
      const { id, store, acceptedAtMs } = await interrupted(step);
      const clock = fakeClock(acceptedAtMs);
      const context = { store, clock, logger: createLogger({ app: 'test', level: 'silent' }) };
      // A fan-out counts as interrupted only after it has not been confirmed for a while.
      expect(await finishFanOuts(context)).toBe(0);
      clock.advance(60_000);
      await finishFanOuts(context);
      await to.received(1, (request) => request.headers['service-event-id'] === id);
      await confirmFanOut(store, eventRef({ id, environment: 'sandbox' }));
    },
  );
  it('is completed for the subscriptions of the first call, not for later ones', async () => {
    const { published } = await interrupted('event');
    await on.subscribe(to.url);
    expect(await on.publish(published)).toMatchObject({ body: { deliveries: 1 } });
  });
});

describe('an event without an id', () => {
  it('gets one in the partition of its only address, and so is one record with its delivery', async () => {
    const partitioned = await ownWorld({ env: { PARTITIONS: '16' } });
    const first = await partitioned.subscribe(to.url);
    const publish = async () => (await partitioned.publish(sampleEvent())).body;
    for (let i = 0; i < 5; i++) {
      const { id } = await publish();
      const [{ id: deliveryId }] = await partitioned.deliveries(`event_id=${id}`);
      expect(jointRefOf(deliveryId)).toBe(jointRef({ id, environment: 'sandbox' }));
      expect(partitionOf(id, 16)).toBe(partitionOf(first.id, 16));
      await to.received(1, (request) => request.headers['service-event-id'] === id);
    }
    await partitioned.subscribe(to.url);
    const { id, deliveries } = await publish();
    expect(deliveries).toBe(2);
    await to.received(2, (request) => request.headers['service-event-id'] === id);
  });
});

describe('an id in two environments', () => {
  const production = { environment: 'production', data: { id: 's-2', status: 'approved' } };
  const bodiesOf = (id: string) =>
    to.requests
      .filter(({ headers }) => headers['service-event-id'] === id)
      .map(({ body }) => JSON.parse(body))
      .sort((a, b) => a.environment.localeCompare(b.environment));

  it('names two events, so that a sandbox key cannot take ids of production', async () => {
    const id = freshId();
    expect(await on.publish(sampleEvent({ id }), `${PUBLISHER_KEY}-sandbox`)).toMatchObject({ status: 202 });
    expect(await on.publish(sampleEvent({ id, ...production }))).toMatchObject({
      status: 202,
      body: { deliveries: 1 },
    });
    expect(await on.publish(sampleEvent({ id, ...production }))).toMatchObject({ status: 200 });
    expect(await on.publish(sampleEvent({ id, ...production, type: 'session.declined' }))).toMatchObject({
      status: 409,
    });
    await eventually('both delivered', () => deliveredCount(id) === 2);
    expect(bodiesOf(id)).toMatchObject([
      { id, ...production },
      { id, environment: 'sandbox' },
    ]);

    const read = async (query: string) => (await on.operate('GET', `/v1/events/${id}${query}`)).body;
    expect(await read('')).toMatchObject({ id, environment: 'production', also_in: ['sandbox'] });
    const sandbox = await read('?environment=sandbox');
    expect(sandbox).toMatchObject({ environment: 'sandbox', also_in: ['production'] });
    expect(sandbox.deliveries).toMatchObject([{ event_id: id, environment: 'sandbox' }]);
    expect(await on.deliveries(`event_id=${id}`)).toHaveLength(2);
    expect(await on.deliveries(`event_id=${id}&environment=sandbox`)).toHaveLength(1);
  });
});

describe('a batch', () => {
  it('has a result for each event in order: accepted, duplicate, conflict, bad fields, too large', async () => {
    const id = freshId();
    const answer = await on.publishBatch([
      sampleEvent({ id }),
      sampleEvent({ id }),
      sampleEvent({ id, type: 'session.declined' }),
      sampleEvent({ type: 'nonsense' }),
      sampleEvent({ data: { id: 's', status: 'x', pad: 'y'.repeat(5_000) } }),
      null,
      sampleEvent(),
    ]);
    expect(answer.status).toBe(200);
    expect(answer.body.results).toMatchObject([
      { status: 202, id, duplicate: false, deliveries: 1 },
      { status: 200, id, duplicate: true, deliveries: 1 },
      { status: 409, error: { code: 'conflict' } },
      { status: 422, error: { code: 'invalid_fields', errors: [{ path: 'type' }] } },
      { status: 413, error: { code: 'body_too_large', detail: expect.stringContaining('bytes (MAX_EVENT_BYTES)') } },
      { status: 422 },
      { status: 202, duplicate: false },
    ]);
  });
  it('accepts events that nest as deep as one alone may, and refuses only those that nest deeper', async () => {
    const deep = (levels: number) =>
      `{"type":"session.approved","environment":"sandbox","data":{"id":"s","status":"x","deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}}`;
    expect(await on.publish(deep(64))).toMatchObject({ status: 202 });
    expect(await on.publish(deep(65))).toMatchObject({ status: 422, body: { errors: [{ path: 'data' }] } });
    const answer = await on.publishBatch([deep(64), deep(65), deep(2)].map((text) => JSON.parse(text)));
    expect(answer.status).toBe(200);
    expect(answer.body.results).toMatchObject([
      { status: 202 },
      { status: 422, error: { errors: [{ path: 'data' }] } },
      { status: 202 },
    ]);
  });
  it('counts each of its events by publisher and status, as single calls do', async () => {
    const own = await ownWorld({ workers: 0, env: { PUBLISHER_RATE_LIMIT: '10' } });
    const counts = async (publisher = 'tests') => {
      const text = await (await fetch(`${own.ingestUrls[0]}/metrics`)).text();
      const samples = text.matchAll(
        /^posthorn_ingest_events_total\{status="(\d+)",publisher="([^"]*)"[^}]*\} (\d+)$/gm,
      );
      const its = Array.from(samples).filter(([, , name]) => name === publisher);
      return Object.fromEntries(its.map(([, status, , count]) => [status, Number(count)]));
    };
    const none = { 200: 0, 202: 0, 403: 0, 409: 0, 413: 0, 422: 0, 429: 0, 500: 0, 503: 0 };
    expect(await counts()).toEqual(none);
    const id = freshId();
    const other = { id, type: 'session.declined' };
    for (const event of [{ id }, { id }, other, { type: 'nonsense' }]) await own.publish(sampleEvent(event));
    await own.publishBatch([sampleEvent(), sampleEvent(), sampleEvent(other), null]);
    expect((await own.publish(sampleEvent({ environment: 'production' }), `${PUBLISHER_KEY}-sandbox`)).status).toBe(
      403,
    );
    let accepted = 3;
    const limited = await eventually('a batch for which too few are left of the ten of its second', async () => {
      const answer = await own.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
      if (answer.status !== 200) return answer;
      accepted += 20;
      return undefined;
    });
    expect([limited.status, limited.body.detail]).toEqual([429, expect.stringContaining('(PUBLISHER_RATE_LIMIT)')]);
    await eventually('new metrics', async () => (await counts())['429'] === 20);
    expect(await counts()).toEqual({ ...none, 200: 1, 202: accepted, 409: 2, 422: 2, 429: 20 });
    expect(await counts('sandbox-only')).toEqual({ ...none, 403: 1 });
  });
  it('puts its deliveries into the queue in the order of its events', async () => {
    const unattended = await ownWorld({ workers: 0 });
    await unattended.subscribe(to.url);
    // More than one turn of the event loop takes.
    const ids = Array.from({ length: 20 }, freshId);
    await unattended.publishBatch(ids.map((id) => sampleEvent({ id })));
    const deliveries = await Promise.all(ids.map((id) => unattended.deliveries(`event_id=${id}`)));
    const waiting = await unattended.redis.lrange(`${unattended.prefix}:{0}:deliveries:wait`, 0, -1);
    expect(waiting.reverse()).toEqual(deliveries.map(([{ id }]) => id));
  });
  it('may have 500 events, also of nearly MAX_EVENT_BYTES, not 501 and not 0', async () => {
    expect(
      (await on.publishBatch(Array.from({ length: 500 }, () => sampleEvent({ type: 'session.created' })))).body.results,
    ).toHaveLength(500);
    expect((await on.publishBatch(Array.from({ length: 501 }, () => 0))).status).toBe(422);
    expect((await on.publishBatch([])).status).toBe(422);
    const large = { id: 's', status: 'created', more: 'x'.repeat(3_800) };
    const all = await on.publishBatch(
      Array.from({ length: 500 }, () => sampleEvent({ type: 'session.created', data: large })),
    );
    expect(all.body.results.filter(({ status }: { status: number }) => status === 202)).toHaveLength(500);
  });
});

describe('ingest', () => {
  it('accepts new connections while it is busy with batches', async () => {
    const ingest = ownProcess('ingest', ownEnv());
    const { hostname, port } = new URL((await ingest.ready).url);
    const ended: string[] = [];
    const call = (what: string, request: string) => {
      const socket = connect(Number(port), hostname);
      const response = new Promise<void>((resolve, reject) => {
        socket.on('error', reject);
        socket.once('data', (data) => {
          expect(data.toString()).toMatch(/^HTTP\/1.1 200 /);
          ended.push(what);
          socket.destroy();
          resolve();
        });
      });
      return { response, sent: new Promise((resolve) => socket.write(request, resolve)) };
    };
    const body = JSON.stringify({
      events: Array.from({ length: 500 }, () => sampleEvent({ type: 'session.created' })),
    });
    const head = `host: ${hostname}\r\nauthorization: Bearer ${PUBLISHER_KEY}\r\ncontent-type: application/json`;
    const batch = `POST /v1/events/batch HTTP/1.1\r\n${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    // All of them wait to be accepted, the batches first: Node accepts one connection in each turn of the event loop.
    ingest.child.kill('SIGSTOP');
    const calls = Array.from({ length: 12 }, () => call('batch', batch));
    await Promise.all(calls.map(({ sent }) => sent));
    calls.push(
      ...Array.from({ length: 200 }, () => call('check', `GET /healthz HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)),
    );
    await Promise.all(calls.map(({ sent }) => sent));
    ingest.child.kill('SIGCONT');
    await Promise.all(calls.map(({ response }) => response));
    expect(ended.lastIndexOf('check')).toBeLessThan(ended.lastIndexOf('batch'));
  });
  it.each([
    ['an unknown type', { type: 'session.x' }, 'type'],
    ['webhook.test', { type: 'webhook.test' }, 'type'],
    ['no environment', { environment: undefined }, 'environment'],
    ['an unknown field', { surprise: 1 }, 'surprise'],
    ['a bad id', { id: 'a/b' }, 'id'],
    ['a time without a zone', { created_at: '2026-01-01T00:00:00' }, 'created_at'],
    ['data without an id', { data: { status: 'x' } }, 'data.id'],
    ['metadata that is no map of strings', { data: { id: 's', status: 'x', metadata: { a: {} } } }, 'data.metadata.a'],
    ['a country in words', { data: { id: 's', status: 'x', country: 'France' } }, 'data.country'],
    ['a tier in words', { data: { id: 's', status: 'x', tier: 'two' } }, 'data.tier'],
  ])('refuses %s by field, and stores nothing', async (_what, change, path) => {
    const count = async () => (await on.redis.keys(`${on.prefix}:*event:*`)).length;
    const before = await count();
    const answer = await on.publish(sampleEvent(change));
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_fields' } });
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toContain(path);
    expect(await count()).toBe(before);
  });
  it('accepts from each key only events of its environments', async () => {
    expect((await on.publish(sampleEvent(), 'wrong')).status).toBe(401);
    expect(
      (await on.publish(sampleEvent({ environment: 'production' }), `${PUBLISHER_KEY}-sandbox`)).body,
    ).toMatchObject({ status: 403, code: 'forbidden_environment' });
    expect((await on.publish(sampleEvent(), `${PUBLISHER_KEY}-sandbox`)).status).toBe(202);
  });
  it('refuses an event just above the size limit and accepts one just below it', async () => {
    const pad = (length: number) => sampleEvent({ data: { id: 's', status: 'x', pad: 'y'.repeat(length) } });
    const refused = await on.publish(pad(4096));
    expect([refused.status, refused.body.detail]).toEqual([
      413,
      'The body is larger than 4096 bytes (MAX_EVENT_BYTES).',
    ]);
    expect((await on.publish(pad(3_700))).status).toBe(202);
  });
  it('answers any JSON value with a status below 500', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 5 }), async (value) => {
        const status = (await on.publish(JSON.stringify({ ...sampleEvent(), data: value }))).status;
        expect([202, 422]).toContain(status);
        expect((await on.publish(JSON.stringify(value))).status).toBe(422);
      }),
      { numRuns: 40 },
    );
    for (const text of [
      '{"a":',
      '[1,2',
      '\u0000',
      '{"type":"session.approved","__proto__":{"a":1}}',
      '['.repeat(2_000),
    ]) {
      expect([400, 422]).toContain((await on.publish(text)).status);
    }
    const hostile =
      '{"type":"session.approved","environment":"sandbox","data":{"id":"s","status":"x","__proto__":{"a":1},"n":1e999,"s":"\\ud800","10":1,"9":0,"9":2}}';
    const { status, body } = await on.publish(hostile);
    expect(status).toBe(202);
    const [request] = await to.received(1, (one) => isDelivery(one) && one.headers['service-event-id'] === body.id);
    // As the description of the route says.
    expect(request?.body).toContain(
      '"data":{"9":2,"10":1,"id":"s","status":"x","__proto__":{"a":1},"n":1e999,"s":"\\ud800"}',
    );
  });
});
