/** The live tail: what operators see of attempts as they happen. */
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { createFeedWriter, encodeTailEntry } from '@posthorn/store';
import { deliveriesWith, eventually, type Receiver } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { ownStream, runsOf } from './live.ts';
import { atEnd, ownApps, ownEnv, ownProcess, ownReceiver, ownStore, ownWorld } from './own.ts';
import { ownPosthorn, runPosthorn } from './run-posthorn.ts';
import { OPERATOR_TOKEN, sampleEvent, type World } from './world.ts';

let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld({ env: { RETRY_DELAYS: '1h' } });
  to = await ownReceiver();
});

const listen = (query = '', headers?: Record<string, string>) => ownStream(`${on.consoleUrl}/v1/tail${query}`, headers);
const tailKeys = async () => (await on.redis.keys(`${on.prefix}:{0}:tail*`)).sort();

/** Publishes until an attempt is shown: workers look every 2 s whether anyone watches. */
async function until(shown: () => boolean, publish: () => Promise<unknown> = () => on.publish(sampleEvent())) {
  await eventually('an attempt to be shown', async () => {
    if (!shown()) await publish();
    return shown();
  });
}

/** Writes attempts as a worker does, without one. */
async function ownWriter() {
  const writer = createFeedWriter(await ownStore(on), 'attempts');
  const entry = { deliveryId: `dlv_${'A'.repeat(26)}`, eventId: 'e', eventType: 'session.created' } as const;
  const attempt = { number: 1, startedAtMs: 0, durationMs: 5, statusCode: 500, error: 'status' } as const;
  const rest = { environment: 'sandbox', subscriptionId: `sub_${'A'.repeat(22)}`, status: 'failed' } as const;
  return async (eventIds: string[]) => {
    for (const eventId of eventIds) writer.add(encodeTailEntry({ ...entry, ...attempt, ...rest, eventId }), true);
    await writer.write();
  };
}

