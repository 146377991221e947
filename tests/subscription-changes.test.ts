/** What receivers see of a rotated secret, a changed url and a deleted subscription, also under load. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { DAY_MS, HOUR_MS } from '@posthorn/core';
import { deliveriesWith, eventually, fakeClock, isDelivery, type ReceivedRequest } from '@posthorn/testing';
import type { Answer } from '../scripts/api-client.ts';
import { ownReceiver, ownWorld } from './own.ts';
import { isSigned } from './signed.ts';
import { sampleEvent, type World } from './world.ts';

let on: World;
beforeEach(async () => {
  on = await ownWorld({
    workers: 2,
    env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', ADDRESS_CONCURRENCY: '100', RELEASE_RATE: '10000' },
  });
});
const header = (request: ReceivedRequest, name: string) => String(request.headers[name]);

/**
 * Maximum number of events that a publisher under load is ahead of the receivers, so that slow receivers do not cause a
 * backlog.
 */
const MAX_AHEAD = 100;

describe('a rotation of the secret', () => {
  it('signs with both secrets during the overlap, with the old one before and the new one after it, under load', async () => {
    const clock = fakeClock(Date.now());
    const own = await ownWorld({ clock, workers: 2, env: { ADDRESS_CONCURRENCY: '100' } });
    const to = await ownReceiver();
    const { id, secret: old } = await own.subscribe(to.url);
    /** Events by the phase in which they were published. */
    const phases = new Map<string, 'before' | 'within' | 'after'>();
    let phase: 'before' | 'within' | 'after' | undefined = 'before';
    const publisher = (async () => {
      while (phase !== undefined) {
        const began = phase;
        const { body } = await own.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
        for (const result of body.results) phases.set(result.id, began);
        await to.received(phases.size - MAX_AHEAD, isDelivery);
      }
    })();
    const received = (began: typeof phase) =>
      to.received(100, (request) => isDelivery(request) && phases.get(header(request, 'service-event-id')) === began);
    await to.received(100, isDelivery);
    const sentBefore = to.requests.length;
    const rotated = await own.operate('POST', `/v1/subscriptions/${id}/rotate-secret`, { overlap: '1h' });
    const fresh = rotated.body.secret;
    expect(rotated.status).toBe(200);
    expect(fresh).toMatch(/^whsec_/);
    expect(Date.parse(rotated.body.previous_secret_until)).toBe(clock.now() + HOUR_MS);
    phase = 'within';
    await received('within');
    const sentWithin = to.requests.length;
    clock.advance(HOUR_MS);
    expect((await own.subscription(id)).previous_secret_until).toBeNull();
    phase = 'after';
    await received('after');
    phase = undefined;
    await publisher;
    for (const [i, request] of to.requests.entries()) {
      if (!isDelivery(request)) continue;
      const signature = header(request, 'service-signature');
      const nowS = Number(/^t=(\d+),/.exec(signature)?.[1]);
      const began = phases.get(header(request, 'service-event-id'));
      const check = { header: signature, body: request.body, nowS };
      const knows = [await isSigned({ ...check, secret: old }), await isSigned({ ...check, secret: fresh })];
      const expected = { before: [true, false], within: [true, true], after: [false, true] };
      // An event published in one phase may be signed in the next, but never in an earlier one.
      if (i < sentBefore) expect(knows).toEqual(expected.before);
      else if (i < sentWithin && began !== 'before') expect(knows).toEqual(expected.within);
      else if (began === 'after') expect(knows).toEqual(expected.after);
      else expect(knows).toContain(true);
    }
  });

  it('overlaps for 24 hours by default, or not at all if asked, and refuses bad durations', async () => {
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url, { secret: 'a-secret-of-my-own!' });
    const rotate = (body?: unknown) => on.operate('POST', `/v1/subscriptions/${id}/rotate-secret`, body);
    const askedAtMs = Date.now();
    const until = Date.parse((await rotate()).body.previous_secret_until);
    expect(until).toBeGreaterThanOrEqual(askedAtMs + DAY_MS);
    expect(until).toBeLessThanOrEqual(Date.now() + DAY_MS);
    expect((await rotate({ overlap: '0s' })).body.previous_secret_until).toBeNull();
    for (const overlap of ['', '5', '31d', '-1h', 5, null]) {
      expect((await rotate({ overlap })).body.errors).toMatchObject([{ path: 'overlap' }]);
    }
  });
});

