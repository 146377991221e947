/** Which addresses both senders connect to: each address of a name is checked at the moment it is used. */
import { createServer } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { parseNetworks } from './index.ts';
import { listening, post, resolvingTo, responded, senderKinds, testReceiver, testSender } from './test-sender.ts';

describe.each(senderKinds)('%s: names', (kind) => {
  it('are connected to at the address that was checked', async () => {
    const receiver = await testReceiver();
    const url = receiver.url.replace('127.0.0.1', 'receiver.test');
    expect(await testSender({ resolve: resolvingTo('127.0.0.1') }, kind).send(post(url))).toEqual(responded());
  });
  it('are reached if only one of their addresses responds', async () => {
    const receiver = await testReceiver();
    const url = receiver.url.replace('127.0.0.1', 'receiver.test');
    const allowedNetworks = parseNetworks('127.0.0.0/8,::1/128');
    for (const addresses of [
      ['::1', '127.0.0.1'],
      ['127.0.0.9', '127.0.0.1'],
    ]) {
      const from = testSender({ resolve: resolvingTo(...addresses), allowedNetworks }, kind);
      expect(await from.send(post(url))).toEqual(responded());
    }
  });
  it('are blocked if any of their addresses is private', async () => {
    const receiver = await testReceiver();
    const url = receiver.url.replace('127.0.0.1', 'receiver.test');
    const result = await testSender({ resolve: resolvingTo('8.8.8.8', '10.0.0.1') }, kind).send(post(url));
    expect(result).toEqual({ kind: 'address_blocked', reason: 'private_address', ip: '10.0.0.1' });
  });
  it('are blocked at the next attempt when they move to a private address', async () => {
    const receiver = await testReceiver((_request, response) => response.writeHead(200, { connection: 'close' }).end());
    let address = '127.0.0.1';
    const from = testSender({ resolve: async () => [{ address, family: 4 }] }, kind);
    const url = receiver.url.replace('127.0.0.1', 'receiver.test');
    expect(await from.send(post(url))).toMatchObject({ kind: 'responded' });
    address = '10.0.0.7';
    expect(await from.send(post(url))).toMatchObject({ kind: 'address_blocked', reason: 'private_address' });
    expect(receiver.requests).toHaveLength(1);
  });
  it('fail as dns if they do not resolve', async () => {
    const dns = { kind: 'connection_failed', error: 'dns', ip: null };
    expect(await testSender({ resolve: resolvingTo() }, kind).send(post('http://receiver.test/'))).toEqual({
      ...dns,
      detail: 'ENODATA',
    });
    const resolve = () => Promise.reject(Object.assign(new Error(), { code: 'ESERVFAIL' }));
    expect(await testSender({ resolve }, kind).send(post('http://receiver.test/'))).toEqual({
      ...dns,
      detail: 'ESERVFAIL',
    });
  });
  it('time out if they take longer to resolve than the limit of an attempt', async () => {
    const never = testSender({ resolve: () => new Promise(() => undefined), timeoutMs: 100 }, kind);
    expect(await never.send(post('http://receiver.test/'))).toEqual({
      kind: 'timed_out',
      isConnected: false,
      ip: null,
    });
  });
  it('are checked if they are IP literals, which are never looked up', async () => {
    const receiver = await testReceiver();
    expect(await testSender({ allowedNetworks: [] }, kind).send(post(receiver.url))).toMatchObject({
      kind: 'address_blocked',
      reason: 'local_address',
    });
    expect(receiver.requests).toHaveLength(0);
  });
  it('may be IPv6 literals', async () => {
    const server = createServer((_request, response) => response.writeHead(204).end());
    const port = await listening(server, '::1');
    const from = testSender({ allowedNetworks: parseNetworks('::1/128') }, kind);
    expect(await from.send(post(`http://[::1]:${port}/`))).toEqual({ kind: 'responded', statusCode: 204, ip: '::1' });
  });
});
