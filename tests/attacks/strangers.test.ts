/** Unauthenticated clients attack the apps: authenticated ones must not notice. */
import { describe, expect, it } from '@jest/globals';
import { eventually, testRedisUrl } from '@posthorn/testing';
import { ownProcess, ownProxy, ownWorld } from '../own.ts';
import { complaintsOf } from '../processes.ts';
import { OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent, type World, type WorldOptions } from '../world.ts';
import { head, openMany, openRaw, type RawConnection } from './connections.ts';

const world = (options: WorldOptions = {}) => ownWorld({ workers: 0, ...options });
const subscription = { url: 'http://127.0.0.1:3999/', event_types: 'all', environment: 'both' };
/** The value of a counter in the metrics, which are up to a second old. */
async function metric(url: string, name: RegExp): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => name.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('unfinished bodies of strangers', () => {
  const unfinished = (bytes: number) =>
    head('POST', '/v1/session', { 'Content-Type': 'application/json', 'Content-Length': `${bytes + 1}` }) +
    ' '.repeat(bytes);

  it('take nothing from the operator API, however large and however many they are', async () => {
    const on = await world();
    // Exactly as many bytes as all bodies together may have.
    for (const [count, bytes] of [
      [530, 65_000],
      [10, 8_000],
      [30, 1_000],
      [30, 100],
      [30, 10],
    ] as const) {
      const open = await openMany(count, on.consoleUrl, unfinished(bytes));
      await on.operate('GET', '/v1/session');
      if (bytes > 4_096) {
        const isRefused = ({ socket, text }: RawConnection) => socket.destroyed || text().startsWith('HTTP/1.1 413');
        await eventually('the large ones to be refused', () => open.every(isRefused));
      }
    }
    await openMany(200, on.consoleUrl, unfinished(4_000));
    expect((await on.operate('POST', '/v1/subscriptions', subscription)).status).toBe(201);
    expect((await signIn(on, OPERATOR_TOKEN)).status).toBe(201);
  });
});

describe('connections', () => {
  it('are limited for each client address, and one that closes makes room for the next', async () => {
    const on = await world({ env: { MAX_CLIENT_CONNECTIONS: '30' } });
    const part = 'POST /v1/events HTTP/1.1\r\nHost: attacked\r\nX-';
    const urls = [on.ingestUrls[0]!, on.consoleUrl];
    for (const url of urls) {
      const open = await openMany(100, url, part);
      await eventually('70 to be closed', () => open.filter(({ socket }) => socket.destroyed).length === 70);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      const last = open.find(({ socket }) => !socket.destroyed)!;
      last.socket.destroy();
      const text = head('GET', '/healthz', { Connection: 'close' });
      await eventually('room for one more', async () => {
        const again = await openRaw(url, text);
        await again.closed;
        return again.text().startsWith('HTTP/1.1 200');
      });
      await eventually(
        'the refused ones to be counted',
        async () => (await metric(url, /^posthorn_connections_refused_total\{.*client_limit/)) >= 70,
      );
    }
  });

  it('are not limited for a trusted proxy', async () => {
    const on = await world({ env: { MAX_CLIENT_CONNECTIONS: '2', TRUSTED_PROXIES: '127.0.0.2/32' } });
    const text = head('GET', '/healthz', {});
    const open = await openMany(20, on.ingestUrls[0]!, text);
    await eventually('all to be served', () => open.every((one) => one.text().startsWith('HTTP/1.1 200')));
    const stranger = await openMany(20, on.ingestUrls[0]!, text, '127.0.0.3');
    await eventually('most to be closed', () => stranger.filter(({ socket }) => socket.destroyed).length === 18);
  });

  it('are closed if they do not finish their headers in time', async () => {
    const on = await world();
    const startedAtMs = performance.now();
    const [silent, slow] = await Promise.all([
      openRaw(on.consoleUrl, ''),
      openRaw(on.consoleUrl, 'GET /healthz HTTP/1.1\r\nX-'),
    ]);
    await Promise.all([silent.closed, slow.closed]);
    expect(performance.now() - startedAtMs).toBeGreaterThan(9_000);
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408/);
  });
});

