/**
 * Erasures through the API: what is left of a person afterwards, what every other route says then, and that nothing
 * more is sent.
 */
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Erasure } from '@posthorn/operator-api';
import { createSecretBox } from '@posthorn/signing';
import { startErasure } from '@posthorn/store';
import { eventually, fakeClock, isDelivery, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownStore, ownWorld } from './own.ts';
import { storedText } from './stored-text.ts';
import { ENCRYPTION_KEY, sampleEvent, type World } from './world.ts';

let clock: ReturnType<typeof fakeClock>;
let on: World;
let to: Receiver;
beforeEach(async () => {
  clock = fakeClock(Date.now());
  on = await ownWorld({ env: { RETRY_DELAYS: '1h', PARTITIONS: '3' }, clock });
  to = await ownReceiver();
});

const USER = 'usr-72c1 "Zoë"';
const data = {
  id: 'ses-5f1d',
  status: 'approved',
  reference: 'order 7/é',
  metadata: { user_id: USER, name: 'Zoë Ångström' },
};
const publish = async (change: object = {}) => (await on.publish(sampleEvent({ id: 'order:1', data, ...change }))).body;
const erase = async (body: object): Promise<Erasure> => {
  const response = await on.operate('POST', '/v1/erasures', body);
  expect([response.status, response.body]).toEqual([202, expect.anything()]);
  return response.body;
};
const read = async (id: string): Promise<Erasure> => (await on.operate('GET', `/v1/erasures/${id}`)).body;
async function untilIs(id: string, status: Erasure['status']): Promise<Erasure> {
  return await eventually(`the erasure to be ${status}`, async () => {
    const erasure = await read(id);
    return erasure.status === status && erasure;
  });
}
async function done(id: string): Promise<Erasure> {
  clock.advance(61_000);
  return await untilIs(id, 'done');
}
/** Waits until the delivery of an event has this status. */
const delivery = (eventId: string, status: string) =>
  eventually(`the delivery to be ${status}`, async () => {
    const [found] = await on.deliveries(`event_id=${encodeURIComponent(eventId)}`);
    return found?.status === status && found;
  });
const everything = () => storedText(on.redis, on.prefix);

