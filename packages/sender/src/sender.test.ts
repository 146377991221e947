/** One attempt against receivers that behave, and against each way in which they don't. */
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type Misbehaviour,
  misbehaviours,
  startMisbehavingReceiver,
  startReceiver,
  testCertificate,
} from '@posthorn/testing';
import { createSender, parseNetworks, type Sender, type SenderOptions, type SendResult } from './index.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

function sender(options: Partial<SenderOptions> = {}): Sender {
  const made = createSender({
    allowedNetworks: parseNetworks('127.0.0.0/8'),
    timeoutMs: 60_000,
    userAgent: 'Posthorn/test',
    ...options,
  });
  undo.push(() => made.close());
  return made;
}
async function receiver(...args: Parameters<typeof startReceiver>) {
  const started = await startReceiver(...args);
  undo.push(() => started.close());
  return started;
}
const post = (url: string, headers: Record<string, string> = {}) => ({ url, headers, body: '{"a":"é"}' });

describe('a receiver that behaves', () => {
  it('gets the exact bytes, the headers and the user agent, over one kept connection', async () => {
    const to = await receiver();
    const from = sender();
    for (let i = 0; i < 5; i++) {
      expect(await from.send(post(to.url, { 'Service-Event': 'session.created' }))).toEqual({
        kind: 'responded',
        statusCode: 200,
      });
    }
    expect(to.connections()).toBe(1);
    expect(to.requests[0]).toMatchObject({ method: 'POST', path: '/hook', body: '{"a":"é"}' });
    expect(to.requests[0]?.headers).toMatchObject({
      'user-agent': 'Posthorn/test',
      'service-event': 'session.created',
      'content-length': '10',
    });
    expect(to.requests[0]?.headers).not.toHaveProperty('accept-encoding');
  });
  it.each([200, 204, 299, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503])(
    'that answers %i is heard as such, and no redirect is followed',
    async (status) => {
      const elsewhere = await receiver();
      const to = await receiver((_request, response) => {
        response.writeHead(status, { location: elsewhere.url }).end();
      });
      expect(await sender().send(post(to.url))).toEqual({ kind: 'responded', statusCode: status });
      expect(elsewhere.requests).toHaveLength(0);
    },
  );
  it('that closed a kept connection costs no attempt: the request goes again over a new one', async () => {
    const to = await receiver();
    const from = sender();
    await from.send(post(to.url));
    to.answerWith((_request, response) => {
      if (to.requests.length === 2) response.socket?.resetAndDestroy();
      else response.writeHead(200).end();
    });
    expect(await from.send(post(to.url))).toEqual({ kind: 'responded', statusCode: 200 });
    expect(to.connections()).toBe(2);
  });
  it('that resets every request gets it twice at most, however many connections are kept', async () => {
    const to = await receiver();
    const from = sender();
    await Promise.all(Array.from({ length: 5 }, () => from.send(post(to.url))));
    to.answerWith((_request, response) => void response.socket?.resetAndDestroy());
    const before = to.requests.length;
    expect(await from.send(post(to.url))).toMatchObject({ kind: 'connection_failed', error: 'connection' });
    expect(to.requests.length - before).toBe(2);
  });
});

describe('a receiver that misbehaves', () => {
  const timedOut: SendResult = { kind: 'timed_out' };
  const ok: SendResult = { kind: 'responded', statusCode: 200 };
  const failed = { kind: 'connection_failed', error: 'connection' };
  const expected: Record<Misbehaviour, object> = {
    'resets the connection': failed,
    'closes without an answer': failed,
    'closes after half a header': failed,
    'never answers': timedOut,
    'drips its headers': timedOut,
    'sends interim answers for ever': timedOut,
    'sends interim answers first': ok,
    'switches protocols': failed,
    'answers garbage': failed,
    'sends too many headers': failed,
    'sends an endless body': ok,
    'announces a gigabyte': ok,
    'drips its body': ok,
  };
  it.each(misbehaviours)('%s', async (kind) => {
    const to = await startMisbehavingReceiver(kind);
    undo.push(() => to.close());
    // Without a limit of its own, a receiver of those that time out would keep the attempt for ever.
    const from = expected[kind] === timedOut ? sender({ timeoutMs: 200 }) : sender();
    expect(await from.send(post(to.url))).toMatchObject(expected[kind]);
    // The connection is let go soon, and little of a large body was ever taken.
    if (kind !== 'sends interim answers first') await to.allClosed();
    expect(to.bytesWritten()).toBeLessThan(16 * 1024 * 1024);
  });
  it('is not there at all', async () => {
    const gone = await startReceiver();
    await gone.close();
    expect(await sender().send(post(gone.url))).toEqual({
      kind: 'connection_failed',
      error: 'connection',
      detail: 'ECONNREFUSED',
    });
  });
  it('has a certificate that nobody vouches for', async () => {
    const to = await receiver(200, testCertificate);
    expect(await sender().send(post(to.url))).toMatchObject({ kind: 'connection_failed', error: 'tls' });
    expect(await sender({ ca: testCertificate.cert }).send(post(to.url))).toEqual({
      kind: 'responded',
      statusCode: 200,
    });
    expect(to.requests).toHaveLength(1);
  });
  it('speaks plain HTTP where TLS is expected', async () => {
    const to = await receiver();
    expect(await sender().send(post(to.url.replace('http:', 'https:')))).toMatchObject({
      kind: 'connection_failed',
      error: 'tls',
    });
  });
});

