/** Both senders against receivers that use TLS to keep this process busy. */
import type { AddressInfo, Socket } from 'node:net';
import tls, { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { describe, expect, it } from '@jest/globals';
import { rsaTestCertificate, testCertificate } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { post, senderKinds, testSender } from './test-sender.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const { cert: ca } = testCertificate;

// Otherwise the server of the test takes its own renegotiations for an attack.
Object.assign(tls, { CLIENT_RENEG_LIMIT: Number.POSITIVE_INFINITY });

/** Starts a server that calls `onRequest` once a request has begun to arrive; resolves with its URL. */
async function startTls(onRequest: (socket: TLSSocket) => void, options: TlsOptions = {}): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer({ ...testCertificate, ...options }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => onRequest(socket));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe.each(senderKinds)('%s: a receiver over TLS', (kind) => {
  it('cannot choose a modulus that takes a second of CPU: there is no key exchange over finite fields', async () => {
    const url = await startTls((socket) => socket.end(OK), {
      ...rsaTestCertificate,
      dhparam: 'auto',
      maxVersion: 'TLSv1.2',
      ciphers: 'DHE',
    });
    expect(await testSender({ ca: rsaTestCertificate.cert }, kind).send(post(url))).toMatchObject({
      kind: 'connection_failed',
      error: 'tls',
    });
  });
  it.each([
    ['may change its keys', 20, { kind: 'responded', statusCode: 200 }],
    ['is cut off when it changes them again and again', 200, { kind: 'connection_failed', error: 'tls' }],
  ])('%s', async (_title, times, outcome) => {
    const url = await startTls(
      (socket) => {
        let changes = 0;
        const change = () => {
          changes += 1;
          if (changes > times) socket.end(OK);
          else socket.renegotiate({}, change);
        };
        change();
      },
      { maxVersion: 'TLSv1.2' },
    );
    expect(await testSender({ ca }, kind).send(post(url))).toMatchObject(outcome);
  });
  it('is cut off when its response comes in too many records', async () => {
    const url = await startTls((socket) => {
      const text = `HTTP/1.1 102 Processing\r\nA: ${'a'.repeat(2_000)}\r\n\r\n${OK}`;
      let at = 0;
      const next = () => {
        if (at < text.length) socket.write(text.charAt(at++), next);
      };
      next();
    });
    expect(await testSender({ ca }, kind).send(post(url))).toMatchObject({
      kind: 'connection_failed',
      error: 'connection',
      detail: 'TOO_MANY_CHUNKS',
    });
  });
});
