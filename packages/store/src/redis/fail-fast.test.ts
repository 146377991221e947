/** What callers get while Redis loads its data after a restart. */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import type { Redis } from 'ioredis';
import { connectRedis } from './connect-redis.ts';

let isLoading: boolean;
let asked: number;
const sockets = new Set<Socket>();
/** Says for ten minutes that it is about to be ready; confirms every command. */
const server = createServer((socket) => {
  sockets.add(socket);
  socket.on('data', (chunk) => {
    for (const command of chunk
      .toString()
      .split(/\*\d+\r\n/)
      .slice(1)) {
      const info = `loading:${isLoading ? 1 : 0}\r\nloading_eta_seconds:600\r\n`;
      const isInfo = /\r\ninfo\r\n/i.test(command);
      if (isInfo) asked += 1;
      socket.write(isInfo ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
    }
  });
});
let client: Redis;
beforeEach(async () => {
  [isLoading, asked] = [false, 0];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  client = connectRedis({ REDIS_URL: `redis://127.0.0.1:${port}` }, { failFastAfterMs: 50 }) as Redis;
  client.on('error', () => undefined);
});
afterEach(async () => {
  client.disconnect();
  await new Promise((resolve) => server.close(resolve));
});

it('fails commands at once, queues none in memory, and works within a second of the end', async () => {
  await eventually('it to work', async () => (await client.set('key', '1').catch(() => undefined)) === 'OK');
  isLoading = true;
  const askedBefore = asked;
  for (const socket of sockets) socket.destroy();
  await eventually('it to ask whether Redis is ready', () => asked > askedBefore);
  await eventually('commands to fail at once', async () => {
    let message = '';
    client.set('key', '2').catch((error: Error) => {
      message = error.message;
    });
    await new Promise(setImmediate);
    return message === 'Redis is not ready: it loads its data, or does not reply.';
  });
  expect(client.options.maxLoadingRetryTime).toBe(1_000);
  isLoading = false;
  await eventually('it to work', async () => (await client.set('key', '3').catch(() => undefined)) === 'OK');
});

it('says why the connection can not be established', async () => {
  await eventually('it to work', async () => (await client.set('key', '1').catch(() => undefined)) === 'OK');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
    for (const socket of sockets) socket.destroy();
  });
  const refused = `Connection is closed: connect ECONNREFUSED 127.0.0.1:${port}`;
  await eventually('commands to name the reason', async () => {
    const error = await client.set('key', '2').catch((failure: Error) => failure);
    return error instanceof Error && error.message === refused;
  });
});

it('sends nothing behind a command that has failed, also after a reconnect, until Redis keeps up again', async () => {
  const got: string[] = [];
  let owed = '';
  let isSlow = false;
  const slow = createServer((socket) => {
    socket.on('data', (chunk) => {
      const names = chunk
        .toString()
        .split(/\*\d+\r\n/)
        .slice(1);
      for (const name of names) got.push(/\r\n(\w+)\r\n/.exec(name)?.[1] ?? '');
      const replies = names.map((text) => (/\r\ninfo\r\n/i.test(text) ? '$9\r\nloading:0\r\n' : '+OK\r\n')).join('');
      if (isSlow) owed += replies;
      else socket.write(replies);
    });
    latest = socket;
  });
  let latest: Socket | undefined;
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
  const { port } = slow.address() as AddressInfo;
  const client = connectRedis({ REDIS_URL: `redis://127.0.0.1:${port}` }, { failFastAfterMs: 50 }) as Redis;
  client.on('error', () => undefined);
  const messageOf = (sent: Promise<unknown>) => sent.then(String, (error: Error) => error.message);
  try {
    await eventually('it to work', async () => (await messageOf(client.set('key', '1'))) === 'OK');
    isSlow = true;
    expect(await messageOf(client.get('slow'))).toBe('Command timed out');
    got.length = 0;
    expect(await messageOf(client.set('key', '2'))).toBe('Redis has not replied to an earlier command in time.');
    expect(got).not.toContain('set');

    isSlow = false;
    latest?.write(owed);
    await eventually('it to work', async () => (await messageOf(client.set('key', '3'))) === 'OK');

    isSlow = true;
    expect(await messageOf(client.get('slow'))).toBe('Command timed out');
    isSlow = false;
    got.length = 0;
    latest?.destroy();
    await eventually('it to work', async () => (await messageOf(client.set('key', '4'))) === 'OK');
    expect(got).not.toContain('get');
  } finally {
    client.disconnect();
    latest?.destroy();
    await new Promise((resolve) => slow.close(resolve));
  }
});