describe('an erasure', () => {
  it('leaves nothing of a person in Redis, and every page and answer says so', async () => {
    const { id: subscriptionId } = await on.subscribe(to.url);
    to.answerWith((request, response) => response.writeHead(500).end(`no such person: ${USER} ${request.body}`));
    await publish();
    const retrying = await delivery('order:1', 'waiting_for_retry');
    expect(await everything()).toContain('Ångström');

    const { id } = await erase({ user_id: USER, confirm: true });
    const erasure = await done(id);
    expect(erasure).toMatchObject({
      value: null,
      unsent: 'end',
      found: { events: 1, deliveries: 1, unsent: 1 },
      erased: { events: 1, deliveries: 1, ended: 1, responses: 1 },
      operator: 'tests',
      confirmed_by: 'tests',
    });
    const text = await everything();
    for (const trace of ['Zoë', 'ngstr', 'usr-72c1', 'ses-5f1d', 'order 7', 'no such person'])
      expect([trace, text.includes(trace)]).toEqual([trace, false]);

    expect(await on.delivery(retrying.id)).toMatchObject({
      status: 'failed',
      failure_reason: 'erased',
      erased: true,
      replayable_until: null,
      attempts: [{ number: 1, status_code: 500, response: null, connection: null }],
    });
    const event = (await on.operate('GET', '/v1/events/order:1')).body;
    expect(event).toMatchObject({
      id: 'order:1',
      data: {},
      erased_at: expect.any(String),
      deliveries: [{ erased: true }],
    });
    const request = await on.operate('GET', `/v1/deliveries/${retrying.id}/request`);
    expect([request.status, request.body.detail]).toEqual([404, 'Its payload has been erased.']);
    const replay = await on.operate('POST', `/v1/deliveries/${retrying.id}/replay`);
    expect([replay.status, replay.body.detail]).toEqual([409, 'Its payload has been erased.']);
    expect((await on.operate('POST', `/v1/deliveries/${retrying.id}/try-now`)).status).toBe(409);
    const why = await on.operate('GET', `/v1/explain?event_id=order:1&subscription_id=${subscriptionId}`);
    expect(why.body).toMatchObject({
      reason: 'failed',
      answer: expect.stringMatching(/because its payload was erased/),
    });
    const timeline = await on.operate('GET', `/v1/timeline?${new URLSearchParams({ user_id: USER })}`);
    expect(timeline.body.data).toEqual([]);
    const bulk = (await on.operate('POST', '/v1/replays', { subscription_id: subscriptionId })).body;
    const ended = await eventually('the bulk replay to be done', async () => {
      const { body } = await on.operate('GET', `/v1/replays/${bulk.id}`);
      return body.status === 'done' && body;
    });
    expect(ended).toMatchObject({ replayed: 0, skipped: 1 });
    expect(to.requests.filter(isDelivery)).toHaveLength(1);
  });

  it('is recorded in the audit trail and in the list, which contain only a hash of the value', async () => {
    await publish();
    const { id, value_hmac: hmac } = await erase({ session_id: 'ses-5f1d', confirm: true });
    await done(id);
    const { body } = await on.operate('GET', '/v1/audit?action=erasure.done');
    expect(body.data).toEqual([
      expect.objectContaining({
        operator: 'tests',
        detail: expect.objectContaining({
          erasure_id: id,
          field: 'session_id',
          value_hmac: hmac,
          erased_events: 1,
          confirmed_at: expect.any(String),
        }),
      }),
    ]);
    expect(JSON.stringify((await on.operate('GET', '/v1/audit')).body)).not.toContain('ses-5f1d');
    const listOf = async (query: object) =>
      (await on.operate('GET', `/v1/erasures?${new URLSearchParams({ ...query })}`)).body.data.map(
        (each: Erasure) => each.id,
      );
    expect(await listOf({})).toEqual([id]);
    expect(await listOf({ session_id: 'ses-5f1d' })).toEqual([id]);
    expect(await listOf({ session_id: 'ses-5f1' })).toEqual([]);
    // The same value of another field is another value.
    expect(await listOf({ user_id: 'ses-5f1d' })).toEqual([]);
    // Without the key nobody can compute it; with the key it is the same in every release.
    expect(hmac).toBe('e5475c2346cadd5f61bfe5e14e98d634e9dd988cff432db10a52f9b3ac0708ea');
    expect(ENCRYPTION_KEY).not.toContain(hmac);
  });

  it('answers a repeated publish as a duplicate, whatever its payload, and sends nothing', async () => {
    await on.subscribe(to.url);
    await publish();
    await delivery('order:1', 'succeeded');
    const { id } = await erase({ event_id: 'order:1', confirm: true });
    await untilIs(id, 'done');
    expect(await publish()).toMatchObject({ id: 'order:1', duplicate: true, deliveries: 1 });
    const other = await on.publish(sampleEvent({ id: 'order:1', data: { id: 'other', status: 'x' } }));
    expect([other.status, other.body.duplicate]).toEqual([200, true]);
    // What is still known of it must fit.
    const type = await on.publish(sampleEvent({ id: 'order:1', type: 'session.declined', data }));
    expect(type.status).toBe(409);
    // In the other environment the id is free.
    expect((await on.publish(sampleEvent({ id: 'order:1', environment: 'production', data }))).status).toBe(202);
    await to.received(2, isDelivery);
    const sandbox = await on.operate('GET', '/v1/events/order:1?environment=sandbox');
    expect(sandbox.body).toMatchObject({ data: {}, erased_at: expect.any(String) });
    expect(await on.delivery(sandbox.body.deliveries[0].id)).toMatchObject({ status: 'succeeded', erased: true });
  });

  it('counts first, is confirmed with a choice, and lets unsent deliveries be sent if that was chosen', async () => {
    const { id: subscriptionId } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${subscriptionId}/pause`);
    await publish();
    const { id } = await erase({ reference: 'order 7/é' });
    const counted = await untilIs(id, 'counted');
    expect(counted).toMatchObject({
      value: 'order 7/é',
      found: { events: 1, deliveries: 1, unsent: 1 },
      confirmed_at: null,
    });
    const confirmed = await on.operate('POST', `/v1/erasures/${id}/confirm`, { unsent: 'deliver' });
    expect([confirmed.status, confirmed.body.status]).toEqual([200, 'running']);
    for (const step of ['confirm', 'cancel'])
      expect((await on.operate('POST', `/v1/erasures/${id}/${step}`)).status).toBe(409);
    clock.advance(61_000);
    expect(await untilIs(id, 'waiting')).toMatchObject({ value: null, erased: { events: 0 } });
    await on.operate('POST', `/v1/subscriptions/${subscriptionId}/resume`);
    expect((await to.received(1, isDelivery))[0]?.body).toContain('Ångström');
    await delivery('order:1', 'succeeded');
    clock.advance(11_000);
    expect(await untilIs(id, 'done')).toMatchObject({ erased: { events: 1, ended: 0 } });
    expect(await everything()).not.toContain('ngstr');
  });

  it('keeps the choice of its request when it is confirmed without one, and later ends what it waits for if asked to', async () => {
    const { id: subscriptionId } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${subscriptionId}/pause`);
    await publish();
    const { id } = await erase({ reference: 'order 7/é', unsent: 'deliver' });
    await untilIs(id, 'counted');
    expect((await on.operate('POST', `/v1/erasures/${id}/confirm`)).body.unsent).toBe('deliver');
    clock.advance(61_000);
    await untilIs(id, 'waiting');
    const again = await on.operate('POST', `/v1/erasures/${id}/confirm`);
    expect([again.status, again.body.detail]).toEqual([409, expect.stringContaining('unsent: end')]);
    expect((await on.operate('POST', `/v1/erasures/${id}/confirm`, { unsent: 'end' })).body.unsent).toBe('end');
    clock.advance(11_000);
    expect(await untilIs(id, 'done')).toMatchObject({ erased: { events: 1, ended: 1 } });
    expect(await delivery('order:1', 'failed')).toMatchObject({ failure_reason: 'erased' });
  });

  it('ends deliveries that wait for a worker at once and leaves their jobs, and erases one in flight after its outcome', async () => {
    await on.subscribe(to.url);
    const respond = Promise.withResolvers<void>();
    to.answerWith((_, response) => void respond.promise.then(() => response.end()));
    await publish();
    await to.received(1, isDelivery);
    const queueKeys = (name: string) => [0, 1, 2].map((number) => `${on.prefix}:{${number}}:deliveries:${name}`);
    const waiting = async () => (await Promise.all(queueKeys('wait').map((key) => on.redis.llen(key)))).join();
    await Promise.all(queueKeys('meta').map((key) => on.redis.hset(key, 'paused', 1)));
    for (const id of ['order:2', 'order:3']) await publish({ id });
    const before = await waiting();

    const { id } = await erase({ user_id: USER, confirm: true });
    clock.advance(61_000);
    await eventually('two events to be erased', async () => (await read(id)).erased.events === 2);
    for (const event of ['order:2', 'order:3'])
      expect(await delivery(event, 'failed')).toMatchObject({ failure_reason: 'erased', erased: true });
    expect(await waiting()).toBe(before);
    respond.resolve();
    await delivery('order:1', 'succeeded');
    clock.advance(2_000);
    expect(await untilIs(id, 'done')).toMatchObject({ erased: { events: 3, deliveries: 3, ended: 2 } });

    await Promise.all(queueKeys('meta').map((key) => on.redis.hdel(key, 'paused')));
    await eventually('no job to be left', async () => (await waiting()) === '0,0,0');
    expect(to.requests.filter(isDelivery)).toHaveLength(1);
  });

  it('erases nothing without a confirmation', async () => {
    await publish();
    const { id } = await erase({ session_id: 'ses-5f1d' });
    await untilIs(id, 'counted');
    const cancelled = await on.operate('POST', `/v1/erasures/${id}/cancel`);
    expect(cancelled.body).toMatchObject({ status: 'cancelled', value: null, found: { events: 1 } });
    expect((await on.operate('POST', `/v1/erasures/${id}/confirm`, {})).status).toBe(409);
    expect((await on.operate('GET', '/v1/events/order:1')).body).toMatchObject({ erased_at: null, data });
    expect((await on.operate('GET', '/v1/audit?action=erasure.done')).body.data).toEqual([]);
  });

  it('can be cancelled after its confirmation only if no key opens its value, and says how far it came', async () => {
    await publish();
    const { id: fine } = await erase({ user_id: USER, confirm: true });
    const refused = await on.operate('POST', `/v1/erasures/${fine}/cancel`);
    expect([refused.status, refused.body.detail]).toEqual([409, 'It is confirmed already.']);
    const request = { field: 'user_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
    const ofAnotherKey = (id: string) => createSecretBox([randomBytes(32)]).seal(USER, id);
    const sealed = { ...request, seal: ofAnotherKey, isConfirmed: true };
    const { id } = (await startErasure(await ownStore(on), sealed, clock.now(), 'ada'))!;
    expect(await read(id)).toMatchObject({ status: 'running', value: null });
    expect((await on.operate('POST', `/v1/erasures/${id}/cancel`)).status).toBe(200);
    clock.advance(10_000);
    await untilIs(id, 'cancelled');
    const [entry] = (await on.operate('GET', '/v1/audit?action=erasure.cancelled')).body.data;
    expect(entry).toMatchObject({ operator: 'tests', detail: { erasure_id: id, events: 0, erased_events: 0 } });
    expect((await done(fine)).erased.events).toBe(1);
  });

  it('finds events that the search does not find because ingest does not index them', async () => {
    const off = await ownWorld({ env: { EVENT_SEARCH: 'off', PARTITIONS: '3' }, clock });
    await off.publish(sampleEvent({ id: 'order:1', data }));
    const { body } = await off.operate('POST', '/v1/erasures', { session_id: 'ses-5f1d', confirm: true });
    clock.advance(61_000);
    await eventually('the erasure to be done', async () => {
      return (await off.operate('GET', `/v1/erasures/${body.id}`)).body.status === 'done';
    });
    expect((await off.operate('GET', '/v1/events/order:1')).body).toMatchObject({ data: {} });
  });

  it.each<[string, object, string]>([
    ['no value', {}, 'session_id'],
    ['two values', { session_id: 'a', user_id: 'b' }, 'session_id'],
    ['an empty value', { session_id: '' }, 'session_id'],
    ['no id of an event', { event_id: 'a b' }, 'event_id'],
    ['an unknown choice', { session_id: 'a', unsent: 'keep' }, 'unsent'],
    ['an unknown environment', { session_id: 'a', environment: 'both' }, 'environment'],
  ])('is refused with %s, naming the field', async (_, body, path) => {
    const response = await on.operate('POST', '/v1/erasures', body);
    expect([response.status, response.body.errors.map((error: { path: string }) => error.path)]).toEqual([422, [path]]);
  });
});
