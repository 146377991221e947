/** Both senders against receivers that behave, and against each way in which they don't; and the kept connections of deliveries. */
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type Misbehaviour,
  misbehaviours,
  startMisbehavingReceiver,
  startReceiver,
  testCertificate,
} from '@posthorn/testing';
import { createOneOffSender, createSender, parseNetworks, type Sender, type SenderOptions } from './index.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

const SENDERS = { deliveries: createSender, 'single requests': createOneOffSender };
type SenderKind = keyof typeof SENDERS;
const senderKinds = Object.keys(SENDERS) as SenderKind[];

function sender(options: Partial<SenderOptions> = {}, kind: SenderKind = 'deliveries'): Sender {
  const made = SENDERS[kind]({
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
const responded = (statusCode = 200) => ({ kind: 'responded', statusCode, ip: '127.0.0.1' });
const resolvingTo =
  (...addresses: string[]) =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

describe.each(senderKinds)('%s: a receiver that behaves', (kind) => {
  it('gets the exact bytes, the headers and the user agent', async () => {
    const to = await receiver();
    expect(await sender({}, kind).send(post(to.url, { 'Service-Event': 'session.created' }))).toEqual(responded());
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
    'that answers %i is heard as such, and no redirect is followed',
    async (status) => {
      const elsewhere = await receiver();
      const to = await receiver((_request, response) => {
        response.writeHead(status, { location: elsewhere.url }).end();
      });
      expect(await sender({}, kind).send(post(to.url))).toEqual(responded(status));
      expect(elsewhere.requests).toHaveLength(0);
    },
  );
  it('has a certificate that nobody vouches for, or one for another name', async () => {
    const to = await receiver(200, testCertificate);
    const ca = testCertificate.cert;
    expect(await sender({}, kind).send(post(to.url))).toEqual({
      kind: 'connection_failed',
      error: 'tls',
      detail: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      ip: '127.0.0.1',
    });
    const named = (name: string) => post(to.url.replace('127.0.0.1', name));
    const resolve = resolvingTo('127.0.0.1');
    expect(await sender({ ca, resolve }, kind).send(named('other.test'))).toMatchObject({
      error: 'tls',
      detail: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(to.requests).toHaveLength(0);
    expect(await sender({ ca }, kind).send(post(to.url))).toEqual(responded());
    expect(await sender({ ca, resolve }, kind).send(named('receiver.test'))).toEqual(responded());
    expect(await sender({ ca, resolve }, kind).send(named('receiver.test.'))).toEqual(responded());
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
  it.each(misbehaviours)('%s', async (misbehaviour) => {
    const to = await startMisbehavingReceiver(misbehaviour);
    undo.push(() => to.close());
    const isSlow = expected[misbehaviour] === timedOut;
    const from = sender({ timeoutMs: isSlow ? 400 : 60_000 }, kind);
    expect(await from.send(post(to.url))).toMatchObject(expected[misbehaviour]);
    const isWell = /^sends (interim answers first|as many)/.test(misbehaviour);
    // The connection is closed at once, and little of a flood was ever taken: what the system buffers, mostly.
    if (!isWell || kind === 'single requests') await to.allClosed();
    expect(to.bytesWritten()).toBeLessThan(16 * 1024 * 1024);
  });
  it('is not there at all', async () => {
    const gone = await startReceiver();
    await gone.close();
    expect(await sender({}, kind).send(post(gone.url))).toEqual({
      kind: 'connection_failed',
      error: 'connection',
      detail: 'ECONNREFUSED',
      ip: '127.0.0.1',
    });
  });
  it('speaks plain HTTP where TLS is expected', async () => {
    const to = await receiver();
    expect(await sender({}, kind).send(post(to.url.replace('http:', 'https:')))).toMatchObject({
      kind: 'connection_failed',
      error: 'tls',
    });
  });
});

describe.each(senderKinds)('%s: names', (kind) => {
  it('are connected to at the address that was checked', async () => {
    const to = await receiver();
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    expect(await sender({ resolve: resolvingTo('127.0.0.1') }, kind).send(post(url))).toEqual(responded());
  });
  it('are delivered to where only one of their addresses can be reached', async () => {
    const to = await receiver();
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    const allowedNetworks = parseNetworks('127.0.0.0/8,::1/128');
    for (const addresses of [
      ['::1', '127.0.0.1'],
      ['127.0.0.9', '127.0.0.1'],
    ]) {
      const from = sender({ resolve: resolvingTo(...addresses), allowedNetworks }, kind);
      expect(await from.send(post(url))).toEqual(responded());
    }
  });
  it('that resolve to anything private are blocked, even beside a public address', async () => {
    const to = await receiver();
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    const result = await sender({ resolve: resolvingTo('8.8.8.8', '10.0.0.1') }, kind).send(post(url));
    expect(result).toEqual({ kind: 'address_blocked', reason: 'private_address', ip: '10.0.0.1' });
  });
  it('that come to point inside after a good attempt are blocked at the next', async () => {
    const to = await receiver((_request, response) => response.writeHead(200, { connection: 'close' }).end());
    let address = '127.0.0.1';
    const from = sender({ resolve: async () => [{ address, family: 4 }] }, kind);
    const url = to.url.replace('127.0.0.1', 'receiver.test');
    expect(await from.send(post(url))).toMatchObject({ kind: 'responded' });
    address = '10.0.0.7';
    expect(await from.send(post(url))).toMatchObject({ kind: 'address_blocked', reason: 'private_address' });
    expect(to.requests).toHaveLength(1);
  });
  it('that resolve to nothing fail as dns', async () => {
    const dns = { kind: 'connection_failed', error: 'dns', ip: null };
    expect(await sender({ resolve: resolvingTo() }, kind).send(post('http://receiver.test/'))).toEqual({
      ...dns,
      detail: 'ENODATA',
    });
    const resolve = () => Promise.reject(Object.assign(new Error(), { code: 'ESERVFAIL' }));
    expect(await sender({ resolve }, kind).send(post('http://receiver.test/'))).toEqual({
      ...dns,
      detail: 'ESERVFAIL',
    });
  });
  it('that take too long to resolve are counted in the limit', async () => {
    const never = sender({ resolve: () => new Promise(() => undefined), timeoutMs: 100 }, kind);
    expect(await never.send(post('http://receiver.test/'))).toEqual({
      kind: 'timed_out',
      isConnected: false,
      ip: null,
    });
  });
  it('IP literals are checked although they are never looked up', async () => {
    const to = await receiver();
    expect(await sender({ allowedNetworks: [] }, kind).send(post(to.url))).toMatchObject({
      kind: 'address_blocked',
      reason: 'local_address',
    });
    expect(to.requests).toHaveLength(0);
  });
  it('IPv6 literals are connected to', async () => {
    const server = createServer((_request, response) => response.writeHead(204).end());
    const port = await listening(server, '::1');
    const from = sender({ allowedNetworks: parseNetworks('::1/128') }, kind);
    expect(await from.send(post(`http://[::1]:${port}/`))).toEqual({ kind: 'responded', statusCode: 204, ip: '::1' });
  });
});

describe.each(senderKinds)('%s: surroundings', (kind) => {
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
    expect(await sender({}, kind).send(post(to.url))).toEqual(responded());
    expect([to.requests.length, proxy.requests.length]).toEqual([1, 0]);
  });
  it('attempts can be aborted', async () => {
    const to = await startMisbehavingReceiver('never answers');
    undo.push(() => to.close());
    const stop = new AbortController();
    const from = sender({ timeoutMs: 60_000, signal: stop.signal }, kind);
    const attempts = [from.send(post(to.url)), from.send(post(to.url))];
    stop.abort();
    expect(await Promise.all(attempts)).toEqual([{ kind: 'aborted' }, { kind: 'aborted' }]);
    expect(await from.send(post(to.url))).toEqual({ kind: 'aborted' });
  });
});

describe('connections of deliveries', () => {
  it('are kept: one after the other, all requests go over one', async () => {
    const to = await receiver();
    const from = sender();
    for (let i = 0; i < 5; i++) expect(await from.send(post(to.url))).toEqual(responded());
    expect(to.connections()).toBe(1);
  });
  it('are not kept by single requests', async () => {
    const to = await receiver();
    const from = sender({}, 'single requests');
    for (let i = 0; i < 2; i++) expect(await from.send(post(to.url))).toEqual(responded());
    expect(to.connections()).toBe(2);
  });
  it('are used for a minute at most, however busy they are', async () => {
    const to = await receiver();
    let nowMs = 0;
    const from = sender({ now: () => nowMs });
    const connectionsAt = async (ms: number) => {
      nowMs = ms;
      await from.send(post(to.url));
      return to.connections();
    };
    expect([await connectionsAt(0), await connectionsAt(30_000), await connectionsAt(59_999)]).toEqual([1, 1, 1]);
    expect([await connectionsAt(60_000), await connectionsAt(119_999), await connectionsAt(120_000)]).toEqual([
      2, 2, 3,
    ]);
  });
  it('follow a name that moves after a minute, and are blocked where it moves inside', async () => {
    const heard: string[] = [];
    const answering = (ip: string) =>
      createServer((_request, response) => {
        heard.push(ip);
        response.writeHead(200).end();
      });
    const port = await listening(answering('127.0.0.1'), '127.0.0.1');
    await listening(answering('127.0.0.2'), '127.0.0.2', port);
    let [address, nowMs] = ['127.0.0.1', 0];
    const from = sender({ resolve: async () => [{ address, family: 4 }], now: () => nowMs });
    const send = () => from.send(post(`http://receiver.test:${port}/`));
    await send();
    address = '127.0.0.2';
    await send();
    nowMs = 60_000;
    expect(await send()).toMatchObject({ kind: 'responded', ip: '127.0.0.2' });
    expect(heard).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.2']);
    address = '10.0.0.7';
    nowMs = 120_000;
    expect(await send()).toMatchObject({ kind: 'address_blocked', ip: '10.0.0.7' });
    expect(heard).toHaveLength(3);
  });
  it('that the receiver closed cost no attempt: the request goes again over a new one', async () => {
    const to = await receiver();
    const from = sender();
    await from.send(post(to.url));
    to.answerWith((_request, response) => {
      if (to.requests.length === 2) response.socket?.resetAndDestroy();
      else response.writeHead(200).end();
    });
    expect(await from.send(post(to.url))).toEqual(responded());
    expect(to.connections()).toBe(2);
  });
  it('to a receiver that resets every request carry it twice at most, however many are kept', async () => {
    const to = await receiver();
    const from = sender();
    await Promise.all(Array.from({ length: 5 }, () => from.send(post(to.url))));
    to.answerWith((_request, response) => void response.socket?.resetAndDestroy());
    const before = to.requests.length;
    expect(await from.send(post(to.url))).toMatchObject({ kind: 'connection_failed', error: 'connection' });
    expect(to.requests.length - before).toBe(2);
  });
  it('are not kept without bound for many hosts', async () => {
    const server = createServer((_request, response) => response.writeHead(200).end());
    const port = await listening(server, '127.0.0.1');
    const from = sender({ resolve: resolvingTo('127.0.0.1') });
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    const sendTo = async (first: number, count: number) => {
      const urls = Array.from({ length: count }, (_, i) => `http://host-${first + i}.test:${port}/`);
      for (const result of await Promise.all(urls.map((url) => from.send(post(url)))))
        expect(result).toEqual(responded());
    };
    for (let first = 0; first < 1_100; first += 100) await sendTo(first, 100);
    expect(connections).toBe(1_100);
    // 1,024 are kept: those that have been idle longest were closed.
    await sendTo(0, 50);
    expect(connections).toBe(1_150);
  });
});

describe('bytes that nobody asked for', () => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  const ERROR = 'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n';

  /** Answers the first request with what a test says, all others with 500. */
  async function startServer(first: string) {
    const sockets: Socket[] = [];
    let requests = 0;
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(requests++ === 0 ? first : ERROR));
    });
    undo.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const closed = (index: number) => new Promise((resolve) => sockets[index]!.once('close', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sockets, closed };
  }

  it('in the same segment as the response: the connection is closed, the next request gets its own response', async () => {
    const server = await startServer(OK + OK);
    const from = sender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it.each([OK, 'HTTP/1.1 100 Continue\r\n\r\n', '\r\n', 'x'])('on an idle connection close it: %j', async (bytes) => {
    const server = await startServer(OK);
    const from = sender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    const closed = server.closed(0);
    server.sockets[0]!.write(bytes);
    await closed;
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it('at the moment of the next request: they are not taken for its response', async () => {
    const server = await startServer(OK);
    const from = sender();
    expect(await from.send(post(server.url))).toEqual(responded(200));
    server.sockets[0]!.write(OK);
    expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(2);
  });
  it('once sent, connections to that receiver are not kept any more', async () => {
    const server = await startServer(OK);
    const from = sender();
    await from.send(post(server.url));
    const closed = server.closed(0);
    server.sockets[0]!.write(OK);
    await closed;
    for (let i = 0; i < 3; i++) expect(await from.send(post(server.url))).toEqual(responded(500));
    expect(server.sockets).toHaveLength(4);
  });
  it('a 408 on a kept connection is about the connection: the request goes again over a new one', async () => {
    let requests = 0;
    const to = await receiver((_request, response) => {
      requests += 1;
      response.writeHead(requests === 2 ? 408 : 200).end();
    });
    const from = sender();
    expect(await from.send(post(to.url))).toEqual(responded(200));
    expect(await from.send(post(to.url))).toEqual(responded(200));
    expect([requests, to.connections()]).toEqual([3, 2]);
  });
  it('a 408 on a new connection is a response', async () => {
    const to = await receiver(408);
    expect(await sender().send(post(to.url))).toEqual(responded(408));
    expect(to.requests).toHaveLength(1);
  });
});

async function listening(server: Server, host: string, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  undo.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