describe('health and metrics', () => {
  const paths = ['/healthz', '/readyz', '/metrics'];

  it('are computed at most once a second for all callers: metrics', async () => {
    const on = await world();
    const startedAtMs = performance.now();
    const collected = new Set<string>();
    // The figures of the process itself change with each collection.
    for (let i = 0; i < 100; i++) collected.add(await (await fetch(`${on.ingestUrls[0]}/metrics`)).text());
    const seconds = (performance.now() - startedAtMs) / 1_000;
    // One when it begins, one at most in each second, and one that was made before.
    expect(collected.size).toBeLessThanOrEqual(2 + seconds);
  });

  it('are served on OPERATIONS_PORT alone if it is set', async () => {
    const env = { ...(await world()).env, LOG_LEVEL: 'info', OPERATIONS_PORT: '0' };
    for (const app of ['ingest', 'worker', 'console'] as const) {
      const ready = (await ownProcess(app, env).ready) as { url: string; operations_url: string };
      for (const path of paths) {
        expect([path, (await fetch(ready.operations_url + path)).status]).toEqual([path, 200]);
        expect([path, (await fetch(ready.url + path)).status]).toEqual([path, 404]);
      }
      expect((await fetch(`${ready.operations_url}/v1/subscriptions`)).status).toBe(404);
    }
  });
});

