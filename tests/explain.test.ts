/** `GET /v1/explain`: what became of an event at an address. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually, fakeClock, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const clock = fakeClock(Date.now());
let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld({ env: { RETRY_DELAYS: '1h', PARTITIONS: '3' }, clock });
  to = await ownReceiver();
});

async function why(eventId: string, subscriptionId: string, more = '') {
  const { status, body } = await on.operate(
    'GET',
    `/v1/explain?event_id=${encodeURIComponent(eventId)}&subscription_id=${subscriptionId}${more}`,
  );
  expect(status).toBe(200);
  return body;
}
const publish = async (change = {}): Promise<string> => (await on.publish(sampleEvent(change))).body.id;
const until = (eventId: string, subscriptionId: string, reason: string) =>
  eventually(reason, async () => (await why(eventId, subscriptionId)).reason === reason);

describe('explain', () => {
  it('says that an event was delivered, and to whom', async () => {
    const { id } = await on.subscribe(to.url, { description: 'Acme' });
    const eventId = await publish();
    await until(eventId, id, 'delivered');
    const [delivery] = await on.deliveries(`event_id=${eventId}`);
    expect(await why(eventId, id)).toEqual({
      event_id: eventId,
      subscription_id: id,
      reason: 'delivered',
      answer: expect.stringMatching(/^Delivered at .* UTC: attempt 1, response status 200\.$/),
      next_step: null,
      since: delivery.finished_at,
      due_at: null,
      event: { type: 'session.approved', environment: 'sandbox', accepted_at: delivery.created_at, trace_id: null },
      subscription: { url: to.url, description: 'Acme', status: 'active', status_reason: null },
      delivery,
    });
  });

  it('names another type, another environment, a later creation and a missing validation', async () => {
    const other = await on.subscribe(to.url, { event_types: ['session.expired'] });
    const production = await on.subscribe(to.url, { environment: 'production' });
    const fields = { url: to.url, event_types: 'all', environment: 'both' };
    const unvalidated = (await on.operate('POST', '/v1/subscriptions', fields)).body;
    const eventId = await publish();
    clock.advance(1_000);
    const later = await on.subscribe(to.url);
    expect((await why(eventId, other.id)).reason).toBe('other_type');
    expect((await why(eventId, production.id)).reason).toBe('other_environment');
    expect((await why(eventId, unvalidated.id)).reason).toBe('not_validated');
    expect((await why(eventId, later.id)).reason).toBe('created_later');
    // Now it matches, and the answer says who changed it after the event.
    await on.operate('PATCH', `/v1/subscriptions/${other.id}`, { event_types: 'all' });
    expect(await why(eventId, other.id)).toMatchObject({
      reason: 'changed_later',
      answer: expect.stringMatching(/changed later: at .* UTC, by tests\.$/),
      since: new Date(clock.now()).toISOString(),
    });
  });

  it('says since when a delivery is held, by whom the address was paused, and that it was released', async () => {
    const { id } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    clock.advance(60_000);
    const eventId = await publish();
    expect(await why(eventId, id)).toMatchObject({
      reason: 'held',
      answer: expect.stringMatching(/^Held since .*, because its address is paused since .*An operator paused it\.$/),
      since: new Date(clock.now()).toISOString(),
    });
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    await until(eventId, id, 'delivered');
  });

  it('says why the last attempt failed and when the next is due; after a deletion, that the delivery ended', async () => {
    to.answerWith(deliveriesWith(503));
    const { id } = await on.subscribe(to.url);
    const eventId = await publish();
    await until(eventId, id, 'waiting_for_retry');
    const [delivery] = await on.deliveries(`event_id=${eventId}`);
    expect(await why(eventId, id)).toMatchObject({
      answer: expect.stringMatching(/^Attempt 1 of 2 failed\. .*\(503\)\. Attempt 2 is due at /),
      due_at: delivery.next_attempt_at,
    });
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    expect(await why(eventId, id)).toMatchObject({
      reason: 'failed',
      answer: expect.stringMatching(/its subscription was deleted/),
      subscription: null,
    });
    expect(await why(await publish(), id)).toMatchObject({
      reason: 'no_subscription',
      answer: expect.stringMatching(/^The subscription was deleted at/),
    });
  });

  it('takes the event of the environment that the address has it from, or of the one in the query', async () => {
    const sandbox = await on.subscribe(to.url, { environment: 'sandbox' });
    for (const environment of ['production', 'sandbox']) await publish({ id: 'order-1', environment });
    await until('order-1', sandbox.id, 'delivered');
    expect((await why('order-1', sandbox.id)).event.environment).toBe('sandbox');
    expect(await why('order-1', sandbox.id, '&environment=production')).toMatchObject({
      reason: 'other_environment',
      event: { environment: 'production' },
    });
  });

  it('answers for an event and a subscription that are not stored, and refuses what is no id', async () => {
    const { id } = await on.subscribe(to.url);
    expect(await why('evt_none', id)).toMatchObject({ reason: 'no_event', event: null, delivery: null });
    expect(await why(await publish(), `sub_${'A'.repeat(22)}`)).toMatchObject({ reason: 'no_subscription' });
    for (const [query, path] of [
      [`event_id=a%20b&subscription_id=${id}`, 'event_id'],
      ['event_id=e&subscription_id=x', 'subscription_id'],
      [`event_id=e&subscription_id=${id}&environment=test`, 'environment'],
      ['event_id=e', 'subscription_id'],
    ] as const) {
      const { status, body } = await on.operate('GET', `/v1/explain?${query}`);
      expect([status, body.errors[0].path]).toEqual([422, path]);
    }
  });
});
