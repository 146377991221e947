/** Replays of one delivery and of all failed deliveries of an address, and test deliveries. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { DAY_MS, newAttemptRun } from '@posthorn/core';
import { addCounts } from '@posthorn/store';
import { deliveriesWith, eventually, fakeClock, isDelivery, type ReceivedRequest } from '@posthorn/testing';
import { ownReceiver, ownStore, ownWorld } from './own.ts';
import { isSigned } from './signed.ts';
import { sampleEvent, type World } from './world.ts';

let on: World;
beforeEach(async () => {
  on = await ownWorld({
    workers: 2,
    env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', ADDRESS_CONCURRENCY: '100', RELEASE_RATE: '10000' },
  });
});
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

describe('a replay', () => {
  it('sends the same bytes under a new delivery id, with fresh attempts', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id, secret } = await on.subscribe(to.url);
    await publishFailing(id, 1);
    const [failed] = await failedOf(id);
    expect(failed.replayable_until).toBe(new Date(Date.parse(failed.finished_at) + 30 * DAY_MS).toISOString());
    to.answerWith(200);
    const replayed = await on.operate('POST', `/v1/deliveries/${failed.id}/replay`);
    expect(replayed.status).toBe(201);
    expect(replayed.body).toMatchObject({ event_id: failed.event_id, replay_of: failed.id, attempt_count: 0 });
    const [first, , again] = await to.received(3, isDelivery);
    expect(again!.body).toBe(first!.body);
    expect(header(again!, 'service-delivery-id')).toBe(replayed.body.id);
    expect(header(again!, 'service-event-id')).toBe(failed.event_id);
    const now = { header: header(again!, 'service-signature'), secret, body: again!.body, nowS: Date.now() / 1000 };
    expect(await isSigned(now)).toBe(true);
    const event = (await on.operate('GET', `/v1/events/${failed.event_id}`)).body;
    expect(event.deliveries.map((delivery: { id: string }) => delivery.id)).toEqual([replayed.body.id, failed.id]);
    expect((await on.delivery(failed.id)).replays).toEqual([replayed.body.id]);
    const refused = await on.operate('POST', `/v1/deliveries/${replayed.body.id}/replay`);
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    const late = await on.operate('POST', `/v1/deliveries/${failed.id}/replay`);
    expect([late.status, late.body.detail]).toEqual([409, 'Its subscription was deleted.']);
    expect((await on.delivery(failed.id)).replayable_until).toBeNull();
  });

  it('is refused once the retention is over', async () => {
    let aheadMs = 0;
    const clock = { now: () => Date.now() + aheadMs };
    const own = await ownWorld({ clock, env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000' } });
    const to = await ownReceiver(deliveriesWith(500));
    await own.subscribe(to.url);
    await own.publish(sampleEvent());
    const failed = await eventually('it to fail', async () => (await own.deliveries('status=failed'))[0]);
    aheadMs = Date.parse(failed.replayable_until) - Date.now() + 1;
    const late = await own.operate('POST', `/v1/deliveries/${failed.id}/replay`);
    expect([late.status, late.body.detail]).toEqual([409, 'It failed too long ago to be replayed (RETENTION).']);
  });
});

describe('a bulk replay', () => {
  it('sends each failed delivery of the address and time range once', async () => {
    const [to, other] = [await ownReceiver(deliveriesWith(500)), await ownReceiver(deliveriesWith(500))];
    const { id } = await on.subscribe(to.url, { environment: 'sandbox' });
    const elsewhere = await on.subscribe(other.url, { environment: 'sandbox' });
    await publishFailing(id, 40);
    const failed = await failedOf(id);
    to.answerWith(200);
    const before = to.requests.length;
    // The times of the 11th newest to the oldest delivery.
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
  });

  it('covers only the types, errors and times of failure that were requested', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await on.subscribe(to.url);
    await on.publishBatch([
      sampleEvent({ type: 'session.approved' }),
      sampleEvent({ type: 'session.declined' }),
      sampleEvent({ type: 'session.declined' }),
    ]);
    await eventually('all to fail', async () => (await failedOf(id)).length === 3);
    const count = async (query: string) =>
      (await on.operate('GET', `/v1/subscriptions/${id}/failed-deliveries?${query}`)).body;
    expect(await count('event_type=session.declined')).toEqual({ subscription_id: id, count: 2, is_complete: true });
    expect((await count('error=timeout')).count).toBe(0);
    const failedAt = (await failedOf(id)).map(({ finished_at }: { finished_at: string }) => finished_at).sort();
    const after = new Date(Date.parse(failedAt[2]) + 1).toISOString();
    expect((await count(`failed_from=${after}`)).count).toBe(0);
    expect((await count(`failed_from=${failedAt[0]}&failed_to=${failedAt[2]}`)).count).toBe(3);
    to.answerWith(200);
    const filter = { event_type: 'session.declined', error: 'status', failed_from: null, failed_to: failedAt[2] };
    const { failed_from: _, ...asked } = filter;
    const { body } = await on.operate('POST', '/v1/replays', { subscription_id: id, ...asked });
    expect(body).toMatchObject({ total: 2, filter, canary: false, batch_id: null });
    expect(await done(body.id)).toMatchObject({ status: 'done', total: 2, replayed: 2, skipped: 0 });
    const outcome = await eventually('its outcome', async () => {
      const { outcome } = (await on.operate('GET', `/v1/replays/${body.id}`)).body;
      return outcome.waiting === 0 && outcome;
    });
    expect(outcome).toEqual({ delivered: 2, failed: 0, cancelled: 0, waiting: 0, unknown: 0 });
    const made = await on.deliveries(`replay_id=${body.id}`);
    expect(made.map(({ event_type }: { event_type: string }) => event_type)).toEqual([
      'session.declined',
      'session.declined',
    ]);
    for (const bad of ['replay_id=x', `replay_id=${id}`])
      expect((await on.operate('GET', `/v1/deliveries?${bad}`)).status).toBe(422);
    const status = async (fields: unknown) =>
      (await on.operate('POST', '/v1/replays', { subscription_id: id, ...(fields as object) })).status;
    expect(await status({ error: 'none' })).toBe(422);
    expect(await status({ event_type: 'none' })).toBe(422);
    expect(await status({ canary: 1 })).toBe(422);
    expect(await status({ failed_from: after, failed_to: failedAt[0] })).toBe(422);
  });

  it('that is cancelled ends the deliveries without an attempt, and sends the others once', async () => {
    const own = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', ADDRESS_CONCURRENCY: '2' } });
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await own.subscribe(to.url);
    await own.publishBatch(Array.from({ length: 40 }, () => sampleEvent()));
    await eventually('all to fail', async () => {
      return (await own.deliveries(`subscription_id=${id}&status=failed&limit=250`)).length === 40;
    });
    const before = to.requests.length;
    const answer = Promise.withResolvers<void>();
    to.answerWith((_, response) => void answer.promise.then(() => response.end()));
    const { body } = await own.operate('POST', '/v1/replays', { subscription_id: id });
    await to.received(before + 1);
    const cancelled = await own.operate('POST', `/v1/replays/${body.id}/cancel`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
    const look = async () => (await own.operate('GET', `/v1/replays/${body.id}`)).body;
    const inFlight = await eventually('the others to end', async () => {
      const { replayed, outcome } = await look();
      return outcome.cancelled > 0 && outcome.cancelled === replayed - (to.requests.length - before) && outcome.waiting;
    });
    answer.resolve();
    const { replayed, outcome } = await eventually('it to end', async () => {
      const replay = await look();
      return replay.outcome.waiting === 0 && replay;
    });
    expect(outcome).toEqual({ delivered: inFlight, failed: 0, cancelled: replayed - inFlight, waiting: 0, unknown: 0 });
    const sent = to.requests.slice(before).map((request) => header(request, 'service-delivery-id'));
    expect(sent.length).toBe(inFlight);
    const [first] = await own.deliveries(`replay_id=${body.id}&status=failed&limit=1`);
    expect(first).toMatchObject({ failure_reason: 'cancelled', attempt_count: 0 });
    const again = await own.operate('POST', `/v1/replays/${body.id}/cancel`);
    expect([again.status, again.body.detail]).toEqual([409, 'It is cancelled already.']);
    const continued = await own.operate('POST', `/v1/replays/${body.id}/continue`);
    expect(continued.status).toBe(409);
    const audited = (await own.operate('GET', '/v1/audit?action=replay.cancelled')).body.data;
    expect(audited).toMatchObject([{ operator: 'tests', replay_id: body.id, subscription_id: id }]);
    // What was cancelled is replayed by the next one.
    const next = (await own.operate('POST', '/v1/replays', { subscription_id: id })).body;
    await eventually('the next one to deliver all others', async () => {
      const { status, outcome } = (await own.operate('GET', `/v1/replays/${next.id}`)).body;
      return status === 'done' && outcome.delivered === 40 - inFlight;
    });
  });

  it('halts when an attempt of its canary fails, and goes on when an operator continues it', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await on.subscribe(to.url);
    await publishFailing(id, 20);
    const before = to.requests.length;
    const start = async () => (await on.operate('POST', '/v1/replays', { subscription_id: id, canary: true })).body;
    const look = async (replayId: string) => (await on.operate('GET', `/v1/replays/${replayId}`)).body;
    const first = await start();
    expect(first).toMatchObject({ status: 'canary', canary: true, total: 20 });
    await eventually('it to halt', async () => (await look(first.id)).status === 'halted');
    await eventually('its five to fail', async () => (await look(first.id)).outcome.failed === 5);
    // Two attempts of each, and of no other.
    expect(to.requests.length - before).toBe(10);
    to.answerWith(200);
    expect((await on.operate('POST', `/v1/replays/${first.id}/continue`)).body.status).toBe('running');
    await eventually('the others to arrive', async () => {
      const { status, outcome } = await look(first.id);
      return status === 'done' && outcome.delivered === 15 && outcome.failed === 5;
    });
    const second = await start();
    await eventually('the five to arrive', async () => {
      const { status, outcome } = await look(second.id);
      return status === 'done' && outcome.delivered === 5;
    });
    expect((await on.operate('POST', '/v1/replays/rpl_AAAAAAAAAAAAAAAAAAAAAAAAAA/cancel')).status).toBe(404);
    expect((await on.operate('POST', '/v1/replays/rpl_AAAAAAAAAAAAAAAAAAAAAAAAAA/continue')).status).toBe(404);
  });

  it('covers deliveries that failed by clocks ahead of that of the console', async () => {
    on = await ownWorld({ env: { RETRY_DELAYS: '5ms' }, consoleClock: fakeClock(Date.now() - 600_000) });
    const to = await ownReceiver(deliveriesWith(500));
    const { id } = await on.subscribe(to.url);
    const other = await on.subscribe(to.url, { environment: 'sandbox' });
    await publishFailing(id, 3);
    to.answerWith(200);
    const rehearsed = (await on.operate('POST', '/v1/replays/rehearse', { subscription_id: id })).body;
    const count = (await on.operate('GET', `/v1/subscriptions/${id}/failed-deliveries`)).body;
    const started = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    expect([rehearsed.count, count.count, started.total]).toEqual([3, 3, 3]);
    expect(await done(started.id)).toMatchObject({ replayed: 3, to: (await failedOf(id))[0].created_at });
    const batch = await on.operate('POST', '/v1/replays', { subscription_ids: [id, other.id] });
    expect(batch.body).toMatchObject({ to: started.to });
  });

  it('is refused for a paused or unknown subscription and for a bad time range', async () => {
    const to = await ownReceiver();
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
  });
});

describe('a batch of bulk replays', () => {
  it('replays the failed deliveries of several addresses, and shows the outcome of all as one', async () => {
    const receivers = [await ownReceiver(deliveriesWith(500)), await ownReceiver(deliveriesWith(500))];
    const [one, other] = [await on.subscribe(receivers[0]!.url), await on.subscribe(receivers[1]!.url)];
    await publishFailing(one.id, 7);
    await eventually('the other to fail', async () => (await failedOf(other.id)).length === 7);
    receivers[0]!.answerWith(200);
    const wanted = { subscription_ids: [other.id, one.id], error: 'timeout', canary: true };
    const started = await on.operate('POST', '/v1/replays', { ...wanted, error: undefined });
    expect(started.status).toBe(202);
    expect(started.body).toMatchObject({ addresses: 2, canary: true, total: 14, operator: 'tests', finished_at: null });
    expect(started.body.replays).toMatchObject([
      { subscription_id: other.id, batch_id: started.body.id, total: 7 },
      { subscription_id: one.id, batch_id: started.body.id, total: 7 },
    ]);
    const look = async () => (await on.operate('GET', `/v1/replay-batches/${started.body.id}`)).body;
    const halted = await eventually('one to arrive and the other to halt', async () => {
      const batch = await look();
      return batch.status === 'halted' && batch.outcome.delivered === 7 && batch.outcome.failed === 5 && batch;
    });
    expect(halted).toMatchObject({ total: 14, replayed: 12, skipped: 0, outcome: { waiting: 0 }, finished_at: null });
    const cancelled = await on.operate('POST', `/v1/replay-batches/${started.body.id}/cancel`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'done']);
    expect(cancelled.body.replays.map(({ status }: { status: string }) => status)).toEqual(['cancelled', 'done']);
    const listed = await on.operate('GET', `/v1/replays?batch_id=${started.body.id}&limit=1`);
    expect([listed.body.data.length, listed.body.next_cursor]).toEqual([1, expect.any(String)]);
    const none = await on.operate('POST', '/v1/replays', wanted);
    expect(
      await eventually('the next to end', async () => {
        const { body } = await on.operate('GET', `/v1/replay-batches/${none.body.id}`);
        return body.status === 'done' && body;
      }),
    ).toMatchObject({ total: 0, replayed: 0, filter: { error: 'timeout' } });
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
    ] as const)
      expect((await on.operate(method, `/v1/replay-batches/rpb_AAAAAAAAAAAAAAAAAAAAAAAAAA${path}`)).status).toBe(404);
    expect((await on.operate('GET', '/v1/replays?batch_id=x')).status).toBe(422);
  });

  it('is refused as a whole, naming each address that cannot be replayed to', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const sandbox = (await on.subscribe(to.url, { environment: 'sandbox' })).id;
    const production = (await on.subscribe(to.url, { environment: 'production' })).id;
    const both = (await on.subscribe(to.url)).id;
    const paused = (await on.subscribe(to.url)).id;
    await on.operate('POST', `/v1/subscriptions/${paused}/pause`);
    const none = 'sub_AAAAAAAAAAAAAAAAAAAAAA';
    const problems = async (body: object) => {
      const answer = await on.operate('POST', '/v1/replays', body);
      expect([answer.status, answer.body.code]).toEqual([422, 'invalid_fields']);
      return answer.body.errors.map(({ path, message }: { path: string; message: string }) => `${path}: ${message}`);
    };
    expect(await problems({ subscription_ids: [both, sandbox, none, production, paused] })).toEqual([
      'subscription_ids.2: There is no such subscription',
      'subscription_ids.3: It is for production, subscription_ids.1 for sandbox: replay them separately',
      'subscription_ids.4: The address is not active: resume or validate it first, or wait if it is resuming',
    ]);
    expect(await problems({ subscription_ids: [both, sandbox, both] })).toEqual([
      'subscription_ids.2: The same as subscription_ids.0',
    ]);
    expect(await problems({ subscription_ids: [both, 'x'] })).toEqual([
      'subscription_ids.1: Expected the id of a subscription',
    ]);
    const either = ['subscription_id: Expected either subscription_id or subscription_ids'];
    expect(await problems({})).toEqual(either);
    expect(await problems({ subscription_id: both, subscription_ids: [sandbox] })).toEqual(either);
    expect(await problems({ subscription_ids: Array.from({ length: 51 }, () => both) })).toEqual([
      'subscription_ids: Expected array to have <=50 items',
    ]);
    expect((await problems({ subscription_ids: [] }))[0]).toMatch(/^subscription_ids: Expected array to have >=1/);
    expect((await on.operate('GET', '/v1/replays')).body.data).toEqual([]);
  });
});

describe('a rehearsal', () => {
  it('says how many deliveries a bulk replay would send to whom, for how long, and what speaks against it', async () => {
    const [bad, good] = [await ownReceiver(deliveriesWith(500)), await ownReceiver(deliveriesWith(500))];
    const [one, other] = [await on.subscribe(bad.url, { description: 'Acme' }), await on.subscribe(good.url)];
    await publishFailing(one.id, 4);
    await eventually('the other to fail', async () => (await failedOf(other.id)).length === 4);
    good.answerWith(200);
    const [first] = await failedOf(other.id);
    await on.operate('POST', `/v1/deliveries/${first.id}/replay`);
    const body = { subscription_ids: [one.id, other.id], canary: true };
    const rehearse = async (changed: object = {}) =>
      await on.operate('POST', '/v1/replays/rehearse', { ...body, ...changed });
    const { status, body: rehearsal } = await eventually('the attempts to be counted', async () => {
      const answer = await rehearse();
      const [ofOne, ofOther] = answer.body.addresses;
      const isCounted = ofOne.rate_per_s !== null && ofOther.rate_per_s !== null && ofOther.warnings.length === 1;
      return isCounted && ofOne.warnings.length === 1 && answer;
    });
    expect(status).toBe(200);
    expect(rehearsal).toMatchObject({ count: 7, is_complete: true, canaries: 7, skipped: 1 });
    const [ofOne, ofOther] = rehearsal.addresses;
    expect(ofOne).toMatchObject({
      subscription_id: one.id,
      url: bad.url,
      description: 'Acme',
      status: 'active',
      count: 4,
    });
    expect(ofOne.warnings).toEqual([
      { kind: 'same_error', message: 'Its attempts still fail as these deliveries did: 500.' },
    ]);
    expect(ofOther.warnings).toEqual([
      { kind: 'under_way', message: '1 is on its way again, or has arrived by a replay: skipped.' },
    ]);
    // Two workers with 100 slots each for an address.
    expect(ofOne.rate_per_s).toBeLessThanOrEqual(200_000);
    expect(ofOne.expected_s).toBe(Math.ceil(4 / ofOne.rate_per_s));
    expect(rehearsal.expected_s).toBe(Math.max(ofOne.expected_s, ofOther.expected_s));
    expect((await on.operate('GET', '/v1/replays')).body.data).toEqual([]);
    expect((await rehearse({ canary: false, error: 'timeout' })).body).toMatchObject({
      count: 0,
      canaries: 0,
      expected_s: 0,
    });
    await on.operate('POST', `/v1/subscriptions/${one.id}/pause`);
    const alone = { subscription_ids: undefined, subscription_id: one.id };
    const { addresses } = (await rehearse(alone)).body;
    expect(addresses[0].warnings.map(({ kind }: { kind: string }) => kind)).toEqual(['not_active', 'same_error']);
    const none = 'sub_AAAAAAAAAAAAAAAAAAAAAA';
    expect((await rehearse({ ...alone, subscription_id: none })).status).toBe(404);
    expect((await rehearse({ subscription_ids: [one.id, none] })).body.errors).toMatchObject([
      { path: 'subscription_ids.1' },
    ]);
    expect((await rehearse({ subscription_ids: undefined })).status).toBe(422);
  });

  it('adds up the times of slow addresses on one host, which share its slots', async () => {
    const to = await ownReceiver(deliveriesWith(500));
    const slow = [await on.subscribe(`${to.url}/a`), await on.subscribe(`${to.url}/b`)];
    await on.publish(sampleEvent());
    for (const { id } of slow) await eventually('it to fail', async () => (await failedOf(id)).length === 1);
    const taken = { ...newAttemptRun(), succeeded: 1_000, totalMs: 10_000_000, longBuckets: new Map() };
    const none = { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map() };
    const addresses = new Map(slow.map(({ id, url }) => [id, { ...taken, url }]));
    await addCounts(await ownStore(on), { ...none, addresses }, Date.now());
    const { body } = await on.operate('POST', '/v1/replays/rehearse', { subscription_ids: slow.map(({ id }) => id) });
    expect(body).toMatchObject({ expected_s: 2, addresses: [{ expected_s: 1 }, { expected_s: 1 }] });
  });
});

describe('a test delivery', () => {
  it('goes to one address only, whatever its types, with a snapshot marked as a sample', async () => {
    const [to, other] = [await ownReceiver(), await ownReceiver()];
    const { id, secret } = await on.subscribe(to.url, { event_types: ['session.expired'], environment: 'production' });
    await on.subscribe(other.url);
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
    expect(await isSigned({ ...signed, nowS: Date.now() / 1000 })).toBe(true);
    expect(other.requests.filter(isDelivery)).toEqual([]);
    const test = (fields?: unknown) => on.operate('POST', `/v1/subscriptions/${id}/test`, fields);
    expect((await test({ environment: 'sandbox' })).body.errors).toMatchObject([{ path: 'environment' }]);
    expect((await test({ environment: 'production' })).status).toBe(202);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    const whilePaused = await test();
    expect(whilePaused.status).toBe(409);
    expect(whilePaused.body.detail).toBe('Only an active address can be tested; this one is paused. Resume it.');
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: `${to.url}?not-validated` });
    expect((await test()).status).toBe(409);
    expect((await on.operate('POST', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA/test')).status).toBe(404);
  });
  it('is all that an address gets that selected webhook.test alone', async () => {
    const to = await ownReceiver();
    const { id } = await on.subscribe(to.url, { event_types: ['webhook.test'] });
    expect((await on.operate('GET', `/v1/subscriptions/${id}`)).body.event_types).toEqual(['webhook.test']);
    const { body } = await on.publish(sampleEvent());
    const { deliveries } = (await on.operate('GET', `/v1/events/${body.id}`)).body;
    expect(deliveries.map((delivery: { subscription_id: string }) => delivery.subscription_id)).not.toContain(id);
    await on.operate('POST', `/v1/subscriptions/${id}/test`);
    const [request] = await to.received(1, isDelivery);
    expect(header(request!, 'service-event')).toBe('webhook.test');
  });
});