describe('a change of url', () => {
  it('is answered once no attempt to the old address is in flight, and none goes there later', async () => {
    const [before, after] = [await ownReceiver(), await ownReceiver()];
    const { id } = await on.subscribe(before.url);
    const waiting: (() => void)[] = [];
    before.answerWith((_request, response) => void waiting.push(() => response.end()));
    await on.publish(sampleEvent());
    await before.received(1, isDelivery);
    let answered = false;
    const patched = on.operate('PATCH', `/v1/subscriptions/${id}`, { url: after.url }).then((answer: Answer) => {
      answered = true;
      return answer;
    });
    await eventually('the change to be stored', async () => (await on.subscription(id)).url === after.url);
    await on.publish(sampleEvent());
    expect(answered).toBe(false);
    waiting[0]!();
    expect((await patched).body).toMatchObject({ url: after.url, status: 'awaiting_validation' });
    await on.operate('POST', `/v1/subscriptions/${id}/validate`);
    await after.received(1, isDelivery);
    expect(before.requests.filter(isDelivery)).toHaveLength(1);
  });
  it('sends nothing to the old address after it returned, and all the rest to the new one, under load', async () => {
    const [before, after] = [await ownReceiver(), await ownReceiver()];
    const { id } = await on.subscribe(before.url);
    let publishing = true;
    let published = 0;
    const publisher = (async () => {
      while (publishing) {
        const { body } = await on.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
        published += body.results.length;
        await eventually('deliveries', () => before.requests.length + after.requests.length > published - MAX_AHEAD);
      }
    })();
    await before.received(100, isDelivery);
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: after.url });
    const sentBefore = before.requests.length;
    await on.operate('POST', `/v1/subscriptions/${id}/validate`);
    await after.received(100, isDelivery);
    publishing = false;
    await publisher;
    expect(before.requests).toHaveLength(sentBefore);
    await eventually('all to have arrived', () => {
      return before.requests.filter(isDelivery).length + after.requests.filter(isDelivery).length === published;
    });
  });
});

describe('a deletion', () => {
  it('leaves nothing in Redis but what retention keeps, with an expiry', async () => {
    const own = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await own.subscribe(to.url);
    await own.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
    await eventually('all to wait', async () => (await own.deliveries('status=waiting_for_retry')).length === 20);
    await own.operate('POST', `/v1/subscriptions/${id}/pause`);
    await own.publishBatch(Array.from({ length: 5 }, () => sampleEvent()));
    const deleted = await own.operate('DELETE', `/v1/subscriptions/${id}`);
    expect([deleted.status, deleted.body]).toEqual([204, '']);
    expect((await own.operate('DELETE', `/v1/subscriptions/${id}`)).status).toBe(404);
    const all = await own.deliveries('limit=250');
    expect(all).toHaveLength(25);
    for (const delivery of all) expect(delivery.failure_reason).toBe('subscription_deleted');
    const keys = (await own.redis.keys(`${own.prefix}:*`)).filter((key) => key.includes(id));
    const kept = keys.filter((key) => !/:(by_subscription|failed|stats:address):/.test(key));
    expect(kept).toEqual([]);
    for (const key of keys) expect([key, (await own.redis.pttl(key)) > 0]).toEqual([key, true]);
    for (const name of [
      'topic:sandbox:all',
      'subscriptions:paused',
      'subscriptions:resuming',
      'resuming',
      'release_held',
      'release_parked',
      'release_overdue',
      'closing',
    ]) {
      expect(await own.redis.exists(`${own.prefix}:{0}:${name}`)).toBe(0);
    }
    expect(await own.redis.keys(`${own.prefix}:{0}:deliveries:dlv_*`)).toEqual([]);
  });
});
