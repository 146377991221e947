/** Records that can't be read: every list still shows all others, names those, and says why in the log. */
import { expect, it } from '@jest/globals';
import { deliveryId, eventRef } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import { deliveriesWith, eventually } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { runPosthorn } from './run-posthorn.ts';
import { sampleEvent } from './world.ts';

it('hides no other one in the lists of the operator API and of the command line', async () => {
  const on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', LOG_LEVEL: 'silent' } });
  const to = await ownReceiver(deliveriesWith(500));
  const { id: good } = await on.subscribe(to.url);
  const { id: bad } = await on.subscribe(to.url);
  const event = sampleEvent({ id: 'order:1' });
  await on.publish(event);
  await eventually('both to fail', async () => (await on.deliveries('status=failed')).length === 2);
  const ref = eventRef({ id: 'order:1', environment: 'sandbox' });
  const [failed, broken] = [deliveryId(ref, good), deliveryId(ref, bad)];
  const spoil = async (key: string) => {
    await on.redis.del(`${on.prefix}:{0}:${key}`);
    await on.redis.set(`${on.prefix}:{0}:${key}`, 'wrong');
  };
  await spoil(`delivery:${broken}`);
  const get = async (path: string) => await on.operate('GET', path);
  for (const query of ['', '?status=failed', '?event_id=order:1', `?subscription_id=${bad}`]) {
    const { status, body } = await get(`/v1/deliveries${query}`);
    expect(status).toBe(200);
    expect(schemas.listOf(schemas.deliverySchema).parse(body).unreadable).toEqual([broken]);
    const ids = body.data.map(({ id }: { id: string }) => id);
    expect(ids).toEqual(query.includes(bad) ? [] : [failed]);
  }
  expect((await get('/v1/deliveries?status=succeeded')).body).toEqual({ data: [], next_cursor: null });
  const timeline = await get('/v1/timeline?session_id=s-1');
  expect(schemas.timelineSchema.parse(timeline.body)).toMatchObject({
    data: [{ deliveries: [{ id: failed }] }],
    unreadable: [broken],
  });
  const { body: shown } = await get('/v1/events/order:1');
  expect(schemas.eventSchema.parse(shown)).toMatchObject({ deliveries: [{ id: failed }], unreadable: [broken] });
  // One record that is read alone, and what works on records, fails as before.
  expect((await get(`/v1/deliveries/${broken}`)).status).toBe(500);
  expect((await on.operate('POST', `/v1/deliveries/${broken}/replay`)).status).toBe(500);

  await spoil(`subscription:${bad}`);
  const { body: subscriptions } = await get('/v1/subscriptions');
  expect(schemas.subscriptionsPageSchema.parse(subscriptions)).toMatchObject({
    data: [{ id: good }],
    unreadable: [bad],
    total: 2,
  });
  await spoil(`health:${good}`);
  expect((await get('/v1/subscriptions')).body).toMatchObject({ data: [], unreadable: [bad, good] });

  const posthorn = (args: string[], input?: string) => runPosthorn(on.consoleUrl, args, {}, input);
  const listed = await posthorn(['deliveries', '--json']);
  expect(listed.err).toContain(`1 record can't be read and is left out: ${broken}. See "A record that can't be read"`);
  expect(JSON.parse(listed.out).data).toMatchObject([{ id: failed }]);
  const found = await posthorn(['timeline', 's-1']);
  expect(found.err).toContain(`left out: ${broken}`);
  const applied = await posthorn(['apply', '-f', '-', '--prune'], JSON.stringify({ subscriptions: [] }));
  expect(applied).toMatchObject({ code: 1, err: expect.stringContaining('Nothing was changed. 2 records') });

  await spoil(`event:${ref}`);
  const nothing = { data: [], unreadable: ['order:1'] };
  expect((await get('/v1/timeline?session_id=s-1')).body).toMatchObject(nothing);
  await on.redis.set(`${on.prefix}:{0}:event:${ref}`, '0 1 1 \n{"id":"s-1",');
  expect((await get('/v1/timeline?session_id=s-1')).body).toMatchObject(nothing);
});

