/**
 * The complete way of an event: published, matched, signed, delivered, retried on the schedule, failed, held, resumed.
 */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, HOUR_MS } from '@posthorn/core';
import { eventually, fakeClock, isDelivery, startMisbehavingReceiver } from '@posthorn/testing';
import { Queue } from 'bullmq';
import Stripe from 'stripe';
import { atEnd, overwriteSubscription, ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const finished = (on: World, id: string) =>
  eventually(`the end of ${id}`, async () => {
    const delivery = await on.delivery(id);
    return ['succeeded', 'failed'].includes(delivery.status) && delivery;
  });
const onlyDelivery = (on: World, eventId: string) =>
  eventually(`a delivery of ${eventId}`, async () => (await on.deliveries(`event_id=${eventId}`))[0]);

describe('delivery', () => {
  it("reaches each matching address with the same bytes, signed so that stripe's client accepts it", async () => {
    const on = await ownWorld();
    const [a, b, other] = [await ownReceiver(), await ownReceiver(), await ownReceiver()];
    const subscriptions = [
      await on.subscribe(a.url),
      await on.subscribe(b.url, { event_types: ['session.approved'], environment: 'sandbox' }),
    ];
    await on.subscribe(other.url, { event_types: ['session.declined'] });
    await on.subscribe(other.url, { environment: 'production' });
    const published = await on.publish(
      '{"created_at":"2026-03-01T12:00:00.5+02:00","environment":"sandbox","type":"session.approved","data":{"status":"x","id":"s","n":12345678901234567890,"more":{"z":[1.50]}}}',
    );
    expect(published).toMatchObject({ status: 202, body: { duplicate: false, deliveries: 2 } });
    const [toA] = await a.received(1, isDelivery);
    const [toB] = await b.received(1, isDelivery);
    expect(toA?.body).toBe(
      `{"id":"${published.body.id}","type":"session.approved","created_at":"2026-03-01T10:00:00.500Z","environment":"sandbox","data":{"status":"x","id":"s","n":12345678901234567890,"more":{"z":[1.50]}}}`,
    );
    expect(toB?.body).toBe(toA?.body);
    expect(toA?.headers).toMatchObject({
      'content-type': 'application/json',
      'service-event': 'session.approved',
      'service-event-id': published.body.id,
      'user-agent': expect.stringMatching(/^Posthorn\/\d/),
    });
    for (const [i, request] of [toA!, toB!].entries()) {
      const header = request.headers['service-signature'] as string;
      expect(header).toMatch(/^t=\d{10},v1=[0-9a-f]{64}$/);
      Stripe.webhooks.constructEvent(request.body, header, subscriptions[i]!.secret);
    }
    const delivery = await finished(on, toA!.headers['service-delivery-id'] as string);
    expect(delivery).toMatchObject({
      status: 'succeeded',
      attempt_count: 1,
      max_attempts: 6,
      failure_reason: null,
      replayable_until: null,
    });
    expect(delivery.attempts).toMatchObject([{ number: 1, outcome: 'succeeded', status_code: 200, error: null }]);
    expect(other.requests.filter(isDelivery)).toHaveLength(0);
    const event = await on.operate('GET', `/v1/events/${published.body.id}`);
    expect(event.body.deliveries).toHaveLength(2);
    expect(event.body).toMatchObject({ type: 'session.approved', data: { status: 'x', more: { z: [1.5] } } });
  });

  it('fails after one attempt more than there are delays, each with its error', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '30ms,40ms' } });
    const statuses = [500, 302, 404];
    const to = await ownReceiver((request, response) => {
      response.writeHead(isDelivery(request) ? statuses.shift()! : 200, { location: 'http://127.0.0.1/' }).end();
    });
    await on.subscribe(to.url);
    const { body } = await on.publish(sampleEvent());
    const delivery = await finished(on, (await onlyDelivery(on, body.id)).id);
    expect(delivery).toMatchObject({
      status: 'failed',
      attempt_count: 3,
      max_attempts: 3,
      failure_reason: 'status',
      next_attempt_at: null,
    });
    expect(
      delivery.attempts.map((attempt: { status_code: number; error: string }) => [attempt.status_code, attempt.error]),
    ).toEqual([
      [500, 'status'],
      [302, 'redirect'],
      [404, 'status'],
    ]);
    const times = delivery.attempts.map(({ started_at }: { started_at: string }) => Date.parse(started_at));
    expect(times[1] - times[0]).toBeGreaterThanOrEqual(30);
    expect(times[2] - times[1]).toBeGreaterThanOrEqual(40);
    expect(Date.parse(delivery.replayable_until)).toBe(Date.parse(delivery.finished_at) + 30 * DAY_MS);
    const bodies = new Set(to.requests.filter(isDelivery).map((request) => request.body));
    expect(bodies.size).toBe(1);
    expect(new Set(to.requests.filter(isDelivery).map((request) => request.headers['service-delivery-id'])).size).toBe(
      1,
    );
  });

  it('is retried after 1 m, 5 m, 30 m, 2 h and 12 h by default, and fails with the sixth attempt', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock });
    const to = await ownReceiver((request, response) => {
      if (isDelivery(request)) clock.advance(5_000);
      response.writeHead(isDelivery(request) ? 503 : 200).end();
    });
    await on.subscribe(to.url);
    const { body } = await on.publish(sampleEvent());
    const { id } = await onlyDelivery(on, body.id);
    const queue = new Queue('deliveries', { connection: on.redis, prefix: `${on.prefix}:{0}` });
    for (const [i, delayMs] of [60_000, 300_000, 1_800_000, 7_200_000, 43_200_000].entries()) {
      const job = await eventually(`retry ${i + 1}`, async () => {
        const [delayed] = await queue.getDelayed();
        return delayed?.delay === delayMs && delayed;
      });
      const delivery = await on.delivery(id);
      expect(delivery).toMatchObject({ status: 'waiting_for_retry', attempt_count: i + 1 });
      // Counted from the end of the attempt, which took five seconds.
      expect(delivery.attempts[i].duration_ms).toBe(5_000);
      expect(Date.parse(delivery.next_attempt_at)).toBe(clock.now() + delayMs);
      // One millisecond early it is not due: the job is snoozed for the rest.
      clock.advance(delayMs - 1);
      await job.promote();
      await eventually('the early job is put back', async () => (await queue.getDelayed())[0]?.id === job.id);
      expect((await on.delivery(id)).attempt_count).toBe(i + 1);
      clock.advance(1);
      await (await queue.getJob(job.id!))!.promote();
    }
    const delivery = await finished(on, id);
    expect(delivery).toMatchObject({ status: 'failed', attempt_count: 6, failure_reason: 'status' });
    // Each attempt is signed anew: a signature of the first one would be too old for receivers.
    const signedAtS = to.requests
      .filter(isDelivery)
      .map(({ headers }) => /^t=(\d+)/.exec(String(headers['service-signature']))?.[1]);
    const startedAtMs = delivery.attempts.map(({ started_at }: { started_at: string }) => Date.parse(started_at));
    expect(signedAtS).toEqual(startedAtMs.map((ms: number) => String(Math.floor(ms / 1000))));
    await queue.close();
  });

  it('takes no time, and is retried after its delay, if the clock steps back an hour during an attempt', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock, env: { RETRY_DELAYS: '1h' } });
    const to = await ownReceiver((request, response) => {
      if (isDelivery(request)) clock.advance(-HOUR_MS);
      response.writeHead(isDelivery(request) ? 503 : 200).end();
    });
    await on.subscribe(to.url);
    const { body } = await on.publish(sampleEvent());
    const { id } = await onlyDelivery(on, body.id);
    const delivery = await eventually('its first attempt', async () => {
      const now = await on.delivery(id);
      return now.attempt_count === 1 && now;
    });
    expect(delivery.attempts).toMatchObject([{ duration_ms: 0, started_at: delivery.created_at }]);
    expect(Date.parse(delivery.next_attempt_at)).toBe(clock.now() + HOUR_MS);
  });

  it.each([
    {
      kind: 'never responds',
      limit: '100ms',
      expected: { status: 'waiting_for_retry', attempts: [{ error: 'timeout', status_code: null }] },
    },
    // Its body takes half an hour, so the status line must be enough.
    {
      kind: 'drips its body',
      limit: '60s',
      expected: { status: 'succeeded', attempts: [{ error: null, status_code: 200 }] },
    },
  ] as const)('ends its attempt within the limit at a receiver that $kind', async ({ kind, limit, expected }) => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1h' }, workerEnv: { ATTEMPT_TIMEOUT: limit } });
    const good = await ownReceiver();
    const subscription = await on.subscribe(good.url);
    const misbehaving = await startMisbehavingReceiver(kind);
    atEnd(() => misbehaving.close());
    await overwriteSubscription(on, subscription.id, { url: misbehaving.url });
    const { body } = await on.publish(sampleEvent());
    const { id } = await onlyDelivery(on, body.id);
    const attempted = await eventually('its first attempt', async () => {
      const now = await on.delivery(id);
      return now.attempt_count === 1 && now;
    });
    expect(attempted).toMatchObject(expected);
  });
});

