/** The signature doctor over the API: with what a real receiver got. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, fakeClock, isDelivery, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld();
  to = await ownReceiver();
});

async function received() {
  return await eventually('a delivery', async () => to.requests.find(isDelivery));
}

describe('the signature doctor', () => {
  it('accepts what was delivered, finds the event by its id in the body, and names what differs', async () => {
    const { id } = await on.subscribe(to.url);
    await on.publish(sampleEvent());
    const { headers, body } = await received();
    const header = String(headers['service-signature']);
    const check = async (change: object) =>
      (await on.operate('POST', `/v1/subscriptions/${id}/check-signature`, { header, body, ...change })).body;
    const signedAt = new Date(Number(/t=(\d+)/.exec(header)![1]) * 1000);
    expect(await check({})).toEqual({
      correct: true,
      secret: 'current',
      signed_at: signedAt.toISOString(),
      clock_off_s: null,
      difference: null,
      findings: [],
    });
    expect(await check({ body: body.slice(0, 90) })).toMatchObject({ findings: [{ kind: 'truncated_body' }] });
    const { data, ...rest } = JSON.parse(body);
    const changed = body.replace(`"id":"${data.id}"`, '"id":"another"');
    expect(await check({ body: changed })).toMatchObject({ findings: [{ kind: 'changed_body' }] });
    // The first id in this body is that of the session.
    expect(await check({ body: JSON.stringify({ data, ...rest }) })).toMatchObject({
      findings: [{ kind: 'reserialized_body' }],
      difference: { at: 2 },
    });
    expect(await check({ body: 'lost' })).toMatchObject({ findings: [{ kind: 'unknown_signature' }] });
    expect(await check({ body: 'lost', event_id: rest.id })).toMatchObject({ findings: [{ kind: 'changed_body' }] });
    const late = new Date(signedAt.getTime() + 412_000).toISOString();
    expect(await check({ received_at: late })).toMatchObject({ clock_off_s: 412, findings: [{ kind: 'clock_off' }] });
    expect(await check({ header: 't=999999999999,v1=00' })).toMatchObject({ signed_at: null });
    await on.operate('POST', `/v1/subscriptions/${id}/rotate-secret`, { overlap: '1h' });
    expect(await check({})).toMatchObject({ secret: 'previous', findings: [{ kind: 'previous_secret' }] });
  });
  it('says that the clock of a worker is fast', async () => {
    on = await ownWorld({ consoleClock: fakeClock(Date.now() - 600_000) });
    const { id } = await on.subscribe(to.url);
    await on.publish(sampleEvent());
    const { headers, body } = await received();
    const seen = { header: String(headers['service-signature']), body };
    const { body: check } = await on.operate('POST', `/v1/subscriptions/${id}/check-signature`, seen);
    expect(check.findings).toMatchObject([{ kind: 'clock_off', message: expect.stringContaining('the worker') }]);
  });
  it('takes the body of the largest event, and refuses a larger one', async () => {
    const { id } = await on.subscribe(to.url);
    const check = (body: string) =>
      on.operate('POST', `/v1/subscriptions/${id}/check-signature`, { header: 't=1,v1=00', body });
    expect((await check('"'.repeat(262_144))).status).toBe(200);
    expect((await check('x'.repeat(300_001))).status).toBe(422);
    expect(
      (await on.operate('POST', '/v1/subscriptions/sub_none/check-signature', { header: 'x', body: '' })).status,
    ).toBe(404);
  });
});
