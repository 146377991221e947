/** `GET /v1/timeline`: the events and deliveries of a session, a reference or a user. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Timeline } from '@posthorn/operator-api';
import { eventually, fakeClock, isDelivery, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const clock = fakeClock(Date.now());
let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PARTITIONS: '3' }, clock });
  to = await ownReceiver();
});

const data = { id: 'ses-1', status: 'approved', reference: 'order 7/é', metadata: { user_id: 'u&1' } };
const publish = async (change = {}): Promise<string> => (await on.publish(sampleEvent({ data, ...change }))).body.id;
async function timeline(query: Record<string, string>): Promise<Timeline> {
  const { status, body } = await on.operate('GET', `/v1/timeline?${new URLSearchParams(query)}`);
  expect(status).toBe(200);
  return body;
}

describe('the timeline', () => {
  it('finds the events of a session, a reference and a user, with their deliveries at all addresses', async () => {
    const other = await ownReceiver();
    const subscriptions = [await on.subscribe(to.url), await on.subscribe(other.url)].map(({ id }) => id);
    const eventId = await publish();
    await publish({ data: { ...data, id: 'ses-2', reference: 'x', metadata: {} } });
    await Promise.all([to.received(2, isDelivery), other.received(2, isDelivery)]);
    await eventually('both deliveries have succeeded', async () =>
      (await timeline({ session_id: 'ses-1' })).data[0]?.deliveries.every(({ status }) => status === 'succeeded'),
    );
    const found = await timeline({ session_id: 'ses-1' });
    const deliveries = await on.deliveries(`event_id=${eventId}`);
    expect(found).toEqual({
      data: [
        {
          id: eventId,
          type: 'session.approved',
          environment: 'sandbox',
          created_at: new Date(clock.now()).toISOString(),
          accepted_at: new Date(clock.now()).toISOString(),
          session_id: 'ses-1',
          session_status: 'approved',
          reference: 'order 7/é',
          user_id: 'u&1',
          trace_id: null,
          out_of_order: false,
          deliveries: expect.arrayContaining(
            deliveries.map((delivery: object) => ({ ...delivery, out_of_order: false })),
          ),
          more_deliveries: false,
        },
      ],
      has_more: false,
      search: 'on',
    });
    expect(found.data[0]?.deliveries.map((each) => each.subscription_id).sort()).toEqual(subscriptions.sort());
    for (const [name, value] of [
      ['reference', 'order 7/é'],
      ['user_id', 'u&1'],
      ['q', 'u&1'],
      ['q', 'ses-1'],
    ] as const)
      expect((await timeline({ [name]: value })).data).toEqual(found.data);
    expect((await timeline({ session_id: 'u&1' })).data).toEqual([]);
    expect((await timeline({ session_id: 'ses-1', environment: 'production' })).data).toEqual([]);
  });

  it('marks an event that was accepted, and a delivery that arrived, after a later one of its session', async () => {
    await on.subscribe(to.url);
    const at = (ms: number) => new Date(clock.now() + ms).toISOString();
    const created = { earlier: at(-2_000), later: at(-1_000) };
    const delivered = (id: string) =>
      eventually('delivered', async () => (await on.deliveries(`event_id=${id}`))[0]?.status === 'succeeded');
    const later = await publish({ created_at: created.later });
    await delivered(later);
    clock.advance(1_000);
    const earlier = await publish({ created_at: created.earlier, type: 'session.submitted' });
    await delivered(earlier);
    expect((await timeline({ session_id: 'ses-1' })).data).toMatchObject([
      { id: earlier, out_of_order: true, deliveries: [{ out_of_order: true }] },
      { id: later, out_of_order: false, deliveries: [{ out_of_order: false }] },
    ]);
    expect(await timeline({ session_id: 'ses-1', limit: '1' })).toMatchObject({
      data: [{ id: earlier }],
      has_more: true,
    });
  });

  it('has events that were accepted in the same millisecond in the order of their creation', async () => {
    const created = (i: number) => new Date(clock.now() + i).toISOString();
    const ids = Array.from({ length: 9 }, (_, i) => `${(i * 5) % 9}`);
    for (const [i, id] of ids.entries()) await publish({ id, created_at: created(i) });
    expect((await timeline({ q: 'ses-1' })).data.map(({ id }) => id)).toEqual(ids.toReversed());
  });

  it('has events that were also created in the same millisecond in the order of their acceptance, in one partition', async () => {
    on = await ownWorld({ workers: 0, clock });
    const ids = Array.from({ length: 9 }, (_, i) => `${(i * 5) % 9}`);
    for (const id of ids) await publish({ id });
    expect((await timeline({ q: 'ses-1' })).data.map(({ id }) => id)).toEqual(ids.toReversed());
  });

  it('finds no test event, and not the same event twice after a repeated publish', async () => {
    const { id } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/test`);
    expect((await timeline({ q: 'sample' })).data).toEqual([]);
    for (const _ of [1, 2]) await publish({ id: 'order-1' });
    expect((await timeline({ q: 'ses-1' })).data).toHaveLength(1);
  });

  it('refuses a bad query and names the field', async () => {
    for (const [query, path] of [
      ['', 'session_id'],
      ['session_id=a&user_id=b', 'session_id'],
      ['session_id=', 'session_id'],
      [`q=${'x'.repeat(2_001)}`, 'q'],
      ['q=a&limit=251', 'limit'],
      ['q=a&environment=test', 'environment'],
      ['name=a', 'name'],
    ] as const) {
      const { status, body } = await on.operate('GET', `/v1/timeline?${query}`);
      expect([query, status]).toEqual([query, 422]);
      expect(body.errors.map((error: { path: string }) => error.path)).toContain(path);
    }
  });
});

describe('EVENT_SEARCH=off', () => {
  it('indexes nothing, and the timeline says so', async () => {
    const off = await ownWorld({ workers: 0, env: { EVENT_SEARCH: 'off' } });
    await off.publish(sampleEvent({ data }));
    const { body } = await off.operate('GET', '/v1/timeline?session_id=ses-1');
    expect(body).toEqual({ data: [], has_more: false, search: 'off' });
    expect(await off.redis.keys(`${off.prefix}:*:search:*`)).toEqual([]);
  });
});
