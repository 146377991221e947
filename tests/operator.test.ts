/** The operator API for subscriptions: what it accepts and what it refuses. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { OPERATOR_TOKEN, sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
  to = await ownReceiver();
});
const fields = { event_types: 'all', environment: 'both' };

describe('a subscription', () => {
  it('is created awaiting validation, with a secret shown once, and gets no events before it is validated', async () => {
    const created = await on.operate('POST', '/v1/subscriptions', { url: to.url, ...fields, description: 'd' });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      id: expect.stringMatching(/^sub_/),
      url: to.url,
      ...fields,
      description: 'd',
      status: 'awaiting_validation',
      status_reason: null,
      validated: false,
      paused: false,
      paused_since: null,
      consecutive_failures: 0,
      held_deliveries: 0,
      parked_deliveries: 0,
      secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
    });
    expect(await on.subscription(created.body.id)).not.toHaveProperty('secret');
    expect((await on.publish(sampleEvent())).body.deliveries).toBe(0);
  });

  it('is validated by one POST of {} without a signature; any response but a redirect makes it active', async () => {
    const own = await ownReceiver(404);
    const { id, status } = await on.subscribe(own.url);
    expect(status).toBe('active');
    expect(own.requests).toHaveLength(1);
    expect(own.requests[0]).toMatchObject({ method: 'POST', body: '{}' });
    expect(Object.keys(own.requests[0]!.headers).filter((name) => name.startsWith('service-'))).toEqual([]);
    own.answerWith((_request, response) => response.writeHead(302, { location: to.url }).end());
    expect((await on.operate('POST', `/v1/subscriptions/${id}/validate`)).body).toMatchObject({
      status: 'refused',
      status_reason: 'redirect',
      validated: false,
    });
  });

  it('stays awaiting validation, with the reason, if its address is unreachable', async () => {
    const gone = await ownReceiver();
    await gone.close();
    const { id } = (await on.operate('POST', '/v1/subscriptions', { url: gone.url, ...fields })).body;
    await on.operate('POST', `/v1/subscriptions/${id}/validate`);
    expect(await on.subscription(id)).toMatchObject({ status: 'awaiting_validation', status_reason: 'unreachable' });
    expect((await on.operate('POST', `/v1/subscriptions/${id}/pause`)).status).toBe(409);
    expect((await on.operate('POST', `/v1/subscriptions/${id}/resume`)).status).toBe(409);
  });

  it('is not validated by what its former url has responded: a change of url during the validation is a conflict', async () => {
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const former = await ownReceiver((_request, response) => {
      asked.resolve();
      void answer.promise.then(() => response.end());
    });
    const { id } = (await on.operate('POST', '/v1/subscriptions', { url: former.url, ...fields })).body;
    const validating = on.operate('POST', `/v1/subscriptions/${id}/validate`);
    await asked.promise;
    expect((await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: to.url })).status).toBe(200);
    answer.resolve();
    expect(await validating).toMatchObject({ status: 409, body: { code: 'conflict' } });
    expect(await on.subscription(id)).toMatchObject({ url: to.url, status: 'awaiting_validation', validated: false });
    expect(to.requests).toEqual([]);
  });

  it('awaits validation after a change of url; events are held and then go to the new address', async () => {
    const [before, after] = [await ownReceiver(), await ownReceiver()];
    const { id } = await on.subscribe(before.url, { environment: 'production' });
    const patched = await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: after.url, description: 'moved' });
    expect(patched.body).toMatchObject({
      url: after.url,
      description: 'moved',
      status: 'awaiting_validation',
      validated: false,
    });
    const { body } = await on.publish(sampleEvent({ environment: 'production' }));
    expect((await on.deliveries(`event_id=${body.id}`))[0].status).toBe('held');
    await on.operate('POST', `/v1/subscriptions/${id}/validate`);
    await after.received(1, isDelivery);
    expect(before.requests.filter(isDelivery)).toHaveLength(0);
  });

  it('matches the next event by its changed types and environment, and keeps its status if the url is the same', async () => {
    const { id } = await on.subscribe(to.url, { environment: 'production', event_types: ['session.expired'] });
    const deliveries = async (type: string) =>
      (await on.publish(sampleEvent({ type, environment: 'production' }))).body.deliveries;
    expect(await deliveries('session.approved')).toBe(0);
    expect(
      (await on.operate('PATCH', `/v1/subscriptions/${id}`, { event_types: 'all', url: to.url })).body.status,
    ).toBe('active');
    expect(await deliveries('session.approved')).toBe(1);
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { environment: 'sandbox' });
    expect(await deliveries('session.approved')).toBe(0);
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    expect((await on.operate('GET', `/v1/subscriptions/${id}`)).status).toBe(404);
  });

  it('is listed by status and environment, page by page', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await on.subscribe(to.url, { environment: 'production' })).id);
    await on.operate('POST', `/v1/subscriptions/${ids[0]}/pause`);
    const first = await on.operate('GET', '/v1/subscriptions?environment=production&limit=2');
    expect(first.body.data).toHaveLength(2);
    const second = await on.operate(
      'GET',
      `/v1/subscriptions?environment=production&limit=2&cursor=${first.body.next_cursor}`,
    );
    expect(second.body).toMatchObject({ data: [{ id: ids[0] }], next_cursor: null });
    expect((await on.operate('GET', '/v1/subscriptions?status=paused')).body.data).toMatchObject([
      { id: ids[0], status_reason: 'operator' },
    ]);
  });
});

describe('the operator API', () => {
  it('refuses a subscription with a bad field by its name, and stores nothing', async () => {
    const cases: [what: string, body: unknown, path: string][] = [
      ['a private address', { url: 'http://10.0.0.1/', ...fields }, 'url'],
      ['metadata by number', { url: 'http://2852039166/', ...fields }, 'url'],
      ['a malformed address', { url: 'nonsense', ...fields }, 'url'],
      ['no address', { ...fields }, 'url'],
      ['an unknown type', { url: 'https://example.com', environment: 'both', event_types: ['x'] }, 'event_types'],
      ['no types', { url: 'https://example.com', environment: 'both', event_types: [] }, 'event_types'],
      [
        'an unknown environment',
        { url: 'https://example.com', event_types: 'all', environment: 'test' },
        'environment',
      ],
      ['an unknown field', { url: 'https://example.com', ...fields, colour: 1 }, 'colour'],
      ['a short secret', { url: 'https://example.com', ...fields, secret: 'short' }, 'secret'],
      ['a list', [], ''],
      ['null', 'null', ''],
    ];
    // Redis returns keys in no particular order.
    const stored = async () => (await on.redis.keys(`${on.prefix}:*subscription*`)).sort();
    const before = await stored();
    for (const [what, body, path] of cases) {
      const answer = await on.operate('POST', '/v1/subscriptions', body);
      expect([what, answer.status]).toEqual([what, 422]);
      expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(answer.body).toMatchObject({ code: 'invalid_fields', status: 422 });
      expect([what, answer.body.errors.map((error: { path: string }) => error.path)]).toEqual([
        what,
        expect.arrayContaining([path]),
      ]);
    }
    expect(await stored()).toEqual(before);
  });
  it('refuses a list with a bad query', async () => {
    for (const query of [
      'status=gone',
      'error=gone',
      'status=held&error=timeout',
      'limit=0',
      'limit=9999',
      'cursor=zzz',
      'from=yesterday',
      'subscription_id=x',
      'event_id=a%20b',
      'colour=1',
    ])
      expect([query, (await on.operate('GET', `/v1/deliveries?${query}`)).status]).toEqual([query, 422]);
  });
  it('answers 404 for what does not exist', async () => {
    for (const [method, path] of [
      ['GET', '/v1/subscriptions/sub_none'],
      ['PATCH', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA'],
      ['DELETE', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA'],
      ['POST', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA/validate'],
      ['POST', '/v1/subscriptions/sub_AAAAAAAAAAAAAAAAAAAAAA/pause'],
      ['POST', '/v1/subscriptions/x/resume'],
      ['GET', '/v1/deliveries/dlv_none'],
      ['GET', '/v1/events/evt_none'],
      ['GET', '/v1/nothing'],
    ] as const) {
      const answer = await on.operate(method, path, method === 'PATCH' ? { description: 'x' } : undefined);
      expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 404, 'not_found']);
    }
    expect((await on.operate('GET', '/v1/events/evt_none')).body.detail).toMatch(
      /^There is no such event, or .*expired/,
    );
  });
  it('answers 401 without a token', async () => {
    for (const path of ['/v1/subscriptions', '/v1/deliveries', '/v1/nothing', '/queues']) {
      expect((await fetch(`${on.consoleUrl}${path}`)).status).toBe(401);
    }
  });
  it('requires https for addresses of production if it is set so', async () => {
    const strict = await ownWorld({ workers: 0, ingests: 1, env: { REQUIRE_HTTPS: 'production' } });
    const create = (environment: string) =>
      strict.operate('POST', '/v1/subscriptions', { url: to.url, event_types: 'all', environment });
    expect((await create('production')).status).toBe(422);
    expect((await create('both')).status).toBe(422);
    const { status, body } = await create('sandbox');
    expect(status).toBe(201);
    const changed = await strict.operate('PATCH', `/v1/subscriptions/${body.id}`, { environment: 'both' });
    expect(changed.status).toBe(422);
    expect(changed.body.errors).toEqual([
      { path: 'environment', message: 'Events of this environment go to https addresses only (REQUIRE_HTTPS).' },
    ]);
  });
});

describe('Bull Board', () => {
  const board = (path: string, init: RequestInit = {}) =>
    fetch(`${on.consoleUrl}/queues${path}`, {
      ...init,
      headers: { authorization: `Basic ${btoa(`me:${OPERATOR_TOKEN}`)}` },
    });
  it('shows the queue and its jobs to an operator', async () => {
    expect((await board('')).status).toBe(200);
    const { queues } = (await (await board('/api/queues?activeQueue=deliveries')).json()) as {
      queues: { name: string; readOnlyMode: boolean }[];
    };
    expect(queues).toMatchObject([{ name: 'deliveries', readOnlyMode: true }]);
  });
  it('refuses a bad query', async () => {
    for (const [query, path] of [
      ['jobsPerPage=101', 'jobsPerPage'],
      ['activeQueue=%25', 'activeQueue'],
      ['page=1e300', 'page'],
    ]) {
      const response = await board(`/api/queues?${query}`);
      expect([response.status, await response.json()]).toMatchObject([422, { errors: [{ path }] }]);
    }
    expect((await board('/api/queues?activeQueue=deliveries&jobsPerPage=100')).status).toBe(200);
  });
  it('refuses every change', async () => {
    for (const [method, path] of [
      ['PUT', '/api/queues/deliveries/promote'],
      ['PUT', '/api/queues/deliveries/retry/failed'],
      ['PUT', '/api/queues/deliveries/clean/delayed'],
      ['PUT', '/api/queues/deliveries/empty'],
      ['PUT', '/api/queues/deliveries/pause'],
      ['POST', '/api/queues/deliveries/add'],
    ] as const) {
      expect((await board(path, { method })).status).toBe(405);
    }
  });
});

describe('health and metrics', () => {
  it('are served by every app', async () => {
    await on.subscribe(to.url);
    await on.publish(sampleEvent());
    await eventually('success', async () => (await on.deliveries('status=succeeded')).length === 1);
    for (const url of [on.consoleUrl, on.ingestUrls[0], on.workerUrls[0]]) {
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      const metrics = await (await fetch(`${url}/metrics`)).text();
      for (const name of [
        'posthorn_queue_jobs{state="waiting"',
        'posthorn_oldest_pending_age_seconds',
        'posthorn_deliveries{status="held"',
        'posthorn_paused_addresses',
        'process_cpu_seconds_total',
      ]) {
        expect(metrics).toContain(name);
      }
    }
    const worker = await (await fetch(`${on.workerUrls[0]}/metrics`)).text();
    expect(worker).toMatch(/posthorn_attempts_total\{outcome="succeeded"[^}]*\} [1-9]/);
    expect(worker).toContain('posthorn_attempt_duration_seconds_bucket');
    expect(worker).toContain('posthorn_delivery_latency_seconds_bucket');
  });
});
