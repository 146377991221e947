/** Resuming many addresses at once: by id, or all that are paused for one reason. */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const resume = (on: World, body: object) => on.operate('POST', '/v1/subscriptions/resume', body);
const resultsOf = ({ body }: Awaited<ReturnType<typeof resume>>) =>
  Object.fromEntries(
    body.data.map(({ subscription_id: id, result }: { subscription_id: string; result: string }) => [id, result]),
  );

async function resumedInAudit(on: World): Promise<string[]> {
  const { body } = await on.operate('GET', '/v1/audit?action=subscription.resumed&limit=250');
  return body.data.map(({ subscription_id: id }: { subscription_id: string }) => id).sort();
}

describe('a bulk resume', () => {
  it('of named addresses resumes the paused ones, returns a result for each, and may be repeated', async () => {
    const on = await ownWorld({ env: { PARTITIONS: '3' } });
    const to = await ownReceiver();
    const make = async () => (await on.subscribe(to.url)).id as string;
    const [one, other, active, missing] = [await make(), await make(), await make(), 'sub_0123456789abcdefghijAA'];
    const { body: unvalidated } = await on.operate('POST', '/v1/subscriptions', {
      url: to.url,
      event_types: 'all',
      environment: 'sandbox',
    });
    for (const id of [one, other]) await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    for (let i = 0; i < 3; i++) await on.publish(sampleEvent());
    await to.received(3, isDelivery);
    // Of what is held for each, one delivery goes first, and nothing more while its receiver does not respond.
    to.answerWith(() => undefined);
    const ids = [one, other, one, active, unvalidated.id, missing];
    const { status, body } = await resume(on, { subscription_ids: ids });
    expect(status).toBe(200);
    expect(body).toEqual({
      data: [
        { subscription_id: one, url: to.url, result: 'resumed', detail: null },
        { subscription_id: other, url: to.url, result: 'resumed', detail: null },
        { subscription_id: active, url: to.url, result: 'unchanged', detail: null },
        {
          subscription_id: unvalidated.id,
          url: to.url,
          result: 'refused',
          detail: 'Only a paused address can be resumed; this one is awaiting_validation. Validate it.',
        },
        { subscription_id: missing, url: null, result: 'not_found', detail: null },
      ],
      next_cursor: null,
    });
    expect(await resumedInAudit(on)).toEqual([one, other].sort());
    await to.received(5, isDelivery);
    expect(await on.subscription(one)).toMatchObject({ resuming: true, held_deliveries: 2 });
    expect(resultsOf(await resume(on, { subscription_ids: ids }))).toMatchObject({ [one]: 'unchanged' });
    expect(await resumedInAudit(on)).toHaveLength(2);
    expect(to.requests.filter(isDelivery)).toHaveLength(5);
  });

  it('of all addresses paused for one reason leaves the others paused, and goes through them page by page', async () => {
    const on = await ownWorld({ env: { PAUSE_AFTER: '1', RETRY_DELAYS: '1ms' } });
    const to = await ownReceiver();
    const make = async (fields: object = {}) => (await on.subscribe(to.url, fields)).id as string;
    const failed = [await make(), await make({ description: 'Acme Bank' }), await make({ environment: 'sandbox' })];
    const byOperator = await make();
    await on.operate('POST', `/v1/subscriptions/${byOperator}/pause`);
    to.answerWith(500);
    await on.publish(sampleEvent());
    const paused = async () => (await on.operate('GET', '/v1/subscriptions?status=paused')).body.total as number;
    await eventually('all to be paused', async () => (await paused()) === 4);
    to.answerWith(200);
    const reason = { status_reason: 'consecutive_failures' };
    expect(resultsOf(await resume(on, { ...reason, q: 'acme' }))).toEqual({ [failed[1]!]: 'resumed' });
    expect(resultsOf(await resume(on, { ...reason, environment: 'sandbox' }))).toEqual({ [failed[2]!]: 'resumed' });
    for (const id of failed.slice(1)) await eventually('active', async () => !(await on.subscription(id)).resuming);
    for (const id of failed.slice(1)) await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    // Newest first: the three that an operator paused, then the one that failures paused.
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const { body } = await resume(on, { ...reason, limit: 2, cursor });
      pages.push(body.data.map(({ subscription_id: id }: { subscription_id: string }) => id));
      cursor = body.next_cursor ?? undefined;
    } while (cursor !== undefined);
    expect(pages).toEqual([[], [failed[0]]]);
    expect(await paused()).toBe(3);
    expect(await on.subscription(byOperator)).toMatchObject({ status: 'paused', status_reason: 'operator' });
    expect((await resume(on, reason)).body).toEqual({ data: [], next_cursor: null });
  });

  it('takes either ids or a reason, and filters only with a reason', async () => {
    const on = await ownWorld({ workers: 0 });
    const id = 'sub_0123456789abcdefghijAA';
    const many = Array.from({ length: 251 }, () => id);
    for (const [body, path] of [
      [{}, 'subscription_ids'],
      [{ subscription_ids: [id], status_reason: 'operator' }, 'subscription_ids'],
      [{ subscription_ids: many }, 'subscription_ids'],
      [{ subscription_ids: [id], q: 'acme' }, 'q'],
      [{ status_reason: 'redirect' }, 'status_reason'],
      [{ status_reason: 'operator', limit: 251 }, 'limit'],
      [{ status_reason: 'operator', cursor: 'x' }, 'cursor'],
    ] as const) {
      const refused = await resume(on, body);
      expect(refused).toMatchObject({ status: 422, body: { detail: 'The body is not valid.', errors: [{ path }] } });
    }
  });
});
