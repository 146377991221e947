/** Both senders against receivers that behave, and against each way in which they do not. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import {
  eventually,
  type Misbehaviour,
  misbehaviours,
  startMisbehavingReceiver,
  startReceiver,
  testCertificate,
} from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { listening, post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

describe.each(senderKinds)('%s: a receiver that behaves', (kind) => {
  it('gets the exact bytes, the headers and the user agent', async () => {
    const receiver = await testReceiver();
    expect(await testSender({}, kind).send(post(receiver.url, { 'Service-Event': 'session.created' }))).toEqual(
      responded(),
    );
    expect(receiver.requests[0]).toMatchObject({ method: 'POST', path: '/hook', body: '{"a":"é"}' });
    const { host, connection, ...headers } = receiver.requests[0]!.headers;
    expect(host).toBe(new URL(receiver.url).host);
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
      const receiver = await testReceiver((_request, response) => {
        response.writeHead(status, { location: elsewhere.url }).end();
      });
      expect(await testSender({}, kind).send(post(receiver.url))).toEqual(responded(status));
      expect(elsewhere.requests).toHaveLength(0);
    },
  );
  it.each([
    [
      'a header in several lines',
      "HTTP/1.1 200 OK\r\nContent-Security-Policy: default-src 'self';\r\n  img-src *\r\n\r\n",
    ],
    ['lines that end with LF alone', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a control character', 'HTTP/1.1 200 OK\r\nServer: a\u0001\r\n\r\n'],
  ])('has responded also with %s', async (_what, text) => {
    const server = createServer(({ socket }) => void socket.end(text));
    const port = await listening(server, '127.0.0.1');
    expect(await testSender({}, kind).send(post(`http://127.0.0.1:${port}/`))).toEqual(responded());
  });
  it('fails as tls with a certificate that is not trusted, or is for another name', async () => {
    const receiver = await testReceiver(200, testCertificate);
    const ca = testCertificate.cert;
    expect(await testSender({}, kind).send(post(receiver.url))).toEqual({
      kind: 'connection_failed',
      error: 'tls',
      detail: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      ip: '127.0.0.1',
    });
    const named = (name: string) => post(receiver.url.replace('127.0.0.1', name));
    const resolve = resolvingTo('127.0.0.1');
    expect(await testSender({ ca, resolve }, kind).send(named('other.test'))).toMatchObject({
      error: 'tls',
      detail: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(receiver.requests).toHaveLength(0);
    expect(await testSender({ ca }, kind).send(post(receiver.url))).toEqual(responded());
    expect(await testSender({ ca, resolve }, kind).send(named('receiver.test'))).toEqual(responded());
    expect(await testSender({ ca, resolve }, kind).send(named('receiver.test.'))).toEqual(responded());
  });
  it.each([
    ['a client certificate', { requestCert: true, rejectUnauthorized: true }, /ALERT_CERTIFICATE_REQUIRED$/],
    ['another protocol', { ALPNProtocols: ['h2'] }, /ALERT_NO_APPLICATION_PROTOCOL$|^EPROTO$/],
  ])('fails as tls if it requires %s', async (_, required, code) => {
    const server = createHttpsServer({ ...testCertificate, ...required });
    const url = `https://127.0.0.1:${await listening(server, '127.0.0.1')}/`;
    expect(await testSender({ ca: testCertificate.cert }, kind).send(post(url))).toMatchObject({
      error: 'tls',
      detail: expect.stringMatching(code),
    });
  });
});

it('a delivery spells the names of its headers as the specification does', async () => {
  let names: string[] = [];
  const server = createServer((request, response) => {
    names = request.rawHeaders.filter((_, i) => i % 2 === 0);
    response.end();
  });
  const url = `http://127.0.0.1:${await listening(server, '127.0.0.1')}/`;
  await testSender().send(post(url, { 'Content-Type': 'application/json', 'Service-Event-Id': 'evt_1' }));
  expect(names).toEqual(expect.arrayContaining(['User-Agent', 'Content-Type', 'Service-Event-Id']));
});

describe.each(senderKinds)('%s: a receiver that misbehaves', (kind) => {
  it.each([
    ['http', true],
    ['https', false],
  ])('counts as connected once the %s request can be written: %s', async (protocol, isConnected) => {
    const hanging = createTcpServer((socket) => void socket.on('error', () => undefined).resume());
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    atEnd(() => void hanging.close());
    const { port } = hanging.address() as AddressInfo;
    const result = await testSender({ timeoutMs: 300 }, kind).send(post(`${protocol}://127.0.0.1:${port}/`));
    expect(result).toEqual({ kind: 'timed_out', isConnected, ip: '127.0.0.1' });
  });
  const timedOut = { kind: 'timed_out' };
  const ok = { kind: 'responded', statusCode: 200 };
  const failed = { kind: 'connection_failed', error: 'connection' };
  // The status line decides (interface 6.4). A validation asks whether there is a response at all.
  const withBrokenHeaders = kind === 'deliveries' ? ok : failed;
  const tooManyInterim = { ...failed, detail: 'TOO_MANY_INTERIM_RESPONSES' };
  const expected: Record<Misbehaviour, object> = {
    'resets the connection': { ...failed, detail: 'ECONNRESET' },
    'closes without a response': { ...failed, detail: 'ECONNRESET' },
    'closes after half a header': withBrokenHeaders,
    'never responds': timedOut,
    // For a delivery, a second after the status line.
    'drips its headers': kind === 'deliveries' ? ok : timedOut,
    'drips its status line': timedOut,
    'drips an interim response': timedOut,
    'sends interim responses for ever': tooManyInterim,
    'sends interim responses first': ok,
    'sends interim responses first, with lines that end with LF alone': ok,
    'sends an empty line before an interim response':
      kind === 'deliveries' ? { ...failed, detail: 'INVALID_RESPONSE' } : ok,
    'sends as many interim responses as it may': ok,
    'sends one interim response too many': tooManyInterim,
    'floods with 100': tooManyInterim,
    'floods with 102': tooManyInterim,
    'floods with 103': tooManyInterim,
    'floods with the headers of an interim response': failed,
    'floods with empty lines': failed,
    'never ends its status line': { ...failed, detail: 'RESPONSE_TOO_LARGE' },
    'switches protocols': { ...failed, detail: 'UPGRADE' },
    'responds with garbage': {
      ...failed,
      detail: kind === 'deliveries' ? 'INVALID_RESPONSE' : 'HPE_INVALID_CONSTANT',
    },
    'responds with a status below 100': { ...failed, detail: 'INVALID_RESPONSE' },
    'responds with a status of four digits': {
      ...failed,
      detail: kind === 'deliveries' ? 'INVALID_RESPONSE' : 'HPE_INVALID_STATUS',
    },
    'responds twice': ok,
    'responds for ever': ok,
    'sends too many headers': withBrokenHeaders,
    'sends an endless body': ok,
    'sends an endless chunk extension': ok,
    'sends endless trailers': ok,
    'announces a gigabyte': ok,
    'drips its body': ok,
  };
  it.each(misbehaviours)('is cut off or accepted as specified when it %s', async (misbehaviour) => {
    const receiver = await startMisbehavingReceiver(misbehaviour);
    atEnd(() => receiver.close());
    const from = testSender({ timeoutMs: expected[misbehaviour] === timedOut ? 400 : 60_000 }, kind);
    expect(await from.send(post(receiver.url))).toMatchObject(expected[misbehaviour]);
    const isWell = /^sends (interim responses first|as many)/.test(misbehaviour);
    // The connection is closed at once, and little of a flood was ever taken: what the system buffers, mostly.
    if (!isWell || kind === 'single requests') await receiver.allClosed();
    expect(receiver.bytesWritten()).toBeLessThan(16 * 1024 * 1024);
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
    const receiver = await testReceiver();
    expect(await testSender({}, kind).send(post(receiver.url.replace('http:', 'https:')))).toMatchObject({
      kind: 'connection_failed',
      error: 'tls',
    });
  });
});

describe.each(senderKinds)('%s: a sender', (kind) => {
  it('ignores proxies of the environment', async () => {
    const proxy = await testReceiver();
    const receiver = await testReceiver();
    const before = { ...process.env };
    atEnd(() => {
      process.env = before;
    });
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'])
      process.env[name] = new URL(proxy.url).origin;
    process.env.NODE_USE_ENV_PROXY = '1';
    expect(await testSender({}, kind).send(post(receiver.url))).toEqual(responded());
    expect([receiver.requests.length, proxy.requests.length]).toEqual([1, 0]);
  });
  it('reports aborted attempts, and aborts all later ones', async () => {
    const receiver = await startMisbehavingReceiver('never responds');
    atEnd(() => receiver.close());
    const stop = new AbortController();
    const from = testSender({ timeoutMs: 60_000, signal: stop.signal }, kind);
    const attempts = [from.send(post(receiver.url)), from.send(post(receiver.url))];
    stop.abort();
    expect(await Promise.all(attempts)).toEqual([
      { kind: 'aborted', ip: null },
      { kind: 'aborted', ip: null },
    ]);
    expect(await from.send(post(receiver.url))).toEqual({ kind: 'aborted', ip: null });
  });
});

it('an attempt that is aborted after its status line has arrived counts, although its headers are not complete', async () => {
  const sockets: Socket[] = [];
  const noteSocket = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
  subscribe('net.client.socket', noteSocket);
  atEnd(() => unsubscribe('net.client.socket', noteSocket));
  const statusLine = 'HTTP/1.1 200 OK\r\n';
  const url = `http://127.0.0.1:${await listening(
    createServer((request) => request.socket.write(statusLine)),
    '127.0.0.1',
  )}/`;
  const stop = new AbortController();
  const attempt = testSender({ signal: stop.signal }).send(post(url));
  await eventually('the status line', () => sockets[0]?.bytesRead === statusLine.length);
  stop.abort();
  expect(await attempt).toEqual(responded());
});

describe('an attempt that must not start any more', () => {
  it('sends nothing, whether over a new connection or a kept one, and is aborted', async () => {
    const receiver = await testReceiver();
    const sender = testSender();
    let mayStart = false;
    const send = () => sender.send({ ...post(receiver.url), mayStart: () => mayStart });
    expect(await send()).toEqual({ kind: 'aborted', ip: null });
    mayStart = true;
    expect(await send()).toEqual(responded());
    await receiver.received(1);
    mayStart = false;
    expect(await send()).toEqual({ kind: 'aborted', ip: null });
    mayStart = true;
    expect(await send()).toEqual(responded());
    expect(receiver.requests).toHaveLength(2);
  });

  it('is asked when the connection is there, not before: it may take long', async () => {
    const receiver = await testReceiver();
    let isConnected = false;
    const sender = testSender({
      onConnected() {
        isConnected = true;
      },
    });
    const asked: boolean[] = [];
    const mayStart = () => {
      asked.push(isConnected);
      return true;
    };
    expect(await sender.send({ ...post(receiver.url), mayStart })).toEqual(responded());
    expect(asked).toEqual([true]);
  });
});