it('is left out of the overview, which still shows everything else', async () => {
  const on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1', LOG_LEVEL: 'silent' } });
  const to = await ownReceiver(deliveriesWith(500));
  const names = ['good', 'record', 'time', 'health', 'held', 'attempts', 'response'] as const;
  const subscriptions = await Promise.all(names.map(() => on.subscribe(to.url)));
  const ids = Object.fromEntries(names.map((name, i) => [name, subscriptions[i]?.id])) as Record<
    (typeof names)[number],
    string
  >;
  await on.publish(sampleEvent({ id: 'order:1' }));
  const overviewWhere = async (what: string, isWanted: (overview: schemas.Overview) => boolean) =>
    await eventually(what, async () => {
      const { status, body } = await on.operate('GET', '/v1/overview');
      expect(status).toBe(200);
      return isWanted(body) && (schemas.overviewSchema.parse(body) as schemas.Overview);
    });
  const before = await overviewWhere(
    'all to be paused and ranked',
    ({ addresses, problems }) => addresses.most_failing.length === names.length && problems.total === names.length,
  );
  expect(before).not.toHaveProperty('unreadable');
  const ref = eventRef({ id: 'order:1', environment: 'sandbox' });
  const partition = `${on.prefix}:{0}`;
  const [hours] = await on.redis.keys(`${partition}:*:${ids.attempts}:*`);
  const keys = [
    `${partition}:subscription:${ids.record}`,
    `${partition}:health:${ids.health}`,
    `${partition}:held:${ids.held}`,
    hours ?? '',
    `${partition}:responses:${deliveryId(ref, ids.response)}`,
  ];
  for (const key of keys) {
    await on.redis.del(key);
    await on.redis.set(key, 'wrong');
  }
  await on.redis.hset(`${partition}:subscription:${ids.time}`, 'resume_outcome', 'succeeded', 'resume_at', 'soon');
  const bad = names.filter((name) => name !== 'good' && name !== 'time').map((name) => ids[name]);
  const overview = await overviewWhere(
    'the overview to name them',
    ({ unreadable }) => unreadable?.length === bad.length,
  );
  expect(overview.unreadable?.toSorted()).toEqual(bad.toSorted());
  expect(overview.problems.total).toBe(names.length);
  const shown = overview.problems.items.map((problem) => problem.subscription_id);
  expect(shown).toEqual(expect.arrayContaining([ids.good, ids.time, ids.attempts]));
  for (const name of ['record', 'health', 'held', 'response'] as const) expect(shown).not.toContain(ids[name]);
  const failing = overview.addresses.most_failing.map((address) => address.subscription_id);
  expect(failing).toEqual(expect.arrayContaining([ids.good, ids.time, ids.health]));
  for (const name of ['record', 'attempts'] as const) expect(failing).not.toContain(ids[name]);
  expect(overview.addresses.paused.map(({ id }) => id).toSorted()).toEqual([ids.good, ids.time].toSorted());

  const { body: listed } = await on.operate('GET', '/v1/subscriptions');
  const { data, total } = schemas.subscriptionsPageSchema.parse(listed);
  expect(data.map(({ id }) => id).toSorted()).toEqual([ids.good, ids.time].toSorted());
  expect(total).toBe(names.length);
  expect(listed.unreadable.toSorted()).toEqual(bad.toSorted());

  const printed = await runPosthorn(on.consoleUrl, ['overview']);
  expect(printed).toMatchObject({
    code: 0,
    out: expect.stringContaining(`${names.length} addresses fail or are paused`),
  });
  expect(printed.err).toContain(`${bad.length} records can't be read and are left out: `);
});

