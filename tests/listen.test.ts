/** `posthorn listen`: events of the sandbox reach a receiver under development, signed as workers sign them. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type ReceivedRequest } from '@posthorn/testing';
import { ownStream } from './live.ts';
import { ownReceiver, ownWorld } from './own.ts';
import { ownPosthorn } from './run-posthorn.ts';
import { isSigned } from './signed.ts';
import { sampleEvent, type World } from './world.ts';

let on: World;
beforeEach(async () => {
  on = await ownWorld();
});

const listen = (...args: string[]) => ownPosthorn(on.consoleUrl, ['listen', ...args]);

/** Publishes until an event is forwarded: ingest looks every 2 s whether anyone listens. */
async function until(forwarded: () => boolean, change: Record<string, unknown> = {}): Promise<void> {
  await eventually('an event to be forwarded', async () => {
    if (!forwarded()) await on.publish(sampleEvent(change));
    return forwarded();
  });
}

const check = ({ headers, body }: ReceivedRequest, secret: string) =>
  isSigned({ header: String(headers['service-signature']), body, secret, nowS: Date.now() / 1_000 });

describe('posthorn listen', () => {
  it('forwards what a worker would send, without a subscription, with a secret that it prints once', async () => {
    const local = await ownReceiver();
    const cli = listen('--forward', local.url);
    await until(() => local.requests.length > 0);
    const secret = await eventually('the secret', () => /the secret (whsec_\S+)\./.exec(cli.ran.err)?.[1]);
    expect(cli.ran.err.split(secret)).toHaveLength(2);
    for (const request of local.requests) {
      expect([await check(request, secret), await check(request, `${secret}x`)]).toEqual([true, false]);
    }

    // The same event, as a worker sends it.
    const subscribed = await ownReceiver();
    await on.subscribe(subscribed.url);
    const data = { id: 's-1', status: 'approved', reference: 'ü€\u2028 and more' };
    expect((await on.publish(sampleEvent({ id: 'both', data }))).status).toBe(202);
    const isBoth = ({ headers }: ReceivedRequest) => headers['service-event-id'] === 'both';
    const [[sent], [forwarded]] = await Promise.all([subscribed.received(1, isBoth), local.received(1, isBoth)]);
    expect(forwarded?.body).toBe(sent?.body);
    for (const name of ['content-type', 'service-event', 'service-event-id', 'user-agent', 'content-length'])
      expect([name, forwarded?.headers[name]]).toEqual([name, sent?.headers[name]]);
    const id = forwarded?.headers['service-delivery-id'];
    expect(id).toMatch(/^dlv_[A-Za-z0-9_-]{26}$/);
    expect(id).not.toBe(sent?.headers['service-delivery-id']);
    await eventually('its result', () => /Z {2}ok 200 {2}\d+ ms {2}session\.approved {2}both\n/.test(cli.ran.out));
  });

  it('forwards each event that is published once it says that it does', async () => {
    const local = await ownReceiver();
    const cli = listen('--forward', local.url);
    await eventually('it to say so', () => cli.ran.err.startsWith('Forwarding new events'));
    const ids = ['a', 'b', 'c'];
    for (const id of ids) await on.publish(sampleEvent({ id }));
    await local.received(ids.length);
    expect(local.requests.map(({ headers }) => headers['service-event-id']).sort()).toEqual(ids);
  });

  it('forwards new events of the sandbox only: none of production, no repeated one, no other type', async () => {
    const local = await ownReceiver();
    const secret = 'a-secret-of-the-developer';
    const cli = listen('--forward', local.url, '--type', 'session.declined', '--secret', secret);
    await until(() => local.requests.length > 0, { type: 'session.declined' });
    for (const environment of ['production', 'sandbox'])
      await on.publish(sampleEvent({ id: `of-${environment}`, environment, type: 'session.declined' }));
    await on.publish(sampleEvent({ id: 'of-sandbox', type: 'session.declined' }));
    await on.publish(sampleEvent({ id: 'other-type' }));
    await on.publish(sampleEvent({ id: 'last', type: 'session.declined' }));
    await local.received(1, ({ headers }) => headers['service-event-id'] === 'last');
    const ids = local.requests.map(({ headers }) => headers['service-event-id']);
    expect(ids.filter((id) => !String(id).startsWith('evt_'))).toEqual(['of-sandbox', 'last']);
    for (const request of local.requests) expect(await check(request, secret)).toBe(true);
    await eventually('the line about the secret', () => cli.ran.err.includes('Signed with your secret.'));
    expect(cli.ran.err + cli.ran.out).not.toContain(secret);
  });

  it('shows what the receiver did: its status, a redirect that is not followed, or why it was not reached', async () => {
    const local = await ownReceiver((request, response) => {
      const type = request.headers['service-event'];
      if (type === 'session.created') response.writeHead(302, { location: '/elsewhere' }).end();
      else if (type === 'session.expired') response.destroy();
      else response.writeHead(isDelivery(request) ? 500 : 200).end('\u001b[31mterminal\u001b[0m');
    });
    const cli = listen('--json', '--forward', `127.0.0.1:${local.port}/hook`);
    await until(() => local.requests.length > 0);
    const results = () =>
      cli.ran.out
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    for (const type of ['session.created', 'session.expired', 'session.declined'])
      await on.publish(sampleEvent({ id: type, type }));
    const resultOf = (id: string) =>
      eventually(`the result of ${id}`, () => results().find(({ event_id }) => event_id === id));
    expect(await resultOf('session.created')).toMatchObject({ status_code: 302, error: 'redirect' });
    expect(await resultOf('session.expired')).toMatchObject({ status_code: null, error: 'UND_ERR_SOCKET' });
    expect(await resultOf('session.declined')).toEqual({
      event_id: 'session.declined',
      event_type: 'session.declined',
      delivery_id: expect.stringMatching(/^dlv_/),
      status_code: 500,
      error: 'status',
      duration_ms: expect.any(Number),
    });
    expect(local.requests.some(({ path }) => path === '/elsewhere')).toBe(false);
    expect(cli.ran.out + cli.ran.err).not.toContain('terminal');
    await local.close();
    await on.publish(sampleEvent({ id: 'to-nobody' }));
    expect(await resultOf('to-nobody')).toMatchObject({ status_code: null, error: 'ECONNREFUSED' });
  });

  it('refuses bad options before it connects', async () => {
    for (const [args, reason] of [
      [[], "required option '--forward"],
      [['--forward', 'ftp://localhost'], 'Expected an address'],
      [['--forward', 'http://user:password@localhost'], 'Expected an address'],
      [['--forward', '3000', '--secret', 'short'], 'Expected 16 to 256 printable'],
      [['--forward', '3000', '--type', 'webhook.test'], 'Allowed choices are session.created'],
    ] as const) {
      const { code, err } = await listen(...args).ended;
      expect([code, err]).toEqual([1, expect.stringContaining(reason)]);
    }
  });
});

