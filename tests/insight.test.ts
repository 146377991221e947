/** What operators see: overview, audit trail, notices; and that responses match the API's document. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { addFailure, deliveryId, eventRef, HOUR_MS, newAttemptRun, newEventId } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import { addCounts, newSubscription, saveSubscription } from '@posthorn/store';
import { deliveriesWith, eventually, fakeClock, isDelivery, type Receiver } from '@posthorn/testing';
import type { z } from 'zod';
import { ownProcess, ownReceiver, ownStore, ownWorld } from './own.ts';
import { isSigned } from './signed.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent, type World } from './world.ts';

const NOTICE_SECRET = 'a-secret-for-notices-0123456789';
let on: World;
let to: Receiver;
let failing: Receiver;
let notices: Receiver;
beforeEach(async () => {
  [to, failing, notices] = [await ownReceiver(), await ownReceiver(deliveriesWith(503)), await ownReceiver()];
  on = await ownWorld({ env: { RETRY_DELAYS: '5ms', PAUSE_AFTER: '2', NOTICE_URL: notices.url, NOTICE_SECRET } });
});
const noticesOf = (type: string) =>
  notices.requests.map(({ body }) => JSON.parse(body)).filter((notice) => notice.type === type);

describe('the overview', () => {
  it('says that the queue was paused, as BullMQ and its tools do it', async () => {
    const meta = `${on.prefix}:{0}:deliveries:meta`;
    const notWell = async () => (await on.operate('GET', '/v1/overview')).body.not_well;
    const isPaused = [{ kind: 'queue_paused', message: "the queue was paused with BullMQ's API" }];
    await on.redis.hset(meta, 'paused', 1);
    await eventually('it to say so', async () => JSON.stringify(await notWell()) === JSON.stringify(isPaused));
    await on.redis.hdel(meta, 'paused');
    await eventually('all to be well', async () => (await notWell()).length === 0);
  });
  it('counts attempts, successes and durations, ranks addresses, and lists the workers', async () => {
    const [good, bad] = [await on.subscribe(to.url), await on.subscribe(failing.url)];
    await on.publishBatch([sampleEvent(), sampleEvent()]);
    await eventually('the address to be paused', async () => (await on.subscription(bad.id)).paused);
    const overview = await eventually('all to be counted', async () => {
      const { body } = await on.operate('GET', '/v1/overview');
      // A job leaves the queue just after its attempt is counted.
      return body.last_hour.attempts === 6 && body.queue.active === 0 && body;
    });
    expect(schemas.overviewSchema.safeParse(overview).error).toBeUndefined();
    expect(overview).toMatchObject({
      deliveries: { succeeded: 2, failed: 2, pending: 0 },
      subscriptions: { active: 1, paused: 1 },
      queue: { waiting: 0, active: 0 },
      workers: [{ pid: process.pid, concurrency: 100 }],
      last_hour: { attempts: 6, succeeded: 2, failed: 4, success_rate: 2 / 6 },
      last_day: { attempts: 6 },
      addresses: {
        most_failing: [{ subscription_id: bad.id, url: failing.url, status: 'paused', failed: 4, succeeded: 0 }],
        paused: [{ id: bad.id, status_reason: 'consecutive_failures' }],
      },
    });
    expect(overview.last_hour.series).toHaveLength(60);
    expect(overview.last_day.series).toHaveLength(24);
    for (const ms of [overview.last_hour.attempt_ms.p50, overview.last_hour.arrival_ms.p99])
      expect(ms).toBeGreaterThan(0);
    expect(overview.addresses.slowest.map((one: { subscription_id: string }) => one.subscription_id).sort()).toEqual(
      [good.id, bad.id].sort(),
    );
    const attempts = (await on.operate('GET', `/v1/subscriptions/${bad.id}/attempts`)).body;
    expect(attempts).toMatchObject({ attempts: 4, failed: 4, success_rate: 0 });
    expect(attempts.series).toHaveLength(24);
    await on.operate('DELETE', `/v1/subscriptions/${bad.id}`);
    expect((await on.operate('GET', `/v1/subscriptions/${bad.id}/attempts`)).status).toBe(404);
  });
  it('no longer lists a worker that has stopped', async () => {
    const own = await ownWorld({ workers: 2 });
    const workers = async () => (await own.operate('GET', '/v1/overview')).body.workers.length;
    expect(await workers()).toBe(2);
    await own.stopWorker(0);
    await eventually('it to be gone', async () => (await workers()) === 1);
  });
  it('lists the workers although the clock of the console is an hour ahead', async () => {
    const own = await ownWorld({ consoleClock: fakeClock(Date.now() + HOUR_MS) });
    const { body } = await own.operate('GET', '/v1/overview');
    expect(body.workers).toMatchObject([{ pid: process.pid }]);
    expect(Date.parse(body.at) - Date.parse(body.workers[0].seen_at)).toBeLessThan(60_000);
  });
  it('names a worker whose clock is wrong, whatever the clock of the console', async () => {
    const [clock, consoleClock] = [fakeClock(Date.now() + 600_000), fakeClock(Date.now() - HOUR_MS)];
    const { body } = await (await ownWorld({ clock, consoleClock })).operate('GET', '/v1/overview');
    const message = expect.stringMatching(/^the clock of worker .+:\d+ is \d+ s fast$/);
    expect(body.not_well).toContainEqual({ kind: 'worker_clock', message });
    expect(body.why_not_well).toContainEqual(message);
    expect(body.workers[0].clock_offset_ms).toBeLessThanOrEqual(600_000);
  });
});

describe('an address whose attempts fail', () => {
  const errors = (code: number) => ({
    label: String(code),
    count: expect.any(Number),
    message: 'database is read-only',
  });
  it('is failing long before a delivery fails: in its subscription, the overview, metrics and notices', async () => {
    failing.answerWith((_request, response) => response.writeHead(503).end('{"error":"database is read-only"}'));
    const env = { RETRY_DELAYS: '1h', NOTICE_URL: notices.url, NOTICE_SECRET };
    const own = await ownWorld({ env });
    const well = async () => (await own.operate('GET', '/v1/overview')).body.all_well;
    await eventually('all to be well', well);
    const bad = await own.subscribe(failing.url, { description: 'Acme' });
    expect((await own.subscription(bad.id)).health).toMatchObject({ state: 'unknown', verdict: null, error: null });
    await own.publishBatch(Array.from({ length: 12 }, () => sampleEvent()));
    const { health } = await eventually('the address to be failing', async () => {
      const now = await own.subscription(bad.id);
      return now.health.failed_in_a_row === 12 && now;
    });
    expect(health).toMatchObject({
      state: 'failing',
      recent: { attempts: 12, succeeded: 0 },
      last_succeeded_at: null,
      error: errors(503),
    });
    expect(health.verdict).toMatch(/^503 since (\d{4}-\d\d-\d\d )?\d\d:\d\d UTC\.$/);
    const overview = await eventually('the overview to have it', async () => {
      const { body } = await own.operate('GET', '/v1/overview');
      return body.problems.total === 1 && body;
    });
    expect(overview).toMatchObject({
      all_well: false,
      why_not_well: [
        '1 address fails or is paused',
        expect.stringMatching(/^12 of \d+ attempts failed in the last 15 minutes$/),
      ],
      not_well: [{ kind: 'addresses' }, { kind: 'attempts' }],
      problems: {
        items: [{ subscription_id: bad.id, url: failing.url, description: 'Acme', status: 'active', held: 0 }],
      },
      incidents: [],
    });
    expect(overview.problems.items[0]).toMatchObject({ verdict: health.verdict, failing_since: health.failing_since });
    const metrics = await (await fetch(`${own.workerUrls[0]}/metrics`)).text();
    expect(metrics).toMatch(/posthorn_failing_addresses\{[^}]*\} 1/);
    await eventually('the notice', () => noticesOf('subscription.failing').length === 1);
    expect(noticesOf('subscription.failing')[0].data).toEqual({
      subscription_id: bad.id,
      reason: '503',
      since: health.failing_since,
    });
    failing.answerWith(200);
    await own.publishBatch(Array.from({ length: 12 }, () => sampleEvent()));
    await eventually('it to be healthy', async () => (await own.subscription(bad.id)).health.state === 'healthy');
    expect((await own.subscription(bad.id)).health.error).toBeNull();
    await eventually('the notice of the end', () => noticesOf('subscription.recovered').length === 1);
  });
  it('belongs to an incident with others that broke at the same time', async () => {
    const own = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
    const ids: string[] = [];
    for (const path of ['a', 'b', 'c']) ids.push((await own.subscribe(`${failing.url}${path}`)).id);
    await own.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    const { incidents, problems } = await eventually('an incident of three', async () => {
      const { body } = await own.operate('GET', '/v1/overview');
      return body.incidents[0]?.addresses === 3 && body;
    });
    expect(incidents).toMatchObject([{ error_label: '503', host: new URL(failing.url).host }]);
    expect(incidents[0].subscription_ids.sort()).toEqual(ids.sort());
    for (const item of problems.items) expect(item.incident).toBe(incidents[0].id);
  });
  it('is counted with all others of an incident, however many they are', async () => {
    const own = await ownWorld();
    const nowMs = Date.now();
    const many = Array.from({ length: 3_000 }, (_, i) => [nowMs + i, `sub_${i}`]);
    await own.redis.zadd(`${own.prefix}:{0}:failing`, ...many.flat());
    const { incidents } = (await own.operate('GET', '/v1/overview')).body;
    expect(incidents).toMatchObject([{ addresses: 3_000, started_at: new Date(nowMs).toISOString() }]);
    expect(incidents[0].subscription_ids).toHaveLength(250);
  });
  it('belongs to an incident without an error or a host, if most of the others have another error or host', async () => {
    const own = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
    const other = await ownReceiver((request, response) => {
      response.writeHead(!isDelivery(request) ? 200 : request.path.endsWith('c') ? 500 : 502).end();
    });
    for (const url of [`${failing.url}a`, `${failing.url}b`, `${other.url}c`, `${other.url}d`])
      await own.subscribe(url);
    await own.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    const incident = await eventually('an incident of four', async () => {
      const [found] = (await own.operate('GET', '/v1/overview')).body.incidents;
      return found?.addresses === 4 && found;
    });
    expect(incident).toMatchObject({ error_label: null, host: null });
  });
  it('enters and leaves the list of failing ones of every console process, the worst first', async () => {
    const own = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
    const other = apiClients('', (await ownProcess('console', { ...own.env, LOG_LEVEL: 'info' }).ready).url);
    const failingOnes = async ({ operate }: Pick<World, 'operate'>) => {
      const { body } = await operate('GET', '/v1/subscriptions?health=failing&sort=worst');
      expect(schemas.subscriptionsPageSchema.safeParse(body).error).toBeUndefined();
      return body.data.map(({ id }: { id: string }) => id);
    };
    const [well, bad] = [await own.subscribe(to.url), await own.subscribe(`${failing.url}bad`)];
    expect([await failingOnes(own), await failingOnes(other)]).toEqual([[], []]);
    await own.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    await eventually('both consoles to list it', async () => {
      const lists = [await failingOnes(own), await failingOnes(other)];
      return lists.every((ids) => ids[0] === bad.id);
    });
    const healthy = (await other.operate('GET', '/v1/subscriptions?health=healthy')).body;
    expect(healthy).toMatchObject({ total: 1, data: [{ id: well.id, health: { state: 'healthy' } }] });
    failing.answerWith(500);
    const worse = await own.subscribe(`${failing.url}worse`);
    await own.publishBatch(Array.from({ length: 100 }, () => sampleEvent()));
    await eventually('both, the one that has failed longer first', async () => {
      const [first, second] = await failingOnes(other);
      return first === bad.id && second === worse.id;
    });
    failing.answerWith(200);
    await own.publishBatch(Array.from({ length: 10 }, () => sampleEvent()));
    await eventually('both to be empty', async () => {
      return (await failingOnes(own)).length + (await failingOnes(other)).length === 0;
    });
    const refused = await other.operate('GET', '/v1/subscriptions?health=dead');
    expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'health']);
  });
  it('is shown by the overview if it is among the worst of all, however many have begun to fail since', async () => {
    const store = await ownStore(on);
    const fail = async (failures: number, atMs: number) => {
      const fields = { url: failing.url, description: '', sealedSecret: 'sealed' };
      const made = newSubscription({ ...fields, eventTypes: 'all', environment: 'production' }, atMs);
      expect(await saveSubscription(store, { ...made, status: 'active', takesEvents: true })).toBe(true);
      const run = newAttemptRun();
      const delivery = deliveryId(eventRef({ id: newEventId(atMs), environment: 'production' }), made.id);
      const failure = { label: '503', sinceMs: atMs, deliveryId: delivery, attemptNumber: 1 };
      for (let i = 0; i < failures; i++) addFailure(run, failure);
      return [made.id, { ...run, url: failing.url, totalMs: 0, longBuckets: new Map() }] as const;
    };
    const nowMs = Date.now();
    const worst = await fail(100, nowMs - HOUR_MS);
    const others = await Promise.all(Array.from({ length: 220 }, (_, i) => fail(10, nowMs - i)));
    const addresses = new Map([worst, ...others]);
    const counts = { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses };
    await addCounts(store, counts, nowMs);
    const { problems } = await eventually('all to be counted', async () => {
      const { body } = await on.operate('GET', '/v1/overview');
      return body.problems.total === 221 && body;
    });
    expect(problems.items[0].subscription_id).toBe(worst[0]);
    expect(problems.items).toHaveLength(50);
  });
  it('is shown by the overview if most deliveries are held for it, however many were paused that are newer', async () => {
    const { id } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/pause`);
    await on.publish(sampleEvent());
    const store = await ownStore(on);
    const fields = { url: to.url, description: '', sealedSecret: 'sealed' };
    await Promise.all(
      Array.from({ length: 110 }, async (_, i) => {
        const made = newSubscription({ ...fields, eventTypes: 'all', environment: 'production' }, Date.now() + i);
        expect(await saveSubscription(store, { ...made, status: 'paused', takesEvents: true })).toBe(true);
      }),
    );
    const { problems } = await eventually('all to be counted', async () => {
      const { body } = await on.operate('GET', '/v1/overview');
      return body.problems.total === 111 && body;
    });
    expect(problems.items[0]).toMatchObject({ subscription_id: id, held: 1 });
  });
});

describe('the audit trail', () => {
  it('has every change with its operator, its subject and what changed, and no secret', async () => {
    const { id, secret } = await on.subscribe(to.url, { description: 'before' });
    const at = (action: string) => `/v1/subscriptions/${id}/${action}`;
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { description: 'after', event_types: ['session.expired'] });
    await on.operate('POST', at('pause'));
    await on.operate('POST', at('pause'));
    await on.operate('POST', at('resume'));
    const rotated = (await on.operate('POST', at('rotate-secret'), { overlap: '1h' })).body.secret;
    const test = (await on.operate('POST', at('test'))).body;
    const replay = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: 'http://10.0.0.1' });
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    const { status, body } = await on.operate('GET', `/v1/audit?subscription_id=${id}`);
    expect(status).toBe(200);
    expect(schemas.pageOf(schemas.auditEntrySchema).safeParse(body).error).toBeUndefined();
    expect(body.data.map((entry: { action: string }) => entry.action)).toEqual([
      'subscription.deleted',
      'replay.started',
      'subscription.tested',
      'subscription.secret_rotated',
      'subscription.resumed',
      'subscription.paused',
      'subscription.updated',
      'subscription.validated',
      'subscription.created',
    ]);
    for (const entry of body.data) expect(entry).toMatchObject({ operator: 'tests', subscription_id: id });
    expect(body.data[1].replay_id).toBe(replay.id);
    expect(body.data[2].delivery_id).toBe(test.id);
    expect(body.data[6].detail).toEqual({
      description: { from: 'before', to: 'after' },
      event_types: { from: 'all', to: ['session.expired'] },
    });
    expect(body.data[0]).toMatchObject({ summary: `Deleted the subscription to ${to.url}.`, detail: { url: to.url } });
    expect(body.data[8].summary).toBe(
      'Created the subscription for all event types in both environments. Description: “before”.',
    );
    for (const target of [test.id, replay.id]) {
      const found = await on.operate('GET', `/v1/audit?target=${target}&actor=operator&operator=tests`);
      expect(found.body.data).toHaveLength(1);
    }
    expect((await on.operate('GET', `/v1/audit?target=${id}&actor=posthorn`)).body.data).toEqual([]);
    for (const hidden of [secret, rotated, OPERATOR_TOKEN]) expect(JSON.stringify(body)).not.toContain(hidden);
    const first = await on.operate('GET', `/v1/audit?subscription_id=${id}&limit=4`);
    const second = await on.operate(
      'GET',
      `/v1/audit?subscription_id=${id}&limit=250&cursor=${first.body.next_cursor}`,
    );
    expect([...first.body.data, ...second.body.data]).toEqual(body.data);
    for (const query of [
      'subscription_id=x',
      'action=nothing',
      'actor=me',
      'target=x',
      'from=never',
      'cursor=%21',
      'limit=0',
      'colour=red',
    ]) {
      expect((await on.operate('GET', `/v1/audit?${query}`)).status).toBe(422);
    }
  });
});

describe('notices', () => {
  it('are posted, signed like a delivery, for a failed delivery, a pause, a refusal and the end of a bulk replay', async () => {
    const { id } = await on.subscribe(failing.url);
    await on.publish(sampleEvent());
    await on.publish(sampleEvent());
    await eventually('the address to be paused', async () => (await on.subscription(id)).paused);
    const failed = await on.deliveries(`subscription_id=${id}&status=failed`);
    failing.answerWith(200);
    await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    const replay = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    await eventually('the notice of the bulk replay', () =>
      noticesOf('replay.done').find((one) => one.data.replay_id === replay.id),
    );
    await eventually('both to arrive again', async () => {
      const { outcome } = (await on.operate('GET', `/v1/replays/${replay.id}`)).body;
      return outcome.delivered === 2;
    });
    failing.answerWith((_request, response) => response.writeHead(302, { location: '/' }).end());
    await on.operate('POST', `/v1/subscriptions/${id}/validate`);
    await eventually('the notice of the refusal', () => noticesOf('subscription.refused').length === 1);
    const about = (type: string) =>
      noticesOf(type)
        .filter(({ data }) => data.subscription_id === id)
        .map(({ data }) => data);
    expect(
      about('delivery.failed')
        .map((data) => data.delivery_id)
        .sort(),
    ).toEqual(failed.map((delivery: { id: string }) => delivery.id).sort());
    expect(about('subscription.paused')).toEqual([{ subscription_id: id, reason: 'consecutive_failures' }]);
    expect(about('subscription.refused')).toEqual([{ subscription_id: id, reason: 'redirect' }]);
    expect(about('replay.done')).toEqual([
      { subscription_id: id, replay_id: replay.id, total: 2, replayed: 2, skipped: 0 },
    ]);
    for (const { headers, body } of notices.requests) {
      const signed = { header: String(headers['service-signature']), secret: NOTICE_SECRET, body };
      expect(await isSigned({ ...signed, nowS: Date.now() / 1000 })).toBe(true);
      const { id: noticeId, type, created_at } = JSON.parse(body);
      expect([headers['service-event-id'], headers['service-event']]).toEqual([noticeId, type]);
      expect(new Date(created_at).toISOString()).toBe(created_at);
    }
    // The notice is counted when it has been answered.
    await eventually('the notice to be counted', async () => {
      const metrics = await (await fetch(`${on.workerUrls[0]}/metrics`)).text();
      return /posthorn_notices_total\{type="subscription\.refused"[^}]*\} 1$/m.test(metrics);
    });
  });
  it('are repeated until they are accepted', async () => {
    const deaf = await ownReceiver(500);
    const own = await ownWorld({ env: { NOTICE_URL: deaf.url, NOTICE_SECRET } });
    const { id } = await own.subscribe(to.url);
    await own.operate('POST', `/v1/subscriptions/${id}/pause`);
    await deaf.received(1);
    deaf.answerWith(200);
    const [first, second] = await deaf.received(2);
    expect(second!.body).toBe(first!.body);
    expect(JSON.parse(first!.body)).toMatchObject({ type: 'subscription.paused', data: { reason: 'operator' } });
    await eventually('nothing to wait', async () => (await own.redis.xlen(`${own.prefix}:{0}:notices`)) === 0);
  });
});

describe('the request of a delivery', () => {
  it('is shown as an attempt sent it, and as it would be sent now', async () => {
    const { id, secret } = await on.subscribe(to.url);
    await on.operate('POST', `/v1/subscriptions/${id}/rotate-secret`);
    const made = (await on.operate('POST', `/v1/subscriptions/${id}/test`)).body;
    const [sent] = await to.received(1, isDelivery);
    await eventually('it to be recorded', async () => (await on.delivery(made.id)).attempt_count === 1);
    const { body: shown } = await on.operate('GET', `/v1/deliveries/${made.id}/request?attempt=1`);
    expect(schemas.requestSchema.safeParse(shown).error).toBeUndefined();
    expect([shown.method, shown.url, shown.body]).toEqual(['POST', to.url, sent!.body]);
    for (const [name, value] of Object.entries(shown.headers)) expect(sent!.headers[name.toLowerCase()]).toBe(value);
    const { body: now } = await on.operate('GET', `/v1/deliveries/${made.id}/request`);
    const signed = { header: now.headers['Service-Signature'], secret, body: now.body };
    expect(await isSigned({ ...signed, nowS: Date.now() / 1000 })).toBe(true);
    for (const [path, status] of [
      [`/v1/deliveries/${made.id}/request?attempt=2`, 404],
      [`/v1/deliveries/${made.id}/request?attempt=x`, 422],
      ['/v1/deliveries/dlv_none/request', 404],
    ] as const) {
      expect((await on.operate('GET', path)).status).toBe(status);
    }
    const types = async (type: string) => on.deliveries(`subscription_id=${id}&event_type=${type}`);
    expect([(await types('webhook.test')).length, (await types('session.created')).length]).toEqual([1, 0]);
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    expect((await on.operate('GET', `/v1/deliveries/${made.id}/request`)).status).toBe(404);
  });
});

describe('responses', () => {
  const checks = <S extends z.ZodType>(schema: S, value: unknown) =>
    expect(schema.safeParse(value).error?.issues).toBeUndefined();
  it('match the schemas of the API document', async () => {
    const { id, secret: _secret } = await on.subscribe(failing.url);
    const { body: event } = await on.publish(sampleEvent());
    const [failed] = await eventually('it to fail', async () => {
      const found = await on.deliveries(`event_id=${event.id}&status=failed`);
      return found.length === 1 && found;
    });
    const get = async (path: string) => (await on.operate('GET', path)).body;
    checks(schemas.subscriptionSchema, await get(`/v1/subscriptions/${id}`));
    checks(schemas.subscriptionsPageSchema, await get('/v1/subscriptions'));
    checks(schemas.addressAttemptsSchema, await get(`/v1/subscriptions/${id}/attempts`));
    checks(schemas.deliveryWithAttemptsSchema, await get(`/v1/deliveries/${failed.id}`));
    checks(schemas.pageOf(schemas.deliverySchema), await get('/v1/deliveries'));
    checks(schemas.eventSchema, await get(`/v1/events/${event.id}`));
    // From here on the receiver succeeds: one more failed delivery would pause the address, and POST /v1/replays would
    // be refused.
    failing.answerWith(200);
    checks(schemas.deliverySchema, (await on.operate('POST', `/v1/deliveries/${failed.id}/replay`)).body);
    checks(schemas.sessionSchema, await get('/v1/session'));
    const failedCount = await get(`/v1/subscriptions/${id}/failed-deliveries?to=${failed.created_at}`);
    checks(schemas.failedDeliveriesSchema, failedCount);
    expect(failedCount.count).toBe(1);
    expect((await get(`/v1/subscriptions/${id}/failed-deliveries?to=2020-01-01T00:00:00Z`)).count).toBe(0);
    const replay = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
    checks(schemas.replaySchema, replay);
    checks(schemas.replaySchema, await get(`/v1/replays/${replay.id}`));
    checks(
      schemas.subscriptionWithSecretSchema,
      (await on.operate('POST', `/v1/subscriptions/${id}/rotate-secret`)).body,
    );
  });
});
