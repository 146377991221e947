/** How batches of spans are sent to a collector, and sent again. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import { httpAgentFactoryFromOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { testCertificate } from '@posthorn/testing';
import { createTransport, type TransportOptions } from './otlp-transport.ts';

const atEnd: (() => void)[] = [];
afterEach(() => {
  for (const close of atEnd.splice(0)) close();
});

const LONG_MS = 60_000;
const BODY = Buffer.from('spans');

async function ownCollector(answer: (response: ServerResponse, i: number) => void, tls?: ServerOptions) {
  const requests: { request: IncomingMessage; body: Buffer }[] = [];
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const i = requests.push({ request, body: Buffer.alloc(0) }) - 1;
    requests[i] = { request, body: await buffer(request) };
    answer(response, i);
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  atEnd.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces?a=b`,
    requests,
  };
}

function ownTransport(url: string, options: Partial<TransportOptions> = {}) {
  const transport = createTransport({
    url,
    headers: async () => ({ 'Content-Type': 'application/x-protobuf', 'x-api-key': 'word' }),
    compression: 'none',
    agentFactory: () => {
      throw new Error('Only https needs certificates.');
    },
    ...options,
  });
  atEnd.push(() => transport.shutdown());
  return transport;
}

describe('the transport of spans', () => {
  it('posts each batch over the same connection and returns the response', async () => {
    const { url, requests } = await ownCollector((response) => response.end('taken'));
    const transport = ownTransport(url);
    for (let i = 0; i < 3; i++)
      expect(await transport.send(BODY, LONG_MS)).toEqual({ status: 'success', data: Buffer.from('taken') });
    for (const { request, body } of requests) {
      expect(request).toMatchObject({
        method: 'POST',
        url: '/v1/traces?a=b',
        headers: { 'content-type': 'application/x-protobuf', 'x-api-key': 'word', 'content-length': '5' },
      });
      expect(body).toEqual(BODY);
    }
    expect(new Set(requests.map(({ request }) => request.socket)).size).toBe(1);
  });

  it('sends the user and the password of the URL', async () => {
    const { url, requests } = await ownCollector((response) => response.end());
    await ownTransport(url.replace('//', '//user:p%40ss@')).send(BODY, LONG_MS);
    expect(requests[0]?.request.headers.authorization).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`);
  });

  it('compresses with gzip', async () => {
    const { url, requests } = await ownCollector((response) => response.end());
    await ownTransport(url, { compression: 'gzip' }).send(BODY, LONG_MS);
    expect(requests[0]?.request.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(requests[0]?.body ?? '')).toEqual(BODY);
  });

  it('sends again what the collector could not take, when it says', async () => {
    const { url, requests } = await ownCollector((response, i) =>
      i === 0 ? response.writeHead(503, { 'retry-after': '0' }).end() : response.end(),
    );
    expect(await ownTransport(url).send(BODY, LONG_MS)).toMatchObject({ status: 'success' });
    expect(requests.map(({ body }) => body)).toEqual([BODY, BODY]);
  });

  it.each([400, 401, 500])('does not send again what the collector refuses with %i', async (status) => {
    const { url, requests } = await ownCollector((response) => response.writeHead(status).end());
    expect(await ownTransport(url).send(BODY, LONG_MS)).toMatchObject({
      status: 'failure',
      error: { message: `The collector answered with status ${status}.` },
    });
    expect(requests).toHaveLength(1);
  });

  it.each([['5'], [new Date(Date.now() + LONG_MS).toUTCString()]])(
    'does not wait beyond the time limit: Retry-After %s',
    async (after) => {
      const { url, requests } = await ownCollector((response) =>
        response.writeHead(429, { 'retry-after': after }).end(),
      );
      expect(await ownTransport(url).send(BODY, 4_000)).toMatchObject({ status: 'retryable' });
      expect(requests).toHaveLength(1);
    },
  );

  it('gives up at the time limit, and goes on with the next batch', async () => {
    const { url } = await ownCollector((response, i) => i > 0 && response.end());
    const transport = ownTransport(url);
    expect(await transport.send(BODY, 50)).toMatchObject({
      status: 'failure',
      error: { message: 'The collector did not answer in time.' },
    });
    expect(await transport.send(BODY, LONG_MS)).toMatchObject({ status: 'success' });
  });

  it('sends again over a new connection when the collector has closed the one before', async () => {
    const { url, requests } = await ownCollector((response, i) => {
      response.end();
      if (i === 0) response.socket?.end();
    });
    const transport = ownTransport(url);
    await transport.send(BODY, LONG_MS);
    expect(await transport.send(BODY, LONG_MS)).toMatchObject({ status: 'success' });
    expect(requests.length).toBeGreaterThanOrEqual(2);
  });

  it('speaks https with the certificates of the settings, also its own', async () => {
    const { key, cert } = testCertificate;
    const { url } = await ownCollector((response) => response.end(), { key, cert, ca: cert, requestCert: true });
    const agentFactory = httpAgentFactoryFromOptions({ key, cert, ca: cert });
    expect(await ownTransport(url, { agentFactory }).send(BODY, LONG_MS)).toMatchObject({ status: 'success' });
    const ofOthers = ownTransport(url, { agentFactory: httpAgentFactoryFromOptions({ key, cert }) });
    expect(await ofOthers.send(BODY, 500)).toMatchObject({
      status: 'failure',
      error: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    });
    const withoutOwn = ownTransport(url, { agentFactory: httpAgentFactoryFromOptions({ ca: cert }) });
    // Whether the refusal is read depends on what comes first, the alert or the end of the connection.
    expect((await withoutOwn.send(BODY, 500)).status).not.toBe('success');
  });

  it('says that nobody is there', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    // Shorter than the first wait before it is sent again.
    expect(await ownTransport(`http://127.0.0.1:${port}`).send(BODY, 500)).toMatchObject({
      status: 'retryable',
      error: { code: 'ECONNREFUSED' },
    });
  });

  it('does not read a response without end', async () => {
    const { url } = await ownCollector((response) => {
      const write = () =>
        response.write(Buffer.alloc(1024 * 1024)) ? setImmediate(write) : response.once('drain', write);
      write();
    });
    expect(await ownTransport(url).send(BODY, LONG_MS)).toMatchObject({
      status: 'failure',
      error: { message: 'The response of the collector is too large.' },
    });
  });
});
