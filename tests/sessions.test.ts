/** Signing in: cookies, CSRF tokens, limits, headers, and rate limits of keys. */
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { eventually, fakeClock } from '@posthorn/testing';
import { ownWorld } from './own.ts';
import { redisServer } from './redis-servers.ts';
import { OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, type WorldOptions } from './world.ts';

const world = (options: WorldOptions = {}) => ownWorld({ workers: 0, ...options });

/** A client that handles cookies like a browser. */
function browser(consoleUrl: string) {
  let cookie: string | undefined;
  return {
    get cookie() {
      return cookie;
    },
    async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
      const response = await fetch(consoleUrl + path, {
        method,
        headers: {
          ...(cookie === undefined ? {} : { cookie }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const set = response.headers.get('set-cookie');
      if (set) cookie = set.split(';')[0]!;
      const text = await response.text();
      const isJson = /json/.test(response.headers.get('content-type') ?? '');
      return { status: response.status, headers: response.headers, set, body: isJson ? JSON.parse(text) : text };
    },
  };
}
const signIn = (on: ReturnType<typeof browser>, token = OPERATOR_TOKEN) => on.call('POST', '/v1/session', { token });

describe('a session', () => {
  it('does not begin if the audit trail cannot have its entry', async () => {
    const { consoleUrl, redis, prefix } = await world();
    await redis.set(`${prefix}:{0}:audit`, 'no stream');
    const on = browser(consoleUrl);
    expect((await signIn(on)).status).toBe(500);
    expect((await on.call('GET', '/v1/session')).status).toBe(401);
  });
  it('leaves no cookie if Redis does not store it', async () => {
    const { url } = await redisServer();
    const { consoleUrl, redis } = await world({ redisUrl: url });
    const on = browser(consoleUrl);
    await redis.config('SET', 'maxmemory', '1');
    const { status, set } = await signIn(on);
    await redis.config('SET', 'maxmemory', '0');
    expect([status, set]).toEqual([503, null]);
    expect((await signIn(on)).status).toBe(201);
  });
  it('is a cookie that no script reads and no other site sends, and with its CSRF token has the rights of a token', async () => {
    const on = browser((await world()).consoleUrl);
    const { status, set, body } = await signIn(on);
    expect(status).toBe(201);
    expect(body).toMatchObject({ operator: 'tests', csrf_token: expect.any(String), expires_at: expect.any(String) });
    expect(set).toMatch(/^posthorn_session=/);
    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Expires=']) expect(set).toContain(attribute);
    expect(set).not.toContain('Secure');
    expect((await on.call('GET', '/v1/session')).body).toEqual(body);
    expect((await on.call('GET', '/v1/subscriptions')).status).toBe(200);
    const fields = { url: 'http://127.0.0.1:3999/', event_types: 'all', environment: 'both' };
    for (const headers of [{}, { 'x-csrf-token': 'x' }, { 'x-csrf-token': body.csrf_token.toUpperCase() }]) {
      const refused = await on.call('POST', '/v1/subscriptions', fields, headers as Record<string, string>);
      expect([refused.status, refused.body.code]).toEqual([403, 'forbidden_csrf']);
    }
    const created = await on.call('POST', '/v1/subscriptions', fields, { 'x-csrf-token': body.csrf_token });
    expect(created.status).toBe(201);
    const audit = await on.call('GET', '/v1/audit');
    expect(audit.body.data).toMatchObject([
      { action: 'subscription.created', operator: 'tests', subscription_id: created.body.id },
      { action: 'session.started', operator: 'tests' },
    ]);
  });

  it('has the fingerprint of its token that sessions of other releases have', async () => {
    const { consoleUrl, redis, prefix } = await world();
    await signIn(browser(consoleUrl));
    const [key] = await redis.keys(`${prefix}:session:*`);
    const stored = JSON.parse((await redis.get(key!))!);
    expect(stored.fingerprint).toBe('g18a25gyylEzy3-t4nJTLh8fzZDwGBTm6NNMoOfuDCc');
  });

  it('lasts as long as its own token, of several that its operator has', async () => {
    const [oldToken, newToken] = ['old'.padEnd(24, 'x'), 'new'.padEnd(24, 'y')];
    const both = await world({ env: { OPERATOR_TOKENS: `ada:${oldToken},ada:${newToken}` } });
    const env = { KEY_PREFIX: both.prefix, OPERATOR_TOKENS: `ada:${newToken}` };
    const [older, newer] = [browser(both.consoleUrl), browser(both.consoleUrl)];
    for (const [on, token] of [
      [older, oldToken],
      [newer, newToken],
    ] as const)
      expect((await signIn(on, token)).body).toMatchObject({ operator: 'ada', operators: ['ada'] });
    const { consoleUrl } = await world({ env });
    const statusWith = async ({ cookie }: ReturnType<typeof browser>) =>
      (await fetch(`${consoleUrl}/v1/session`, { headers: { cookie: cookie! } })).status;
    expect([await statusWith(older), await statusWith(newer)]).toEqual([401, 200]);
  });

  it('opens Bull Board', async () => {
    const on = browser((await world()).consoleUrl);
    expect((await on.call('GET', '/queues')).status).toBe(401);
    await signIn(on);
    expect((await on.call('GET', '/queues')).status).toBe(200);
    expect((await on.call('PUT', '/queues/api/queues/deliveries/pause')).status).toBe(405);
    const { headers, body } = await on.call('GET', '/queues/api/queues');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-powered-by')).toBeNull();
    // It can't see Posthorn's workers, and must not say that there are none.
    expect(body.queues[0].hasWorkers).toBeNull();
  });

  it('ends with signing out, which needs the CSRF token and is audited; then its cookie is refused', async () => {
    const { consoleUrl, operate } = await world();
    const on = browser(consoleUrl);
    const { body } = await signIn(on);
    const { cookie } = on;
    expect((await on.call('DELETE', '/v1/session')).status).toBe(403);
    const out = await on.call('DELETE', '/v1/session', undefined, { 'x-csrf-token': body.csrf_token });
    expect(out.status).toBe(204);
    expect(out.set).toMatch(/^posthorn_session=;.*Expires=Thu, 01 Jan 1970/);
    expect((await on.call('GET', '/v1/session', undefined, { cookie: cookie! })).status).toBe(401);
    const ended = (await operate('GET', '/v1/audit?action=session.ended')).body.data;
    expect(ended).toMatchObject([{ operator: 'tests' }]);
  });

  it('ends after SESSION_LIFETIME, however much it is used', async () => {
    const clock = fakeClock(Date.now());
    const on = browser((await world({ clock, env: { SESSION_LIFETIME: '1h' } })).consoleUrl);
    await signIn(on);
    clock.advance(3_599_000);
    expect((await on.call('GET', '/v1/overview')).status).toBe(200);
    clock.advance(1_000);
    expect((await on.call('GET', '/v1/overview')).status).toBe(401);
  });

  it('is valid on every console, and ends when its token is removed or changed', async () => {
    const first = await world();
    const on = browser(first.consoleUrl);
    await signIn(on);
    const as = async (tokens: string) => {
      const other = await world({ env: { KEY_PREFIX: first.prefix, OPERATOR_TOKENS: tokens } });
      return (await browser(other.consoleUrl).call('GET', '/v1/session', undefined, { cookie: on.cookie! })).status;
    };
    expect(await as(`other:${'o'.repeat(24)},tests:${OPERATOR_TOKEN}`)).toBe(200);
    expect(await as('tests:another-token-for-all-tests')).toBe(401);
    expect(await as(`someone-else:${OPERATOR_TOKEN}`)).toBe(401);
  });

  it('gets a new id with each sign-in, and a forged or foreign cookie is refused', async () => {
    const { consoleUrl } = await world();
    const on = browser(consoleUrl);
    await signIn(on);
    const before = on.cookie;
    await signIn(on);
    expect(on.cookie).not.toBe(before);
    const nobody = (cookie: string) => browser(consoleUrl).call('GET', '/v1/session', undefined, { cookie });
    for (const cookie of ['posthorn_session=x', 'posthorn_session=s%3Aabc.def', `${on.cookie}x`, before!]) {
      expect((await nobody(cookie)).status).toBe(401);
    }
  });

  it('is stored without readable token or cookie', async () => {
    const { consoleUrl, redis, prefix } = await world();
    const on = browser(consoleUrl);
    await signIn(on);
    const [key] = await redis.keys(`${prefix}:session:*`);
    expect(await redis.get(key!)).not.toContain(OPERATOR_TOKEN);
    expect(await redis.pttl(key!)).toBeGreaterThan(0);
  });
});

describe('sign-in', () => {
  it('is refused to a client after 10 wrong tokens, whatever it sends then; right ones do not count', async () => {
    const { consoleUrl } = await world({ env: { TRUSTED_PROXIES: '127.0.0.0/8' } });
    const from = (client: string, token: string) =>
      browser(consoleUrl).call('POST', '/v1/session', { token }, { 'x-forwarded-for': client });
    for (let i = 0; i < 10; i++) expect((await from('203.0.113.1', OPERATOR_TOKEN)).status).toBe(201);
    for (let i = 0; i < 10; i++) expect((await from('203.0.113.1', 'wrong')).status).toBe(401);
    const refused = await from('203.0.113.1', OPERATOR_TOKEN);
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_requests']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await from('203.0.113.2', OPERATOR_TOKEN)).status).toBe(201);
    const basic = { authorization: `Basic ${btoa(`me:${OPERATOR_TOKEN}`)}`, 'x-forwarded-for': '203.0.113.1' };
    expect((await browser(consoleUrl).call('GET', '/queues', undefined, basic)).status).toBe(429);
  });

  it('accepts a forwarded client address only from a trusted proxy', async () => {
    const { consoleUrl } = await world();
    const from = (client: string) =>
      browser(consoleUrl).call('POST', '/v1/session', { token: 'wrong' }, { 'x-forwarded-for': client });
    for (let i = 0; i < 10; i++) await from(`203.0.113.${i}`);
    expect((await from('203.0.113.99')).status).toBe(429);
  });

  it.each([[{}], [{ token: '' }], [{ token: 5 }], [{ token: 'x'.repeat(2_000) }], [{ token: 'x', more: 1 }], [[]]])(
    'refuses %j by field',
    async (body) => {
      const { consoleUrl } = await world();
      expect((await browser(consoleUrl).call('POST', '/v1/session', body)).status).toBe(422);
    },
  );
});

describe('headers', () => {
  it('allow only the console’s own scripts in pages, and no frames', async () => {
    const { consoleUrl } = await world();
    for (const path of ['/v1/session', '/docs', '/queues', '/nothing']) {
      const { headers } = await fetch(consoleUrl + path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(/script-src ([^;]*)/.exec(policy)?.[1]).toBe("'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-powered-by')).toBeNull();
    }
  });
});

describe('rate limits', () => {
  it('are off for publishers by default; if set, they count events for each key over all processes', async () => {
    const on = await world({ ingests: 2, env: { PUBLISHER_RATE_LIMIT: '5' } });
    const publish = (process: number, body: unknown, key = PUBLISHER_KEY) =>
      fetch(`${on.ingestUrls[process]}/v1/events${(body as { events?: unknown }).events ? '/batch' : ''}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const refused = await eventually('two calls within one second', async () => {
      const limits = () => on.redis.keys(`${on.prefix}:limit:publisher*`);
      await eventually('a second in which nothing is counted', async () => (await limits()).length === 0);
      // A batch counts its events, and one larger than the limit uses up all of it.
      expect((await publish(0, { events: Array.from({ length: 8 }, () => sampleEvent()) })).status).toBe(200);
      const next = await publish(1, sampleEvent());
      return next.status !== 202 && next;
    });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ code: 'too_many_requests', status: 429 });
    expect((await publish(1, sampleEvent(), `${PUBLISHER_KEY}-sandbox`)).status).toBe(202);
  });
  it('refuse nobody for longer than a second after the clock of Redis was set back', async () => {
    const on = await world({ env: { OPERATOR_RATE_LIMIT: '3' } });
    const name = `${on.prefix}:limit:operator`;
    const counted = await eventually('the key of a window', async () => {
      await on.operate('GET', '/v1/session');
      return (await on.redis.keys(`${name}*`))[0];
    });
    // What a clock that is set back by an hour makes of a window that is used up.
    await on.redis.set(counted, 3, 'PX', HOUR_MS);
    expect((await on.operate('GET', '/v1/session')).status).toBe(200);
  });
  it.each(['/v1/session', '/queues/api/queues'])('apply to operators as well: %s', async (path) => {
    const on = await world({ env: { OPERATOR_RATE_LIMIT: '3' } });
    const statuses: number[] = [];
    const refused = await eventually('a refusal', async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => on.operate('GET', path)));
      statuses.push(...answers.map(({ status }) => status));
      return answers.find(({ status }) => status === 429);
    });
    expect(refused.body.detail).toContain('(OPERATOR_RATE_LIMIT)');
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(3);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
  });
});
