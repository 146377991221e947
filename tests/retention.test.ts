/** How long events and deliveries are kept, by their outcome, with whole apps. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS } from '@posthorn/core';
import { eventually, fakeClock, isDelivery, type ReceivedRequest } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const refusing = (request: ReceivedRequest) => (isDelivery(request) ? 500 : 200);
const eventUntil = (on: World, id: string, letter = 's') =>
  on.redis.pexpiretime(`${on.prefix}:{0}:event:${id}/${letter}`);
/** Waits until the worker has reported that all deliveries of an event have succeeded. */
const untilShortened = (on: World, id: string, nowMs: number) =>
  eventually('the event to expire earlier', async () => {
    const untilMs = await eventUntil(on, id);
    return untilMs <= nowMs + 7 * DAY_MS && untilMs;
  });

describe('an event', () => {
  it('whose deliveries have all succeeded is kept for 7 days, with its deliveries', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock });
    const [a, b] = [await ownReceiver(), await ownReceiver()];
    await on.subscribe(a.url);
    await on.subscribe(b.url);
    const { body } = await on.publish(sampleEvent());
    expect(await untilShortened(on, body.id, clock.now())).toBe(clock.now() + 7 * DAY_MS);
    const deliveries = await on.deliveries(`event_id=${body.id}`);
    expect(deliveries).toHaveLength(2);
    for (const { id } of deliveries)
      expect(await on.redis.pexpiretime(`${on.prefix}:{0}:delivery:${id}`)).toBe(clock.now() + 7 * DAY_MS);
  });
  it('with a failed delivery is kept for 31 days, also after others and the replay have succeeded', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock, env: { RETRY_DELAYS: '1ms' } });
    const [good, bad] = [await ownReceiver(), await ownReceiver((request, to) => to.writeHead(status(request)).end())];
    let status = refusing;
    const failing = await on.subscribe(bad.url);
    await on.subscribe(good.url);
    const { body } = await on.publish(sampleEvent());
    const failed = await eventually('it to fail', async () => {
      clock.advance(1_000);
      return (await on.deliveries('status=failed'))[0];
    });
    const failedAtMs = Date.parse(failed.finished_at);
    status = () => 200;
    expect((await on.operate('POST', `/v1/deliveries/${failed.id}/replay`)).status).toBe(201);
    await eventually('the replay', async () => (await on.deliveries('status=succeeded')).length === 2);
    // What is reported later has been reported when this one has.
    const later = await on.publish(sampleEvent());
    await eventually('the later ones', async () => (await on.deliveries('status=succeeded')).length === 4);
    await untilShortened(on, later.body.id, clock.now());
    expect(await eventUntil(on, body.id)).toBeGreaterThanOrEqual(failedAtMs + 31 * DAY_MS);
    expect(await on.redis.pexpiretime(`${on.prefix}:{0}:delivery:${failed.id}`)).toBe(failedAtMs + 31 * DAY_MS);
    expect(failed.replayable_until).toBe(new Date(failedAtMs + 30 * DAY_MS).toISOString());
    expect((await on.subscription(failing.id)).status).toBe('active');
  });
  it('is reported by a worker that stops', async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock, env: { RETENTION_SUCCEEDED: '24h' } });
    const [a, b] = [await ownReceiver(), await ownReceiver()];
    await on.subscribe(a.url);
    await on.subscribe(b.url);
    const { body } = await on.publish(sampleEvent());
    await eventually('success', async () => (await on.deliveries('status=succeeded')).length === 2);
    await on.stopWorker(0);
    expect(await eventUntil(on, body.id)).toBe(clock.now() + DAY_MS);
  });
  it('makes no new delivery when it is published again after its succeeded ones are gone', async () => {
    const clock = fakeClock(Date.now() - 8 * DAY_MS);
    const on = await ownWorld({ clock });
    const [good, bad] = [
      await ownReceiver(),
      await ownReceiver((request, to) => to.writeHead(refusing(request)).end()),
    ];
    await on.subscribe(good.url);
    await on.subscribe(bad.url);
    const event = sampleEvent({ id: 'order-1', created_at: '2026-01-01T00:00:00Z' });
    const first = await on.publish(event);
    await eventually('both attempts', async () => {
      const [left, ...others] = await on.deliveries(`event_id=${first.body.id}`);
      return others.length === 0 && left.status === 'waiting_for_retry';
    });
    clock.advance(8 * DAY_MS);
    const again = await on.publish(event);
    expect([again.status, again.body]).toEqual([200, { id: 'order-1', duplicate: true, deliveries: 2 }]);
    expect(await on.deliveries(`event_id=${first.body.id}`)).toHaveLength(1);
  });
  it('can be published again under its id once it is gone', async () => {
    const on = await ownWorld({ clock: fakeClock(Date.now() - 8 * DAY_MS) });
    const first = await on.publish(sampleEvent({ id: 'order-1', created_at: '2026-01-01T00:00:00Z' }));
    const again = await on.publish(sampleEvent({ id: 'order-1', created_at: '2026-01-01T00:00:00Z' }));
    // Eight days ago nobody matched it, so it has expired at once.
    expect([first.status, again.status]).toEqual([202, 202]);
  });
});
