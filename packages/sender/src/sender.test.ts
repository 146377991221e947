/** Both senders against receivers that behave, and against each way in which they do not. */
import { describe, expect, it } from '@jest/globals';
import {
  type Misbehaviour,
  misbehaviours,
  startMisbehavingReceiver,
  startReceiver,
  testCertificate,
} from '@posthorn/testing';
import { atEnd, post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

describe.each(senderKinds)('%s: a receiver that behaves', (kind) => {
  it('gets the exact bytes, the headers and the user agent', async () => {
    const to = await testReceiver();
    expect(await testSender({}, kind).send(post(to.url, { 'Service-Event': 'session.created' }))).toEqual(responded());
    expect(to.requests[0]).toMatchObject({ method: 'POST', path: '/hook', body: '{"a":"é"}' });
    const { host, connection, ...headers } = to.requests[0]!.headers;
    expect(host).toBe(new URL(to.url).host);
    expect(connection).toBe(kind === 'deliveries' ? 'keep-alive' : 'close');
    expect(headers).toEqual({
      'user-agent': 'Posthorn/test',
      'service-event': 'session.created',
      'content-length': '10',
    });
  });
  it.each([200, 204, 299, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503])(
    'has its status %i reported, and no redirect is followed',
    async (status) => {
      const elsewhere = await testReceiver();
      const to = await testReceiver((_request, response) => {
        response.writeHead(status, { location: elsewhere.url }).end();
      });
      expect(await testSender({}, kind).send(post(to.url))).toEqual(responded(status));
      expect(elsewhere.requests).toHaveLength(0);
    },
  );
  it('fails as tls with a certificate that is not trusted, or is for another name', async () => {
    const to = await testReceiver(200, testCertificate);
    const ca = testCertificate.cert;
    expect(await testSender({}, kind).send(post(to.url))).toEqual({
      kind: 'connection_failed',
      error: 'tls',
      detail: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      ip: '127.0.0.1',
    });
    const named = (name: string) => post(to.url.replace('127.0.0.1', name));
    const resolve = resolvingTo('127.0.0.1');
    expect(await testSender({ ca, resolve }, kind).send(named('other.test'))).toMatchObject({
      error: 'tls',
      detail: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(to.requests).toHaveLength(0);
    expect(await testSender({ ca }, kind).send(post(to.url))).toEqual(responded());
    expect(await testSender({ ca, resolve }, kind).send(named('receiver.test'))).toEqual(responded());
    expect(await testSender({ ca, resolve }, kind).send(named('receiver.test.'))).toEqual(responded());
  });
});

describe.each(senderKinds)('%s: a receiver that misbehaves', (kind) => {
  const timedOut = { kind: 'timed_out' };
  const ok = { kind: 'responded', statusCode: 200 };
  const failed = { kind: 'connection_failed', error: 'connection' };
  const tooManyInterim = { ...failed, detail: 'TOO_MANY_INTERIM_RESPONSES' };
  const expected: Record<Misbehaviour, object> = {
    'resets the connection': { ...failed, detail: 'ECONNRESET' },
    'closes without an answer': { ...failed, detail: 'ECONNRESET' },
    'closes after half a header': failed,
    'never answers': timedOut,
    'drips its headers': timedOut,
    'drips its status line': timedOut,
    'drips an interim answer': timedOut,
    'sends interim answers for ever': tooManyInterim,
    'sends interim answers first': ok,
    'sends as many interim answers as it may': ok,
    'sends one interim answer too many': tooManyInterim,
    'floods with 100': tooManyInterim,
    'floods with 102': tooManyInterim,
    'floods with 103': tooManyInterim,
    'floods with the headers of an interim answer': failed,
    'floods with empty lines': failed,
    'never ends its status line': { ...failed, detail: 'RESPONSE_TOO_LARGE' },
    'switches protocols': { ...failed, detail: 'UPGRADE' },
    'answers garbage': failed,
    'answers twice': ok,
    'answers for ever': ok,
    'sends too many headers': failed,
    'sends an endless body': ok,
    'sends an endless chunk extension': ok,
    'sends endless trailers': ok,
    'announces a gigabyte': ok,
    'drips its body': ok,
  };
  it.each(misbehaviours)('is cut off or accepted as specified when it %s', async (misbehaviour) => {
    const to = await startMisbehavingReceiver(misbehaviour);
    atEnd(() => to.close());
    const isSlow = expected[misbehaviour] === timedOut;
    const from = testSender({ timeoutMs: isSlow ? 400 : 60_000 }, kind);
    expect(await from.send(post(to.url))).toMatchObject(expected[misbehaviour]);
    const isWell = /^sends (interim answers first|as many)/.test(misbehaviour);
    // The connection is closed at once, and little of a flood was ever taken: what the system buffers, mostly.
    if (!isWell || kind === 'single requests') await to.allClosed();
    expect(to.bytesWritten()).toBeLessThan(16 * 1024 * 1024);
  });
  it('fails as connection when it does not exist', async () => {
    const gone = await startReceiver();
    await gone.close();
    expect(await testSender({}, kind).send(post(gone.url))).toEqual({
      kind: 'connection_failed',
      error: 'connection',
      detail: 'ECONNREFUSED',
      ip: '127.0.0.1',
    });
  });
  it('fails as tls when it speaks plain HTTP where TLS is expected', async () => {
    const to = await testReceiver();
    expect(await testSender({}, kind).send(post(to.url.replace('http:', 'https:')))).toMatchObject({
      kind: 'connection_failed',
      error: 'tls',
    });
  });
});

describe.each(senderKinds)('%s: a sender', (kind) => {
  it('ignores proxies of the environment', async () => {
    const proxy = await testReceiver();
    const to = await testReceiver();
    const before = { ...process.env };
    atEnd(() => {
      process.env = before;
    });
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'])
      process.env[name] = new URL(proxy.url).origin;
    process.env.NODE_USE_ENV_PROXY = '1';
    expect(await testSender({}, kind).send(post(to.url))).toEqual(responded());
    expect([to.requests.length, proxy.requests.length]).toEqual([1, 0]);
  });
  it('reports aborted attempts, and aborts all later ones', async () => {
    const to = await startMisbehavingReceiver('never answers');
    atEnd(() => to.close());
    const stop = new AbortController();
    const from = testSender({ timeoutMs: 60_000, signal: stop.signal }, kind);
    const attempts = [from.send(post(to.url)), from.send(post(to.url))];
    stop.abort();
    expect(await Promise.all(attempts)).toEqual([{ kind: 'aborted' }, { kind: 'aborted' }]);
    expect(await from.send(post(to.url))).toEqual({ kind: 'aborted' });
  });
});
