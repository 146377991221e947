/** Replays, tests, rotation, changes of address: what an operator does to deliveries, and what receivers then see. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifySignature } from '@posthorn/signing';
import {
  eventually,
  fakeClock,
  isDelivery,
  type ReceivedRequest,
  type Receiver,
  startReceiver,
} from '@posthorn/testing';
import type { Answer } from '../scripts/api-client.ts';
import { sampleEvent, startWorld, type World } from './world.ts';

let on: World;
beforeAll(async () => {
  on = await startWorld({
    workers: 2,
    env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', ADDRESS_CONCURRENCY: '100', RELEASE_RATE: '10000' },
  });
});

const undo: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const one of [...undo, () => on.stop()].reverse()) await one();
});
async function receiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...args);
  undo.push(() => started.close());
  return started;
}
/** Answers deliveries with a status, validations with 200. */
const deliveriesWith =
  (status: number): Parameters<typeof startReceiver>[0] =>
  (request, response) =>
    response.writeHead(isDelivery(request) ? status : 200).end();
const failedOf = (subscriptionId: string) => on.deliveries(`subscription_id=${subscriptionId}&status=failed&limit=250`);
async function publishFailing(subscriptionId: string, count: number): Promise<void> {
  await on.publishBatch(Array.from({ length: count }, () => sampleEvent()));
  await eventually('all to fail', async () => (await failedOf(subscriptionId)).length === count);
}
const done = (replayId: string) =>
  eventually('the bulk replay to end', async () => {
    const { body } = await on.operate('GET', `/v1/replays/${replayId}`);
    return body.status !== 'running' && body;
  });
const header = (request: ReceivedRequest, name: string) => String(request.headers[name]);