describe('names', () => {
  const resolvingTo =
    (...addresses: string[]) =>
    async () =>
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  it('are connected to at the address that was checked', async () => {
    const to = await receiver();
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    expect(await sender({ resolve: resolvingTo('127.0.0.1') }).send(post(url))).toEqual({
      kind: 'responded',
      statusCode: 200,
    });
  });
  it('that resolve to anything private are blocked, even beside a public address', async () => {
    const to = await receiver();
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    const result = await sender({ resolve: resolvingTo('8.8.8.8', '10.0.0.1') }).send(post(url));
    expect(result).toEqual({ kind: 'address_blocked', reason: 'private_address' });
  });
  it('that come to point inside after a good attempt are blocked at the next', async () => {
    const to = await receiver((_request, response) => response.writeHead(200, { connection: 'close' }).end());
    let address = '127.0.0.1';
    const from = sender({ resolve: async () => [{ address, family: 4 }] });
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    expect(await from.send(post(url))).toMatchObject({ kind: 'responded' });
    address = '10.0.0.7';
    expect(await from.send(post(url))).toEqual({ kind: 'address_blocked', reason: 'private_address' });
    expect(to.requests).toHaveLength(1);
  });
  it('that resolve to nothing fail as dns', async () => {
    expect(await sender().send(post('http://nothing.invalid/'))).toMatchObject({
      kind: 'connection_failed',
      error: 'dns',
    });
    expect(await sender({ resolve: resolvingTo() }).send(post('http://receiver.test/'))).toMatchObject({
      error: 'dns',
    });
  });
  it('that take too long to resolve are counted in the limit', async () => {
    const never = sender({ resolve: () => new Promise(() => undefined), timeoutMs: 100 });
    expect(await never.send(post('http://receiver.test/'))).toEqual({ kind: 'timed_out' });
  });
  it('IP literals are checked although they are never looked up', async () => {
    const to = await receiver();
    expect(await sender({ allowedNetworks: [] }).send(post(to.url))).toEqual({
      kind: 'address_blocked',
      reason: 'local_address',
    });
    expect(to.requests).toHaveLength(0);
  });
});

describe('surroundings', () => {
  it('no proxy is taken from the environment', async () => {
    const proxy = await receiver();
    const to = await receiver();
    const before = { ...process.env };
    undo.push(() => {
      process.env = before;
    });
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'])
      process.env[name] = new URL(proxy.url).origin;
    process.env.NODE_USE_ENV_PROXY = '1';
    expect(await sender().send(post(to.url))).toEqual({ kind: 'responded', statusCode: 200 });
    expect([to.requests.length, proxy.requests.length]).toEqual([1, 0]);
  });
  it('attempts can be given up', async () => {
    const to = await startMisbehavingReceiver('never answers');
    undo.push(() => to.close());
    const stop = new AbortController();
    const from = sender({ timeoutMs: 60_000, signal: stop.signal });
    const attempts = [from.send(post(to.url)), from.send(post(to.url))];
    stop.abort();
    expect(await Promise.all(attempts)).toEqual([{ kind: 'aborted' }, { kind: 'aborted' }]);
    expect(await from.send(post(to.url))).toEqual({ kind: 'aborted' });
  });
});
