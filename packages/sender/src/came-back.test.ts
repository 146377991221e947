/** What is kept of what a receiver sends back. */
import { createServer, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import type { CameBack } from '@posthorn/core';
import { eventually, startMisbehavingReceiver, testCertificate } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { post, resolvingTo, senderKinds, testReceiver, testSender } from './test-sender.ts';

const EXCERPT = 64;
const kept = (url: string) => ({ ...post(url), excerptBytes: EXCERPT });
async function cameBack(
  url: string,
  options: Parameters<typeof testSender>[0],
  kind: Parameters<typeof testSender>[1],
): Promise<CameBack> {
  const { cameBack } = await testSender(options, kind).send(kept(url));
  return cameBack?.() ?? { response: null, connection: null };
}
/** A receiver that responds with these bytes, in pieces that arrive apart. */
async function rawReceiver(...pieces: (string | Buffer)[]): Promise<string> {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      for (const piece of pieces) socket.write(piece);
    });
    atEnd(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}
const raw = (body: string | Buffer, headers = '') =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 500 Oops\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n`),
    Buffer.from(body),
  ]);

describe.each(senderKinds)('%s: what came back', (kind) => {
  it('has the beginning of a body that says it is longer than what is read of one', async () => {
    const { response } = await cameBack(await rawReceiver(raw('E'.repeat(100_000))), {}, kind);
    expect(response).toMatchObject({ body: 'E'.repeat(EXCERPT), isBodyTruncated: true });
  });

  it('has the body, the headers of interest, the IP and the times of a failed response', async () => {
    const receiver = await testReceiver((_request, response) => {
      const headers = { 'content-type': 'application/json', 'retry-after': '120', server: 'sample', 'x-secret': 'no' };
      response.writeHead(500, headers).end('{"error":"database is read-only"}');
    });
    expect(await cameBack(receiver.url, {}, kind)).toEqual({
      response: {
        headers: { 'content-type': 'application/json', 'retry-after': '120', server: 'sample' },
        body: '{"error":"database is read-only"}',
        isBodyTruncated: false,
      },
      connection: {
        ip: '127.0.0.1',
        isReused: false,
        dnsMs: null,
        connectMs: expect.any(Number),
        tlsMs: null,
        firstByteMs: expect.any(Number),
        errorCode: null,
        certificate: null,
      },
    });
  });
  it('is not there unless it is asked for', async () => {
    const receiver = await testReceiver(500);
    expect(await testSender({}, kind).send(post(receiver.url))).not.toHaveProperty('cameBack');
    expect(await testSender({}, kind).send({ ...post(receiver.url), excerptBytes: 0 })).not.toHaveProperty('cameBack');
  });
  it('has the beginning of a longer body, without half a character', async () => {
    const url = await rawReceiver(raw(`${'x'.repeat(EXCERPT - 1)}é and much more`));
    const { response } = await cameBack(url, {}, kind);
    expect(response).toMatchObject({ body: 'x'.repeat(EXCERPT - 1), isBodyTruncated: true });
  });
  it('has no control characters, no invalid text, and never more bytes than were asked for', async () => {
    const url = await rawReceiver(raw('a\x1b[2Jb\r\nc\u202ed\0e'));
    const { response } = await cameBack(url, {}, kind);
    expect(response?.body).toBe('a\ufffd[2Jb\nc\ufffdd\ufffde');
    const binary = await cameBack(await rawReceiver(raw(Buffer.alloc(EXCERPT, 0xff))), {}, kind);
    expect(binary.response?.body).toBe('\ufffd'.repeat(Math.floor(EXCERPT / 3)));
  });
  it('bounds each header', async () => {
    const url = await rawReceiver(raw('', `Location: /${'l'.repeat(4_000)}\r\n`));
    const { response } = await cameBack(url, {}, kind);
    expect(response?.headers.location).toBe(`/${'l'.repeat(255)}`);
  });
  it('leaves out a compressed body', async () => {
    const url = await rawReceiver(raw('garbage', 'Content-Encoding: gzip\r\n'));
    const { response } = await cameBack(url, {}, kind);
    expect(response).toMatchObject({ headers: { 'content-encoding': 'gzip' }, body: '' });
  });
  it('is there for a body that never arrives, and nobody waits for it', async () => {
    const url = await rawReceiver('HTTP/1.1 503 Oops\r\nContent-Length: 100\r\n\r\n');
    const { response } = await cameBack(url, { timeoutMs: 60_000 }, kind);
    expect(response).toEqual({ headers: {}, body: '', isBodyTruncated: true });
  });
  it('is bounded for an endless body', async () => {
    const receiver = await startMisbehavingReceiver('responds for ever');
    atEnd(() => receiver.close());
    const result = await testSender({}, kind).send(kept(receiver.url));
    expect(Buffer.byteLength(result.cameBack?.().response?.body ?? '')).toBeLessThanOrEqual(EXCERPT);
    await receiver.allClosed();
  });
  it('says how long each step took, and has the certificate', async () => {
    const receiver = await testReceiver(500, testCertificate);
    const url = receiver.url.replace('127.0.0.1', 'receiver.test');
    const resolve = resolvingTo('127.0.0.1');
    const { connection } = await cameBack(url, { resolve, ca: testCertificate.cert }, kind);
    const certificate = {
      subject: 'CN=receiver.test',
      issuer: 'CN=receiver.test',
      validToMs: Date.parse('2126-10-28T05:53:13Z'),
    };
    const took = expect.any(Number);
    expect(connection).toMatchObject({ dnsMs: took, connectMs: took, tlsMs: took, firstByteMs: took, certificate });
    // Also the certificate that was refused, with the reason.
    const refused = await cameBack(url, { resolve }, kind);
    expect(refused).toMatchObject({
      response: null,
      connection: { errorCode: 'DEPTH_ZERO_SELF_SIGNED_CERT', firstByteMs: null, certificate },
    });
  });
  it('has the code of an error, and null for the steps that were not reached', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
    const { connection } = await cameBack('http://gone.test/', { resolve }, kind);
    expect(connection).toMatchObject({ ip: null, connectMs: null, tlsMs: null, errorCode: 'ENOTFOUND' });
  });
});

describe('what came back over a kept connection', () => {
  it('has no times of a connection that was opened earlier', async () => {
    const receiver = await testReceiver(500);
    const sender = testSender();
    await sender.send(kept(receiver.url));
    const second = await eventually('a reused connection', async () => {
      const { connection } = (await sender.send(kept(receiver.url))).cameBack?.() ?? {};
      return connection?.isReused && connection;
    });
    expect(second).toMatchObject({ ip: '127.0.0.1', connectMs: null, firstByteMs: expect.any(Number) });
  });
  it('grows while the body arrives after the status', async () => {
    let finish = () => {};
    const receiver = await testReceiver((_request, response) => {
      response.writeHead(500);
      response.flushHeaders();
      finish = () => void response.end('late');
    });
    const result = await testSender().send(kept(receiver.url));
    expect(result.cameBack?.().response).toEqual({ headers: {}, body: '', isBodyTruncated: true });
    finish();
    expect(
      await eventually('the body', async () => result.cameBack?.().response?.isBodyTruncated === false && result),
    ).toMatchObject({ kind: 'responded', statusCode: 500 });
    expect(result.cameBack?.().response?.body).toBe('late');
  });
});
