/**
 * The IPs of a name: how long a sender tries one before it starts with the next, and which of them have to be admitted.
 * Sessions of TLS: for how long they are resumed.
 */
import { X509Certificate } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { startBlackHole, testCertificate } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { listening, post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

const BLACK_HOLE = '127.9.9.9';
/** Node publishes each socket here before it connects. */
const SOCKETS = 'net.client.socket';

describe.each(senderKinds)('%s: a name whose first IP drops packets', (kind) => {
  it('is tried at its next IP after two seconds', async () => {
    const receiver = await testReceiver();
    const hole = await startBlackHole(BLACK_HOLE, receiver.port);
    atEnd(() => hole.close());
    const from = testSender({ resolve: resolvingTo(BLACK_HOLE, '127.0.0.1') }, kind);
    const order: string[] = [];
    const tries = (ip: string) => {
      // Timers that begin in the same step as the limit, in this event loop: they fire in the order in which they are
      // due, however late.
      if (order.push(ip) === 1) for (const ms of [1_900, 2_100]) setTimeout(() => order.push(`${ms} ms`), ms);
    };
    const watch = (message: unknown) => (message as { socket: Socket }).socket.on('connectionAttempt', tries);
    subscribe(SOCKETS, watch);
    atEnd(() => unsubscribe(SOCKETS, watch));
    expect(await from.send(post(receiver.url.replace('127.0.0.1', 'receiver.test')))).toEqual(responded());
    expect(order.slice(0, 3)).toEqual([BLACK_HOLE, '1900 ms', '127.0.0.1']);
  });
});

describe('a name whose first IP refuses connections', () => {
  it.each([true, false])('needs to be admitted at the IP that it is connected to as well: %s', async (isAdmitted) => {
    const receiver = await testReceiver();
    const from = testSender({ resolve: resolvingTo(BLACK_HOLE, '127.0.0.1') });
    const asked: string[] = [];
    const admit = (ip: string) => asked.push(ip) === 1 || isAdmitted;
    const result = await from.send({ ...post(receiver.url.replace('127.0.0.1', 'receiver.test')), admit });
    expect(result).toEqual(isAdmitted ? responded() : { kind: 'not_admitted', ip: '127.0.0.1' });
    expect(asked).toEqual([BLACK_HOLE, '127.0.0.1']);
    expect(receiver.requests).toHaveLength(Number(isAdmitted));
  });
});

describe('an IP as host', () => {
  it.each([true, false])('needs to be admitted before it is connected to: %s', async (isAdmitted) => {
    const receiver = await testReceiver();
    const from = testSender();
    const asked: string[] = [];
    const admit = (ip: string) => asked.push(ip) > 0 && isAdmitted;
    const send = () => from.send({ ...post(receiver.url), admit });
    const result = isAdmitted ? responded() : { kind: 'not_admitted', ip: '127.0.0.1' };
    expect([await send(), await send()]).toEqual([result, result]);
    expect(asked).toEqual(['127.0.0.1', '127.0.0.1']);
    expect(receiver.connections()).toBe(Number(isAdmitted));
  });
});

/** Whether a TLS client's first message offers a session (extension `pre_shared_key` of RFC 8446, 4.2.11). */
function offersSession(hello: Buffer): boolean {
  // Record and message headers, version, random.
  let at = 5 + 4 + 2 + 32;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at) + 2;
  for (; at < hello.length; at += 4 + hello.readUInt16BE(at + 2)) if (hello.readUInt16BE(at) === 41) return true;
  return false;
}

describe('a session of TLS', () => {
  afterEach(() => void jest.restoreAllMocks());

  it('is not offered for ten minutes after a handshake has failed with one', async () => {
    const secure = createServer(testCertificate, (_request, response) => {
      response.writeHead(200, { connection: 'close' }).end();
    });
    const offered: boolean[] = [];
    const server = createTcpServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('readable', () => {
          const hello = (socket.read() as Buffer | null) ?? Buffer.alloc(0);
          offered.push(offersSession(hello));
          // The alert handshake_failure.
          if (offered.at(-1)) return socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 40]));
          socket.unshift(hello);
          return secure.emit('connection', socket);
        });
    });
    const port = await listening(server, '127.0.0.1');
    const from = testSender({ ca: testCertificate.cert });
    const send = () => from.send(post(`https://127.0.0.1:${port}/`));
    expect(await send()).toEqual(responded());
    expect(await send()).toMatchObject({ kind: 'connection_failed', error: 'tls' });
    for (let i = 0; i < 2; i++) expect(await send()).toEqual(responded());
    const nowMs = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs + 590_000);
    expect(await send()).toEqual(responded());
    clock.mockReturnValue(nowMs + 600_000);
    expect(await send()).toMatchObject({ kind: 'connection_failed', error: 'tls' });
    expect(offered).toEqual([false, true, false, false, false, true]);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('is not resumed after the end of its certificate: %s', async (version) => {
    const resumed: boolean[] = [];
    const server = createServer({ ...testCertificate, maxVersion: version }, ({ socket }, response) => {
      resumed.push((socket as TLSSocket).isSessionReused());
      response.writeHead(200, { connection: 'close' }).end();
    });
    const port = await listening(server, '127.0.0.1');
    const from = testSender({ ca: testCertificate.cert });
    const send = () => from.send(post(`https://127.0.0.1:${port}/`));
    await send();
    await send();
    await send();
    const endMs = new X509Certificate(testCertificate.cert).validToDate.getTime();
    jest.spyOn(Date, 'now').mockReturnValue(endMs);
    expect(await send()).toEqual(responded());
    expect(resumed).toEqual([false, true, true, false]);
  });
});