describe('GET /v1/listen', () => {
  it('stores no copy of an event, and does not send an event that is no longer stored', async () => {
    const keys = async () =>
      (await on.redis.keys(`${on.prefix}:{0}:*`)).filter((key) => /:(listening|published)$/.test(key));
    const secretly = { data: { id: 'payload-id', status: 'approved' } };
    await on.publish(sampleEvent(secretly));
    expect(await keys()).toEqual([]);
    const stream = await ownStream(`${on.consoleUrl}/v1/listen`);
    await until(() => stream.of('event').length > 0, secretly);
    const [first] = stream.of('event');
    expect(first).toEqual({
      id: expect.stringMatching(/^evt_/),
      type: 'session.approved',
      created_at: expect.any(String),
      body: expect.stringContaining('payload-id'),
    });
    expect(await keys()).toHaveLength(2);
    const entries = JSON.stringify(await on.redis.xrange(`${on.prefix}:{0}:published`, '-', '+'));
    expect(entries).toContain(first.id);
    expect(entries).not.toContain('payload-id');
    const gone = stream.of('event').map(({ id }) => id);
    for (const id of gone) await on.redis.del(`${on.prefix}:{0}:event:${id}/s`);
    const later = await ownStream(`${on.consoleUrl}/v1/listen`, { 'last-event-id': '1-0' });
    await until(() => later.of('event').length > 0, { id: 'later' });
    await eventually('the last event', () => later.of('event').some(({ id }) => id === 'later'));
    for (const { id } of later.of('event')) expect(gone).not.toContain(id);
  });
});