const signIn = (on: World, token: string, headers: Record<string, string> = {}) =>
  fetch(`${on.consoleUrl}/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ token }),
  });

describe('guessing', () => {
  it('in one burst is limited like guessing one by one: the right token at its end is refused too', async () => {
    const redisUrl = new URL(testRedisUrl());
    const proxy = await ownProxy(Number(redisUrl.port));
    redisUrl.port = String(proxy.port);
    const on = await world({ redisUrl: redisUrl.href });
    // A check that asks Redis before it counts would have the whole burst in flight at once.
    proxy.delay(1_000);
    const guesses = Array.from({ length: 61 }, (_, i) =>
      JSON.stringify({ token: i === 60 ? OPERATOR_TOKEN : `guess-${i}` }),
    );
    // All are sent except for their last byte, so that they are complete at the same moment.
    const open = await Promise.all(
      guesses.map((body) => {
        const headers = {
          'Content-Type': 'application/json',
          'Content-Length': String(body.length),
          Connection: 'close',
        };
        return openRaw(on.consoleUrl, head('POST', '/v1/session', headers) + body.slice(0, -1));
      }),
    );
    for (const { socket } of open) socket.write('}');
    await Promise.all(open.map(({ closed }) => closed));
    const statuses = open.map(({ text }) => Number(text().split(' ')[1]));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(51);
    expect(statuses[60]).toBe(429);
    expect(open[60]!.text()).toMatch(/Too many wrong tokens from this IP. Retry in \d+ min\./);
    proxy.delay(0);
  });

  it('of keys and tokens ends in 429, while valid ones still work from the same IP', async () => {
    const on = await world();
    const known = { ingest: PUBLISHER_KEY, console: OPERATOR_TOKEN };
    const call = (app: keyof typeof known, key: string) =>
      app === 'ingest'
        ? on.publish(sampleEvent(), key)
        : fetch(`${on.consoleUrl}/v1/overview`, { headers: { authorization: `Bearer ${key}` } });
    for (const app of ['ingest', 'console'] as const) {
      const statuses: number[] = [];
      for (let i = 0; i < 62; i++) statuses.push((await call(app, `guess-${i}`)).status);
      expect(statuses).toEqual([...Array(60).fill(401), 429, 429]);
      const limited = await call(app, 'guess');
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await call(app, known[app])).status).toBeLessThan(300);
      const url = app === 'ingest' ? on.ingestUrls[0]! : on.consoleUrl;
      await eventually(
        'all failures in the metrics',
        async () => (await metric(url, /^posthorn_auth_failures_total\{.*kind="bearer"/)) === 63,
      );
    }
  });

  it('is logged with the client, never with what was guessed, and a flood of it in a few lines', async () => {
    const on = await world();
    const env = { ...on.env, LOG_LEVEL: 'info' };
    const ingest = ownProcess('ingest', env);
    const { url } = await ingest.ready;
    const guess = () =>
      fetch(`${url}/v1/events`, { method: 'POST', headers: { authorization: 'Bearer hunter2-hunter2' }, body: '{}' });
    for (let i = 0; i < 5; i++) await Promise.all(Array.from({ length: 100 }, guess));
    const lines = () => ingest.output.filter((line) => line.includes('auth.failed')).map((line) => JSON.parse(line));
    const told = () => lines().reduce((sum, { suppressed }) => sum + (suppressed ?? 1), 0);
    await eventually('all failures to be accounted for', () => told() === 500);
    expect(lines()[0]).toMatchObject({
      level: 'warn',
      kind: 'bearer',
      outcome: 'refused',
      client: '127.0.0.1',
      path: '/v1/events',
    });
    expect(lines().length).toBeLessThan(250);
    expect(ingest.output.join('\n')).not.toContain('hunter2');
  });
});

describe('responses to a browser', () => {
  it('forbid caches to keep a secret or a CSRF token', async () => {
    const on = await world();
    const created = await on.operate('POST', '/v1/subscriptions', subscription);
    const rotated = await on.operate('POST', `/v1/subscriptions/${created.body.id}/rotate-secret`, {});
    const session = await signIn(on, OPERATOR_TOKEN);
    const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
    const me = await fetch(`${on.consoleUrl}/v1/session`, { headers: { cookie } });
    expect([
      created.body.secret,
      rotated.body.secret,
      ((await me.json()) as { csrf_token: string }).csrf_token,
    ]).not.toContain(undefined);
    for (const { headers } of [created, rotated, session, me]) expect(headers.get('cache-control')).toBe('no-store');
  });

  it('set a cookie with the prefix __Host- over https behind a trusted proxy, and a plain one over http', async () => {
    const on = await world({ env: { TRUSTED_PROXIES: '127.0.0.0/8' } });
    const https = { 'x-forwarded-proto': 'https' };
    const set = (await signIn(on, OPERATOR_TOKEN, https)).headers.get('set-cookie')!;
    expect(set).toMatch(/^__Host-posthorn_session=.*; Path=\/; .*HttpOnly; Secure; SameSite=Strict$/);
    expect(set).not.toContain('Domain');
    const cookie = set.split(';')[0]!;
    const call = (method: string, headers: Record<string, string>) =>
      fetch(`${on.consoleUrl}/v1/session`, { method, headers: { cookie, ...headers } });
    const { csrf_token } = (await (await call('GET', https)).json()) as { csrf_token: string };
    expect((await call('GET', {})).status).toBe(401);
    const out = await call('DELETE', { ...https, 'x-csrf-token': csrf_token });
    expect(out.status).toBe(204);
    expect(out.headers.get('set-cookie')).toMatch(/^__Host-posthorn_session=;.*Expires=Thu, 01 Jan 1970.*Secure/);
    const plain = (await signIn(on, OPERATOR_TOKEN)).headers.get('set-cookie')!;
    expect(plain).toMatch(/^posthorn_session=/);
    expect(plain).not.toContain('Secure');
  });
});

describe('an ambiguous request', () => {
  const cases: Record<string, string> = {
    'two hosts': 'Host: a\r\nHost: b\r\n\r\n',
    'two equal hosts': 'Host: a\r\nhost: a\r\n\r\n',
    'no host': '\r\n',
    'a length and chunks': 'Host: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'two lengths': 'Host: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n',
    'chunks that are not the last encoding': 'Host: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    'a space before a colon': 'Host: a\r\nContent-Length : 5\r\n\r\n',
    'a folded header': 'Host: a\r\nX: a\r\n b: c\r\n\r\n',
    'a bare line feed': 'Host: a\nX: b\r\n\r\n',
  };
  it.each(Object.keys(cases))('with %s is answered with 400, and the connection ends', async (name) => {
    const on = await world();
    for (const url of [on.ingestUrls[0]!, on.consoleUrl]) {
      const raw = await openRaw(
        url,
        `POST /healthz HTTP/1.1\r\n${cases[name]}GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n`,
      );
      await raw.closed;
      expect(raw.text()).toMatch(/^HTTP\/1\.1 400 /);
      expect(raw.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
  });
});

describe('a request whose target is not a path', () => {
  it.each([
    ['http://elsewhere/healthz', 200],
    ['http://elsewhere', 404],
    ['/healthz#fragment', 200],
    ['//elsewhere/healthz#fragment', 404],
    ['http://[', 400],
  ])('is answered, and leaves no line that is not of the log: %j', async (target, status) => {
    const env = { ...(await world()).env, LOG_LEVEL: 'info' };
    const ingest = ownProcess('ingest', env);
    const raw = await openRaw((await ingest.ready).url, head('GET', target, { Connection: 'close' }));
    await raw.closed;
    expect(raw.text()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    ingest.child.kill('SIGTERM');
    await ingest.ended;
    expect(complaintsOf(ingest)).toEqual([]);
  });
});