describe('the live tail', () => {
  it('shows attempts as they happen, filtered', async () => {
    const bad = await ownReceiver(deliveriesWith(500));
    const good = await on.subscribe(to.url);
    const failing = await on.subscribe(bad.url);
    const streams = await Promise.all([
      listen(),
      listen('?failed=true'),
      listen(`?subscription_id=${good.id}&environment=sandbox&event_type=session.approved`),
      listen('?event_type=session.expired'),
    ]);
    const [all, failed, one, none] = streams;
    expect(Object.fromEntries(all.response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    await until(() => [all, failed, one].every((stream) => stream.of('attempt').length > 0));
    const last = failed.of('attempt')[0];
    expect(last).toEqual({
      at: expect.any(String),
      delivery_id: expect.stringMatching(/^dlv_/),
      event_id: expect.stringMatching(/^evt_/),
      event_type: 'session.approved',
      environment: 'sandbox',
      subscription_id: failing.id,
      outcome: 'failed',
      status_code: 500,
      error: 'status',
      attempt: 1,
      duration_ms: expect.any(Number),
      delivery_status: 'waiting_for_retry',
    });
    expect((await on.delivery(last.delivery_id)).attempts[0].started_at).toBe(last.at);
    const valuesOf = (stream: typeof all, name: string) => new Set(stream.of('attempt').map((each) => each[name]));
    expect(valuesOf(failed, 'outcome')).toEqual(new Set(['failed']));
    expect(valuesOf(one, 'subscription_id')).toEqual(new Set([good.id]));
    expect(valuesOf(all, 'outcome')).toEqual(new Set(['failed', 'succeeded']));
    expect(none.of('attempt')).toEqual([]);
    // Two heartbeats later, so it was alive all the time.
    const beats = none.of('heartbeat').length;
    await eventually('heartbeats', () => none.of('heartbeat').length >= beats + 2);
    expect(streams.flatMap((stream) => stream.of('gap'))).toEqual([]);
  });

  it('shows no payload, secret or header', async () => {
    const { secret } = await on.subscribe(to.url);
    const stream = await listen();
    const event = sampleEvent({ data: { id: 'payload-id', status: 'approved', reference: 'payload-reference' } });
    await until(
      () => stream.of('attempt').length > 0,
      () => on.publish(event),
    );
    for (const text of ['payload', secret, 'Signature', to.url]) expect(stream.text()).not.toContain(text);
  });

  it('writes nothing while nobody watches, and all that it writes expires', async () => {
    await on.subscribe(to.url);
    await on.publish(sampleEvent());
    await eventually('a success', async () => (await on.deliveries('status=succeeded'))[0]);
    expect(await tailKeys()).toEqual([]);
    const stream = await listen();
    await until(() => stream.of('attempt').length > 0);
    expect(await tailKeys()).toHaveLength(2);
    for (const key of await tailKeys()) expect(await on.redis.pttl(key)).toBeGreaterThan(0);
  });

  it('continues after Last-Event-ID without a gap or a duplicate, also from another console', async () => {
    const write = await ownWriter();
    const whole = await listen();
    const consoleUrl = (await ownProcess('console', { ...on.env, LOG_LEVEL: 'info' }).ready).url;
    const ids: string[] = [];
    let lastId: string | undefined;
    let written = 0;
    for (let round = 0; round < 6; round++) {
      const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
      const part = await ownStream(`${round % 2 ? consoleUrl : on.consoleUrl}/v1/tail?failed=true`, headers);
      await write(Array.from({ length: 40 }, () => `event-${written++}`));
      await eventually('some of them', () => part.of('attempt').length >= 20);
      part.close();
      await part.ended;
      // It continues from what it has read: more may have been on the way.
      const read = part.messages().filter(({ event }) => event === 'attempt');
      ids.push(...read.map(({ data }) => JSON.parse(data).event_id));
      lastId = read.at(-1)?.id;
      await write(Array.from({ length: 40 }, () => `event-${written++}`));
      expect(part.of('gap')).toEqual([]);
    }
    const last = await listen('', { 'last-event-id': lastId ?? '' });
    await eventually('the rest', () => last.of('attempt').at(-1)?.event_id === `event-${written - 1}`);
    ids.push(...last.of('attempt').map((attempt) => attempt.event_id));
    const expected = Array.from({ length: written }, (_, i) => `event-${i}`);
    expect(ids).toEqual(expected);
    expect(last.of('gap')).toEqual([]);
    await eventually('the whole', () => whole.of('attempt').length >= written);
    expect(whole.of('attempt').map((attempt) => attempt.event_id)).toEqual(expected);
  });

  it('says where attempts may be missing: too many, too late, nobody watched, or an unknown Last-Event-ID', async () => {
    const write = await ownWriter();
    const stream = await listen();
    await write(Array.from({ length: 130 }, (_, i) => `${i}`));
    await eventually('a gap', () => stream.of('gap')[0]);
    expect(stream.of('gap')).toEqual([{ dropped: 5 }]);
    await eventually('all that were kept', () => stream.of('attempt').length === 125);
    // An entry that is gone, and one that never was.
    for (const id of ['1-0', '999999999999999-0']) {
      const again = await listen('', { 'last-event-id': id });
      await eventually('a gap', () => again.of('gap')[0]);
      expect(again.of('gap')).toEqual([{ dropped: null }]);
    }
    const lastId = stream.messages().findLast(({ event }) => event === 'attempt')?.id ?? '';
    const kept = await listen('', { 'last-event-id': lastId });
    await eventually('a heartbeat', () => kept.of('heartbeat')[0]);
    expect(kept.of('gap')).toEqual([]);
    // As if nobody had watched for 10 s.
    await on.redis.del(`${on.prefix}:{0}:tailing`);
    const late = await listen('', { 'last-event-id': lastId });
    await eventually('a gap', () => late.of('gap')[0]);
    expect(late.of('gap')).toEqual([{ dropped: null }]);
  });

  it('waits for a slow client without memory of its own, and delays nobody else', async () => {
    const write = await ownWriter();
    const fast = await listen();
    const { port } = new URL(on.consoleUrl);
    const slow = connect(Number(port), '127.0.0.1');
    slow.pause();
    slow.write(`GET /v1/tail HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${OPERATOR_TOKEN}\r\n\r\n`);
    const total = 24_000;
    for (let i = 0; i < total; i += 100) {
      await write(Array.from({ length: 100 }, (_, j) => `event-${i + j}`));
      // The stream keeps 10,000: the fast client must not be far behind.
      await eventually('the fast client', () => fast.of('attempt').length > i - 2_000);
    }
    await eventually('the fast client', () => fast.of('attempt').length === total);
    expect(fast.of('gap')).toEqual([]);
    let text = '';
    slow.on('data', (data) => {
      text += data;
    });
    slow.resume();
    atEnd(() => slow.destroy());
    await eventually('the last attempt', () => text.includes(`"event-${total - 1}"`));
    // It got what fitted into the buffers, was told of a gap, then got the 10,000 that are kept.
    const numbers = [...text.matchAll(/"event_id":"event-(\d+)"/g)].map((match) => Number(match[1]));
    expect(text).toContain('event: gap\ndata: {"dropped":null}');
    expect(numbers.length).toBeGreaterThanOrEqual(10_000);
    expect(numbers.length).toBeLessThan(total);
    expect(runsOf(numbers)).toHaveLength(2);
  });

  it('ends when its operator signs out, but not for other sessions', async () => {
    const signIn = async () => {
      const { headers } = await fetch(`${on.consoleUrl}/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: OPERATOR_TOKEN }),
      });
      return { cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '', authorization: '' };
    };
    const [first, second] = [await signIn(), await signIn()];
    const streams = await Promise.all([first, second].map((headers) => listen('', headers)));
    const withToken = await listen();
    const session = await (await fetch(`${on.consoleUrl}/v1/session`, { headers: { cookie: first.cookie } })).json();
    const { csrf_token: csrf } = session as { csrf_token: string };
    const headers = { cookie: first.cookie, 'x-csrf-token': csrf };
    expect((await fetch(`${on.consoleUrl}/v1/session`, { method: 'DELETE', headers })).status).toBe(204);
    await streams[0]?.ended;
    expect((await listen('', first)).response.status).toBe(401);
    const beats = [streams[1], withToken].map((stream) => stream?.of('heartbeat').length ?? 0);
    await eventually('heartbeats of the others', () =>
      [streams[1], withToken].every((stream, i) => (stream?.of('heartbeat').length ?? 0) > (beats[i] ?? 0) + 1),
    );
  });

  it('is limited to 10 streams of an operator, gives a place back, and refuses bad calls', async () => {
    const open = [];
    for (let i = 0; i < 10; i++) open.push(await listen());
    expect(open.map(({ response }) => response.status)).toEqual(Array(10).fill(200));
    const refused = await listen();
    await refused.ended;
    expect([refused.response.status, refused.text()]).toEqual([
      429,
      expect.stringContaining('may have 10 on a console'),
    ]);
    open[0]?.close();
    await eventually('a free place', async () => (await listen()).response.status === 200);
    for (const { close } of open) close();
    const request = `GET /v1/tail HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${OPERATOR_TOKEN}\r\n\r\n`;
    for (let i = 0; i < 20; i++) {
      const socket = connect(Number(new URL(on.consoleUrl).port), '127.0.0.1');
      await new Promise<void>((resolve) => socket.write(request, () => resolve()));
      socket.resetAndDestroy();
    }
    await eventually('a place after clients that left at once', async () => {
      const { response, close } = await listen();
      close();
      return response.status === 200;
    });
    expect((await listen('?failed=maybe')).response.status).toBe(422);
    expect((await listen('?subscription_id=sub_1')).response.status).toBe(422);
    expect((await listen('', { authorization: 'Bearer wrong' })).response.status).toBe(401);
    const head = await fetch(`${on.consoleUrl}/v1/tail`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    expect(head.status).toBe(200);
  });
});

describe('posthorn tail', () => {
  it('goes on when the console restarts; open streams do not delay its stop', async () => {
    const env = ownEnv({ RETRY_DELAYS: '1h', SHUTDOWN_GRACE: '10m' });
    const { publish, subscribe, operator } = await ownApps(env);
    await subscribe(to.url);
    const port = await freePort();
    const withPort = { ...env, PORT: String(port) };
    const first = ownProcess('console', withPort);
    await first.ready;
    // A client that reads nothing must not delay it either.
    const silent = connect(port, '127.0.0.1');
    atEnd(() => silent.destroy());
    silent.pause();
    silent.write(`GET /v1/tail HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${OPERATOR_TOKEN}\r\n\r\n`);
    const cli = ownPosthorn(`http://127.0.0.1:${port}`, ['tail']);
    await until(
      () => cli.ran.out.includes('\n'),
      () => publish(sampleEvent()),
    );
    expect(cli.ran.out).toMatch(
      /^\S+Z {2}ok 200 {2}\d+ ms {2}session\.approved {2}attempt 1 {2}dlv_\S{26} {2}http:\/\/127\.0\.0\.1:\d+\/hook\n/,
    );
    first.child.kill('SIGTERM');
    // Attempts are written for 10 s after somebody has watched. On a busy machine a restart may take longer, so what
    // the console leaves stays.
    await eventually('its end', async () => {
      await on.redis.persist(`${env.KEY_PREFIX}:{0}:tailing`);
      return first.child.exitCode !== null;
    });
    // Not after the 10 minutes that requests in flight may take.
    expect(await first.ended).toBe(0);
    await eventually('it says so', () => cli.ran.err.includes('Trying again'));
    const { body } = await publish(sampleEvent({ id: 'while-away' }));
    expect(body.id).toBe('while-away');
    await ownProcess('console', withPort).ready;
    await eventually('the attempt that it has missed', async () => {
      const found = (await ownDeliveries(String((await operator.ready).url))).find(isOf('while-away'));
      return found !== undefined && cli.ran.out.includes(found.id);
    });
    await eventually('it says that too', () => cli.ran.err.includes('Connected again.'));
    expect(cli.ran.err).not.toContain('missing');
    const ids = [...cli.ran.out.matchAll(/dlv_\S{26}/g)].map(String);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('goes on while a proxy answers in the place of the console', async () => {
    const attempt = {
      event_id: 'e',
      event_type: 'session.created',
      environment: 'sandbox',
      attempt: 1,
      replay_of: null,
    };
    const at = '2026-01-31T12:00:00.000Z';
    const result = { at, outcome: 'succeeded', status_code: 200, error: null, delivery_status: 'succeeded' };
    let calls = 0;
    to.answerWith(({ path }, response) => {
      // Of three calls of the stream the second fails, and each of the names.
      if (!path.startsWith('/hook/v1/tail') || ++calls === 2) return void response.writeHead(502).end();
      const data = { ...attempt, ...result, delivery_id: `dlv_${calls}`, subscription_id: 'sub_1', duration_ms: 5 };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`event: attempt\ndata: ${JSON.stringify(data)}\n\n`);
    });
    const cli = ownPosthorn(to.url, ['tail']);
    await eventually('the attempt after it', () => /dlv_3 {2}sub_1\n/.test(cli.ran.out));
    expect(cli.ran.out).toMatch(/dlv_1 {2}sub_1\n/);
  });

  it('prints what failed as JSON, and reports an unknown address as an error', async () => {
    const bad = await ownReceiver(deliveriesWith(500));
    await on.subscribe(to.url);
    const failing = await on.subscribe(bad.url);
    const cli = ownPosthorn(on.consoleUrl, ['--json', 'tail', '--failed', '--address', failing.id]);
    await until(() => cli.ran.out.includes('\n'));
    const lines = cli.ran.out.trimEnd().split('\n');
    for (const line of lines)
      expect(JSON.parse(line)).toMatchObject({ outcome: 'failed', subscription_id: failing.id });
    const wrong = await runPosthorn(on.consoleUrl, ['tail', '--address', 'acme']);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('subscription_id')]);
  });
});

const isOf =
  (eventId: string) =>
  ({ event_id }: { event_id: string }) =>
    event_id === eventId;

async function ownDeliveries(consoleUrl: string): Promise<{ id: string; event_id: string }[]> {
  const response = await fetch(`${consoleUrl}/v1/deliveries`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  return ((await response.json()) as { data: { id: string; event_id: string }[] }).data;
}