describe('replay', () => {
  it('of one sends the same bytes under a new delivery id, with fresh attempts', async () => {
    const to = await receiver(deliveriesWith(500));
    const { id, secret } = await on.subscribe(to.url);
    await publishFailing(id, 1);
    const [failed] = await failedOf(id);
    expect(failed.replayable_until).toBe(new Date(Date.parse(failed.finished_at) + 30 * 86_400_000).toISOString());
    to.answerWith(200);
    const replayed = await on.operate('POST', `/v1/deliveries/${failed.id}/replay`);
    expect(replayed.status).toBe(201);
    expect(replayed.body).toMatchObject({ event_id: failed.event_id, replay_of: failed.id, attempt_count: 0 });
    const [first, , again] = await to.received(3, isDelivery);
    expect(again!.body).toBe(first!.body);
    expect(header(again!, 'service-delivery-id')).toBe(replayed.body.id);
    expect(header(again!, 'service-event-id')).toBe(failed.event_id);
    const now = { header: header(again!, 'service-signature'), secret, body: again!.body, nowS: Date.now() / 1000 };
    expect(verifySignature(now)).toBe(true);
    const event = (await on.operate('GET', `/v1/events/${failed.event_id}`)).body;
    expect(event.deliveries.map((delivery: { id: string }) => delivery.id)).toEqual([replayed.body.id, failed.id]);
    expect((await on.delivery(failed.id)).replays).toEqual([replayed.body.id]);
    const refused = await on.operate('POST', `/v1/deliveries/${replayed.body.id}/replay`);
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    expect((await on.operate('POST', `/v1/deliveries/${failed.id}/replay`)).status).toBe(409);
  });

  it('is refused once the retention is over', async () => {
    let aheadMs = 0;
    const clock = { now: () => Date.now() + aheadMs };
    const own = await startWorld({ clock, env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000' } });
    undo.push(() => own.stop());
    const to = await receiver(deliveriesWith(500));
    await own.subscribe(to.url);
    await own.publish(sampleEvent());
    const failed = await eventually('it to fail', async () => (await own.deliveries('status=failed'))[0]);
    aheadMs = Date.parse(failed.replayable_until) - Date.now() + 1;
    const late = await own.operate('POST', `/v1/deliveries/${failed.id}/replay`);
    expect([late.status, late.body.detail]).toEqual([409, 'It failed too long ago to be replayed.']);
  });

  it('in bulk sends each failed delivery of the address in the time once', async () => {
    const [to, other] = [await receiver(deliveriesWith(500)), await receiver(deliveriesWith(500))];
    const { id } = await on.subscribe(to.url, { environment: 'sandbox' });
    const elsewhere = await on.subscribe(other.url, { environment: 'sandbox' });
    await publishFailing(id, 40);
    const failed = await failedOf(id);
    to.answerWith(200);
    const before = to.requests.length;
    // The times of the 11th newest to the oldest.
    const range = { from: failed.at(-1).created_at, to: failed[10].created_at };
    const within = failed.filter(({ created_at }: { created_at: string }) => created_at <= range.to);
    const started = await on.operate('POST', '/v1/replays', { subscription_id: id, ...range });
    expect(started.status).toBe(202);
    expect(started.body).toMatchObject({ status: 'running', total: within.length, operator: 'tests' });
    const count = within.length;
    expect(await done(started.body.id)).toMatchObject({ status: 'done', total: count, replayed: count, skipped: 0 });
    const arrived = (await to.received(before + count)).slice(before);
    expect(new Set(arrived.map((request) => header(request, 'service-event-id'))).size).toBe(count);
    expect((await on.deliveries(`subscription_id=${elsewhere.id}&limit=250`)).length).toBe(40);
    await eventually('the replays to succeed', async () => {
      return (await on.deliveries(`subscription_id=${id}&status=succeeded&limit=250`)).length === count;
    });
    const again = await on.operate('POST', '/v1/replays', { subscription_id: id });
    expect(await done(again.body.id)).toMatchObject({ total: 40, replayed: 40 - count, skipped: count });
    const listed = await on.operate('GET', `/v1/replays?subscription_id=${id}`);
    expect(listed.body.data.map((replay: { id: string }) => replay.id)).toEqual([again.body.id, started.body.id]);
    for (const one of [id, elsewhere.id]) await on.operate('DELETE', `/v1/subscriptions/${one}`);
  });

  it('refuses what it can not do', async () => {
    const to = await receiver();
    const { id } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    const status = async (body: unknown) => (await on.operate('POST', '/v1/replays', body)).status;
    expect(await status({ subscription_id: id })).toBe(409);
    expect(await status({ subscription_id: 'sub_AAAAAAAAAAAAAAAAAAAAAA' })).toBe(404);
    expect(await status({ subscription_id: 'x' })).toBe(422);
    expect(await status({ subscription_id: id, from: 'yesterday' })).toBe(422);
    expect(await status({ subscription_id: id, from: '2026-02-01T00:00:00Z', to: '2026-01-01T00:00:00Z' })).toBe(422);
    expect(await status({})).toBe(422);
    expect((await on.operate('GET', '/v1/replays/rpl_none')).status).toBe(404);
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  });
});

describe('test delivery', () => {
  it('goes to one address alone, whatever types it selected, with a snapshot that says it is a sample', async () => {
    const [to, other] = [await receiver(), await receiver()];
    const { id, secret } = await on.subscribe(to.url, { event_types: ['session.expired'], environment: 'production' });
    const elsewhere = await on.subscribe(other.url);
    const { status, body } = await on.operate('POST', `/v1/subscriptions/${id}/test`);
    expect(status).toBe(202);
    expect(body).toMatchObject({ event_type: 'webhook.test', environment: 'production', subscription_id: id });
    const [request] = await to.received(1, isDelivery);
    expect(header(request!, 'service-event')).toBe('webhook.test');
    expect(JSON.parse(request!.body)).toMatchObject({
      id: body.event_id,
      type: 'webhook.test',
      environment: 'production',
      data: { reference: 'sample', metadata: { sample: 'true' } },
    });
    const signed = { header: header(request!, 'service-signature'), secret, body: request!.body };
    expect(verifySignature({ ...signed, nowS: Date.now() / 1000 })).toBe(true);
    expect(other.requests.filter(isDelivery)).toEqual([]);
    const test = (fields?: unknown) => on.operate('POST', `/v1/subscriptions/${id}/test`, fields);
    expect((await test({ environment: 'sandbox' })).body.errors).toMatchObject([{ path: 'environment' }]);
    expect((await test({ environment: 'production' })).status).toBe(202);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    expect((await test()).status).toBe(409);
    expect((await on.operate('POST', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA/test')).status).toBe(404);
    for (const one of [id, elsewhere.id]) await on.operate('DELETE', `/v1/subscriptions/${one}`);
  });
});

/** A publisher under load stays ahead of the receivers by no more than these, so that the load does not grow where receivers are slow. */
const MAX_AHEAD = 100;

describe('rotation', () => {
  it('under load: a receiver that knows only the old, or only the new secret verifies all that is sent in its window', async () => {
    const clock = fakeClock(Date.now());
    const own = await startWorld({ clock, workers: 2, env: { ADDRESS_CONCURRENCY: '100' } });
    undo.push(() => own.stop());
    const to = await receiver();
    const { id, secret: old } = await own.subscribe(to.url);
    /** Events by the phase in which their publishing began. */
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
    expect(Date.parse(rotated.body.previous_secret_until)).toBe(clock.now() + 3_600_000);
    phase = 'within';
    await received('within');
    const sentWithin = to.requests.length;
    clock.advance(3_600_000);
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
      const knows = [old, fresh].map((secret) =>
        verifySignature({ header: signature, secret, body: request.body, nowS }),
      );
      const expected = { before: [true, false], within: [true, true], after: [false, true] };
      // What was published in one phase may be signed in the next, and never in an earlier one.
      if (i < sentBefore) expect(knows).toEqual(expected.before);
      else if (i < sentWithin && began !== 'before') expect(knows).toEqual(expected.within);
      else if (began === 'after') expect(knows).toEqual(expected.after);
      else expect(knows).toContain(true);
    }
  });

  it('takes 24 hours by default, none at all when asked, and refuses nonsense', async () => {
    const to = await receiver();
    const { id } = await on.subscribe(to.url, { secret: 'a-secret-of-my-own!' });
    const rotate = (body?: unknown) => on.operate('POST', `/v1/subscriptions/${id}/rotate-secret`, body);
    const askedAtMs = Date.now();
    const until = Date.parse((await rotate()).body.previous_secret_until);
    expect(until).toBeGreaterThanOrEqual(askedAtMs + 86_400_000);
    expect(until).toBeLessThanOrEqual(Date.now() + 86_400_000);
    expect((await rotate({ overlap: '0s' })).body.previous_secret_until).toBeNull();
    for (const overlap of ['', '5', '31d', '-1h', 5, null]) {
      expect((await rotate({ overlap })).body.errors).toMatchObject([{ path: 'overlap' }]);
    }
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  });
});

describe('a change of url', () => {
  it('is answered once no attempt to the old address is in flight, and none goes there after', async () => {
    const [before, after] = [await receiver(), await receiver()];
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
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  });
  it('under load: the old address gets nothing after the answer, and the new one all the rest', async () => {
    const [before, after] = [await receiver(), await receiver()];
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
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  });
});

describe('a delete', () => {
  it('leaves nothing in Redis but what retention keeps, and that with an end', async () => {
    const own = await startWorld({ env: { RETRY_DELAYS: '1h' } });
    undo.push(() => own.stop());
    const to = await receiver(deliveriesWith(500));
    const { id } = await own.subscribe(to.url);
    await own.publishBatch(Array.from({ length: 20 }, () => sampleEvent()));
    await eventually('all to wait', async () => (await own.deliveries('status=waiting_for_retry')).length === 20);
    await own.operate('POST', `/v1/subscriptions/${id}/pause`);
    await own.publishBatch(Array.from({ length: 5 }, () => sampleEvent()));
    await own.operate('DELETE', `/v1/subscriptions/${id}`);
    const all = await own.deliveries('limit=250');
    expect(all).toHaveLength(25);
    for (const delivery of all) expect(delivery.failure_reason).toBe('subscription_deleted');
    const keys = (await own.redis.keys(`${own.prefix}:*`)).filter((key) => key.includes(id));
    for (const key of keys) expect([key, await own.redis.pttl(key)]).toEqual([key, expect.any(Number)]);
    const kept = keys.filter((key) => !/:(by_subscription|failed|stats:address):/.test(key));
    expect(kept).toEqual([]);
    for (const key of keys) expect(await own.redis.pttl(key)).toBeGreaterThan(0);
    for (const name of ['topic:sandbox:all', 'subscriptions:paused', 'release_held', 'release_parked', 'closing']) {
      expect(await own.redis.exists(`${own.prefix}:{0}:${name}`)).toBe(0);
    }
    expect(await own.redis.keys(`${own.prefix}:{0}:deliveries:dlv_*`)).toEqual([]);
  });
});