it('read alone is an error that names it, without what is stored in it', async () => {
  const on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '1000', LOG_LEVEL: 'silent' } });
  const to = await ownReceiver(deliveriesWith(500));
  const { id } = await on.subscribe(to.url);
  await on.publish(sampleEvent({ id: 'order:1' }));
  await eventually('it to fail', async () => (await on.deliveries('status=failed')).length === 1);
  const ref = eventRef({ id: 'order:1', environment: 'sandbox' });
  const delivery = deliveryId(ref, id);
  const replay = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body.id;
  await eventually(
    'the replay to end',
    async () => (await on.operate('GET', `/v1/replays/${replay}`)).body.finished_at,
  );
  const broken = async (path: string, key: string, value: string | undefined, what: string) => {
    const [full, away] = [`${on.prefix}:{0}:${key}`, `${on.prefix}:{0}:away`];
    const existed = await on.redis.exists(full);
    if (existed) await on.redis.rename(full, away);
    if (value === undefined) await on.redis.sadd(full, 'a secret');
    else await on.redis.set(full, value);
    const { status, body } = await on.operate('GET', path);
    expect([status, body.code, body.detail]).toEqual([
      500,
      'internal',
      expect.stringMatching(
        new RegExp(`^The record of ${what}\\S* can't be read; the log of the console says why\\. See `),
      ),
    ]);
    expect(JSON.stringify(body)).not.toContain('secret');
    await on.redis.del(full);
    if (existed) await on.redis.rename(away, full);
  };
  await broken(`/v1/events/order:1`, `event:${ref}`, undefined, 'event order:1');
  await broken(`/v1/events/order:1`, `event:${ref}`, 'a secret', 'event order:1');
  await broken(`/v1/deliveries/${delivery}`, `delivery:${delivery}`, 'a secret', `delivery ${delivery}`);
  await broken(`/v1/deliveries/${delivery}`, `responses:${delivery}`, 'a secret', `the responses to ${delivery}`);
  await broken(`/v1/replays/${replay}`, `replay:${replay}`, 'a secret', `replay ${replay}`);
  await broken(`/v1/subscriptions/${id}`, `health:${id}`, 'a secret', `health of ${id}`);
  await broken(`/v1/subscriptions/${id}`, `parked:${id}`, 'a secret', `the parked lane of ${id}`);
  await broken(`/v1/subscriptions/${id}`, `subscription:${id}`, 'a secret', `subscription ${id}`);
});

it('leads to the runbook where it is a whole index: what a list or the overview would be without it is unknown', async () => {
  const on = await ownWorld({ env: { LOG_LEVEL: 'silent' } });
  await on.redis.set(`${on.prefix}:{0}:by_status:failed`, 'wrong');
  for (const path of ['/v1/deliveries', '/v1/deliveries?status=failed', '/v1/overview']) {
    const { status, body } = await on.operate('GET', path);
    expect([status, body.code]).toEqual([500, 'internal']);
    expect(body.detail).toContain('See "A key that another program has written" in docs/runbooks.md.');
  }
  expect((await on.operate('GET', '/v1/subscriptions')).status).toBe(200);
});

it('does not let try-now and a bulk resume pass over one', async () => {
  const on = await ownWorld({ env: { RETRY_DELAYS: '1h', PAUSE_AFTER: '1000' } });
  const to = await ownReceiver(deliveriesWith(500));
  const { id } = await on.subscribe(to.url);
  await on.publishBatch([sampleEvent({ id: 'order:1' }), sampleEvent({ id: 'order:2' })]);
  const waiting = await eventually('both to wait', async () => {
    const found = await on.deliveries('status=waiting_for_retry');
    return found.length === 2 && found;
  });
  await on.redis.hset(`${on.prefix}:{0}:delivery:${waiting[0].id}`, 'c', 'soon');
  expect((await on.operate('POST', '/v1/deliveries/try-now', {})).status).toBe(500);
  await on.operate('POST', `/v1/subscriptions/${id}/pause`);
  await on.redis.hset(`${on.prefix}:{0}:subscription:${id}`, 'created_at', 'soon');
  expect((await on.operate('POST', '/v1/subscriptions/resume', { status_reason: 'operator' })).status).toBe(500);
});