describe('pause', () => {
  it('follows repeated failures; new deliveries are then held, and sent after a resume', async () => {
    const on = await ownWorld({ workers: 2, env: { PAUSE_AFTER: '3', RETRY_DELAYS: '20ms' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    to.answerWith((_request, response) => response.writeHead(500).end());
    for (let i = 0; i < 3; i++) await on.publish(sampleEvent());
    const paused = await eventually('the pause', async () => {
      const now = await on.subscription(id);
      return now.status === 'paused' && now;
    });
    expect(paused).toMatchObject({
      status_reason: 'consecutive_failures',
      consecutive_failures: 3,
      paused: true,
      validated: true,
    });
    const before = to.requests.length;
    const held: string[] = [];
    for (let i = 0; i < 5; i++) held.push((await on.publish(sampleEvent())).body.id);
    expect((await on.subscription(id)).held_deliveries).toBe(5);
    expect((await on.deliveries('status=held')).length).toBe(5);
    expect(to.requests.length).toBe(before);
    to.answerWith(200);
    expect((await on.operate('POST', `/v1/subscriptions/${id}/resume`)).body).toMatchObject({
      status: 'active',
      status_reason: null,
      consecutive_failures: 0,
    });
    await to.received(5, (request) => held.includes(request.headers['service-event-id'] as string));
    await eventually('all to succeed', async () => (await on.deliveries('status=succeeded')).length === 5);
    expect(await on.subscription(id)).toMatchObject({ held_deliveries: 0, consecutive_failures: 0 });
  });
});

describe('"try now"', () => {
  it('makes the next attempt of a delivery at once, unless its address is paused; it counts as an attempt', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1h,2h', PARTITIONS: '2' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    to.answerWith((_request, response) => response.writeHead(500).end());
    const { body } = await on.publish(sampleEvent());
    const delivery = await onlyDelivery(on, body.id);
    const path = `/v1/deliveries/${delivery.id}/try-now`;
    const attempts = (count: number) =>
      eventually(`attempt ${count}`, async () => {
        const now = await on.delivery(delivery.id);
        return now.attempt_count === count && now;
      });
    await attempts(1);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    expect((await on.operate('POST', path)).body.detail).toBe(
      'Its address is not active: resume or validate it first, or wait if it is resuming.',
    );
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    const calls = await Promise.all([on.operate('POST', path), on.operate('POST', path)]);
    expect(calls.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    const { attempts: made, next_attempt_at: next } = await attempts(2);
    expect(Date.parse(next)).toBe(Date.parse(made[1].started_at) + made[1].duration_ms + 2 * HOUR_MS);
    to.answerWith(200);
    expect((await on.operate('POST', path)).status).toBe(202);
    expect(await finished(on, delivery.id)).toMatchObject({ status: 'succeeded', attempt_count: 3 });
    expect((await on.operate('POST', path)).body.detail).toBe(
      'Only a delivery that waits for a retry can be tried now.',
    );
    const { body: audit } = await on.operate(
      'GET',
      `/v1/audit?action=delivery.tried_now&subscription_id=${delivery.subscription_id}`,
    );
    expect(audit.data.map((entry: { delivery_id: string }) => entry.delivery_id)).toEqual([delivery.id, delivery.id]);
    const jobs = () => on.redis.keys(`${on.prefix}:*:deliveries:dlv_*`);
    await eventually('no job to be left', async () => (await jobs()).length === 0);
  });

  it('of many takes the waiting ones that match, page by page, of active addresses only', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1h,2h', PARTITIONS: '3', PAUSE_AFTER: '1000' } });
    const to = await ownReceiver();
    const make = async () => (await on.subscribe(to.url)).id as string;
    const [one, other, paused] = [await make(), await make(), await make()];
    to.answerWith((_request, response) => response.writeHead(500).end());
    for (let i = 0; i < 3; i++) await on.publish(sampleEvent());
    const waiting = async (of = '') => (await on.deliveries(`status=waiting_for_retry${of}`)).length;
    await eventually('all to wait', async () => (await waiting()) === 9);
    await on.operate('POST', `/v1/subscriptions/${paused}/pause`);
    to.answerWith(200);
    const tryNow = async (body: object) => await on.operate('POST', '/v1/deliveries/try-now', body);
    const { status, body } = await tryNow({ subscription_id: one });
    expect([status, body.data.length, body.next_cursor]).toEqual([202, 3, null]);
    await eventually('those of one to succeed', async () => (await waiting(`&subscription_id=${one}`)) === 0);
    expect(await waiting()).toBe(6);
    const tried: string[] = [];
    for (let cursor: string | undefined | null; cursor !== null; ) {
      const page = (await tryNow({ cursor, limit: 2, event_type: 'session.approved', environment: 'sandbox' })).body;
      tried.push(...page.data);
      cursor = page.next_cursor;
    }
    expect(new Set(tried).size).toBe(3);
    await eventually('those of the other to succeed', async () => (await waiting()) === 3);
    expect(await waiting(`&subscription_id=${paused}`)).toBe(3);
    expect(
      (await on.deliveries(`subscription_id=${other}`)).map(
        (delivery: { attempt_count: number }) => delivery.attempt_count,
      ),
    ).toEqual([2, 2, 2]);
    expect((await tryNow({ event_type: 'session.created' })).body).toEqual({ data: [], next_cursor: null });
    const { body: audit } = await on.operate('GET', `/v1/audit?action=delivery.tried_now&subscription_id=${one}`);
    expect(audit.data).toMatchObject([
      {
        delivery_id: null,
        summary: 'Asked to make the next attempts of 3 deliveries due at once.',
        detail: { deliveries: 3 },
      },
    ]);
    // Nothing was done for the paused one.
    expect((await tryNow({ subscription_id: paused })).body.data).toEqual([]);
    const ofPaused = await on.operate('GET', `/v1/audit?action=delivery.tried_now&subscription_id=${paused}`);
    expect(ofPaused.body.data).toEqual([]);
    expect(await tryNow({ status: 'failed' })).toMatchObject({ status: 422, body: { errors: [{ path: 'status' }] } });
  });
});

describe('a delivery without a free slot of its address', () => {
  it('is counted as parked', async () => {
    const on = await ownWorld({ env: { ADDRESS_CONCURRENCY: '1' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    const open: (() => unknown)[] = [];
    to.answerWith((_request, response) => open.push(() => response.end()));
    await on.publishBatch([sampleEvent(), sampleEvent(), sampleEvent()]);
    await eventually('two to be parked', async () => (await on.subscription(id)).parked_deliveries === 2);
    to.answerWith(200);
    for (const answer of open) answer();
    await eventually('all to succeed', async () => (await on.deliveries('status=succeeded')).length === 3);
    expect((await on.subscription(id)).parked_deliveries).toBe(0);
  });
});

describe('a resume', () => {
  it('costs one attempt of one held delivery if the receiver is dead; the next resume succeeds', async () => {
    const on = await ownWorld({ workers: 2, env: { PAUSE_AFTER: '1', RETRY_DELAYS: '1ms', PARTITIONS: '3' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    const path = `/v1/subscriptions/${id}`;
    const untilPaused = () => eventually('the pause', async () => (await on.subscription(id)).paused);
    to.answerWith((_request, response) => response.writeHead(500).end());
    await on.publish(sampleEvent());
    await untilPaused();
    const { paused_since, updated_at } = await on.subscription(id);
    expect(paused_since).toBe(updated_at);
    for (let i = 0; i < 5; i++) await on.publish(sampleEvent());
    const before = to.requests.length;
    expect((await on.operate('POST', `${path}/resume`)).body).toMatchObject({
      status: 'active',
      resuming: true,
      consecutive_failures: 0,
      last_resume: { outcome: 'trying' },
    });
    await untilPaused();
    const again = await on.subscription(id);
    expect(again).toMatchObject({
      status_reason: 'consecutive_failures',
      consecutive_failures: 1,
      resuming: false,
      paused_since,
      last_resume: { outcome: 'failed', delivery_id: expect.any(String) },
    });
    await eventually('its retry to be held', async () => (await on.subscription(id)).held_deliveries === 5);
    const counts = (await on.deliveries('status=held')).map((one: { attempt_count: number }) => one.attempt_count);
    expect(counts.toSorted()).toEqual([0, 0, 0, 0, 1]);
    expect(to.requests.length).toBe(before + 1);

    to.answerWith(200);
    await on.operate('POST', `${path}/resume`);
    await eventually('all to succeed', async () => (await on.deliveries('status=succeeded')).length === 5);
    const { last_resume: trial, ...resumed } = await on.subscription(id);
    expect(resumed).toMatchObject({ paused: false, paused_since: null });
    expect(trial).toMatchObject({ outcome: 'succeeded' });
    expect(trial.delivery_id).not.toBe(again.last_resume.delivery_id);
    const { body: audit } = await on.operate('GET', `/v1/audit?subscription_id=${id}`);
    const actions = audit.data.map((entry: { action: string }) => entry.action);
    expect(actions.slice(0, 4)).toEqual([
      'subscription.resume_succeeded',
      'subscription.resumed',
      'subscription.resume_failed',
      'subscription.resumed',
    ]);
  });
});

describe('the delay of first attempts', () => {
  it('is measured only for deliveries that were neither held nor replays', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1ms' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    const counted = async () => {
      const text = await (await fetch(`${on.workerUrls[0]}/metrics`)).text();
      return /^posthorn_first_attempt_delay_seconds_count\{[^}]*\} (\d+)$/m.exec(text)?.[1];
    };
    const succeeded = (count: number) =>
      eventually('success', async () => (await on.deliveries('status=succeeded')).length === count);
    to.answerWith(500);
    const { body } = await on.publish(sampleEvent());
    const failed = await onlyDelivery(on, body.id);
    await finished(on, failed.id);
    to.answerWith(200);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    for (let i = 0; i < 2; i++) await on.publish(sampleEvent());
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    await succeeded(2);
    expect((await on.operate('POST', `/v1/deliveries/${failed.id}/replay`)).status).toBe(201);
    await succeeded(3);
    await eventually('the metric', async () => (await counted()) === '1');
    await on.publish(sampleEvent());
    await succeeded(4);
    await eventually('the metric', async () => (await counted()) === '2');
  });
});

describe('a due retry', () => {
  it('is held while its address is paused, and is made after a resume with its attempts counted on', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock, env: { RETRY_DELAYS: '1h,1h' } });
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url);
    to.answerWith(500);
    const { body } = await on.publish(sampleEvent());
    const delivery = await onlyDelivery(on, body.id);
    const queue = new Queue('deliveries', { connection: on.redis, prefix: `${on.prefix}:{0}` });
    const retry = await eventually('the retry', async () => (await queue.getDelayed())[0]);
    expect((await on.operate('POST', `/v1/subscriptions/${id}/pause`)).body).toMatchObject({
      status: 'paused',
      status_reason: 'operator',
    });
    clock.advance(HOUR_MS);
    await retry.promote();
    expect(
      await eventually('it to be held', async () => {
        const now = await on.delivery(delivery.id);
        return now.status === 'held' && now;
      }),
    ).toMatchObject({ attempt_count: 1, next_attempt_at: null });
    to.answerWith(200);
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    expect(await finished(on, delivery.id)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    await queue.close();
  });
});

describe('an address that hangs', () => {
  it('delays no other address, and gets its deliveries later', async () => {
    const on = await ownWorld({ env: { WORKER_CONCURRENCY: '6', ADDRESS_CONCURRENCY: '2', RETRY_DELAYS: '1h' } });
    const [slow, fast] = [await ownReceiver(), await ownReceiver()];
    await on.subscribe(slow.url, { environment: 'sandbox' });
    await on.subscribe(fast.url, { environment: 'production' });
    const hanging: (() => void)[] = [];
    slow.answerWith((_request, response) => void hanging.push(() => response.writeHead(500).end()));
    for (let i = 0; i < 12; i++) await on.publish(sampleEvent());
    await slow.received(2, isDelivery);
    for (let i = 0; i < 12; i++) await on.publish(sampleEvent({ environment: 'production' }));
    // All of these arrive while no attempt to the other address ends.
    await fast.received(12, isDelivery);
    expect(slow.requests.filter(isDelivery)).toHaveLength(2);
    slow.answerWith(500);
    for (const answer of hanging) answer();
    await slow.received(12, isDelivery);
    await eventually(
      'all attempts to be recorded',
      async () => (await on.deliveries('status=waiting_for_retry')).length === 12,
    );
  });
  it('gets only its share from a worker that has not met it, but finds that the last attempt to it timed out', async () => {
    const on = await ownWorld({ env: { WORKER_CONCURRENCY: '6', ADDRESS_CONCURRENCY: '6' } });
    const [slow, fast] = [await ownReceiver(), await ownReceiver()];
    const { id } = await on.subscribe(slow.url, { environment: 'sandbox' });
    await on.subscribe(fast.url, { environment: 'production' });
    await on.redis.hset(`${on.prefix}:{0}:health:${id}`, { q: 1, m: 8_000 });
    const hanging: (() => void)[] = [];
    slow.answerWith((_request, response) => void hanging.push(() => response.end()));
    for (let i = 0; i < 12; i++) await on.publish(sampleEvent());
    await slow.received(3, isDelivery);
    for (let i = 0; i < 12; i++) await on.publish(sampleEvent({ environment: 'production' }));
    await fast.received(12, isDelivery);
    // Unknown addresses have four of six slots, slow ones three.
    expect(slow.requests.filter(isDelivery)).toHaveLength(3);
    slow.answerWith(200);
    for (const answer of hanging) answer();
    await slow.received(12, isDelivery);
  });
});

describe('a retry', () => {
  it('waits for newer events, but not for ever if they never end', async () => {
    const on = await ownWorld({ env: { WORKER_CONCURRENCY: '1', RETRY_DELAYS: '1ms' } });
    const [failing, busy] = [await ownReceiver(), await ownReceiver()];
    const { id } = await on.subscribe(failing.url, { environment: 'production' });
    await on.subscribe(busy.url, { environment: 'sandbox' });
    // Only the holder of this lease moves retries ahead: while the test holds it, none overtakes a newer event.
    const lease = `${on.prefix}:{0}:housekeeper`;
    await on.redis.set(lease, 'the test');
    await eventually('the worker to notice', async () => {
      const metrics = await (await fetch(`${on.workerUrls[0]}/metrics`)).text();
      return /^posthorn_maintenance_partitions\{[^}]*\} 0$/m.test(metrics);
    });
    const failNow = Promise.withResolvers<void>();
    failing.answerWith((_request, response) => void failNow.promise.then(() => response.writeHead(500).end()));
    await on.publish(sampleEvent({ environment: 'production' }));
    await failing.received(1, isDelivery);
    // Each delivery publishes one more event, so that some always wait.
    busy.answerWith((_request, response) => void on.publish(sampleEvent()).then(() => response.end()));
    await on.publishBatch(Array.from({ length: 30 }, () => sampleEvent()));
    failing.answerWith(200);
    failNow.resolve();
    await busy.received(40, isDelivery);
    expect(failing.requests.filter(isDelivery)).toHaveLength(1);
    await on.redis.del(lease);
    await failing.received(2, isDelivery);
    busy.answerWith(200);
    await eventually('an end', async () => (await on.deliveries('status=pending')).length === 0);
    expect(await on.deliveries(`status=succeeded&subscription_id=${id}`)).toMatchObject([{ attempt_count: 2 }]);
  });
});
