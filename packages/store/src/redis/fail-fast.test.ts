/** What callers get while Redis loads its data after a restart, is away, or is slow. */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { StorageUnavailable } from '@posthorn/core';
import { eventually } from '@posthorn/testing';
import { Cluster, type Redis } from 'ioredis';
import { connectRedis } from './connect-redis.ts';
import { execAll } from './exec-all.ts';

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

/** Replies with the last argument, and owes its replies while it is slow. As a Cluster, it is the only server. */
async function slowServer() {
  const sockets = new Map<Socket, string>();
  const got: string[] = [];
  let isSlow = false;
  let node = '';
  const replyTo = (command: string): string => {
    if (/\r\nslots\r\n/i.test(command)) return `*1\r\n*3\r\n:0\r\n:16383\r\n${node}`;
    return /\r\ninfo\r\n/i.test(command) ? '$9\r\nloading:0\r\n' : `+${command.trimEnd().split('\r\n').at(-1)}\r\n`;
  };
  const slow = createServer((socket) => {
    sockets.set(socket, '');
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      const commands = chunk
        .toString()
        .split(/\*\d+\r\n/)
        .slice(1);
      for (const command of commands) got.push(/\r\n(\w+)\r\n/.exec(command)?.[1] ?? '');
      const replies = commands.map(replyTo).join('');
      if (isSlow) sockets.set(socket, (sockets.get(socket) ?? '') + replies);
      else socket.write(replies);
    });
  });
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
  const { port } = slow.address() as AddressInfo;
  node = `*3\r\n$9\r\n127.0.0.1\r\n:${port}\r\n$40\r\n${'0'.repeat(40)}\r\n`;
  return {
    port,
    got,
    beSlow() {
      got.length = 0;
      isSlow = true;
    },
    keepUp() {
      isSlow = false;
      for (const [socket, owed] of sockets) {
        socket.write(owed);
        sockets.set(socket, '');
      }
    },
    breakOff() {
      isSlow = false;
      for (const socket of sockets.keys()) socket.destroy();
    },
    close: () => new Promise((resolve) => slow.close(resolve)),
  };
}

describe.each([
  ['one Redis', (port: number) => ({ REDIS_URL: `redis://127.0.0.1:${port}` })],
  [
    'a Cluster',
    (port: number) => ({ REDIS_URL: 'redis://localhost', REDIS_CLUSTER_NODES: [{ host: '127.0.0.1', port }] }),
  ],
])('a slow server of %s', (_, settingsOf) => {
  let slow: Awaited<ReturnType<typeof slowServer>>;
  let redis: Redis | Cluster;
  beforeEach(async () => {
    slow = await slowServer();
    redis = connectRedis(settingsOf(slow.port), { failFastAfterMs: 50 });
    redis.on('error', () => undefined);
    await works();
  });
  afterEach(async () => {
    redis.disconnect();
    slow.breakOff();
    await slow.close();
  });
  const messageOf = (sent: Promise<unknown>) => sent.then(String, (error: Error) => error.message);
  const works = () => eventually('it to work', async () => (await messageOf(redis.set('key', '1'))) === '1');
  const owes = 'Redis has not replied to an earlier command in time.';

  it('gets nothing behind a command that has failed, also after a reconnect, until it keeps up again', async () => {
    slow.beSlow();
    expect(await messageOf(redis.get('slow'))).toBe('Command timed out');
    expect(await messageOf(redis.set('key', '2'))).toBe(owes);
    expect(slow.got).not.toContain('set');

    slow.keepUp();
    await works();

    slow.beSlow();
    expect(await messageOf(redis.get('slow'))).toBe('Command timed out');
    slow.got.length = 0;
    slow.breakOff();
    await works();
    expect(slow.got).not.toContain('get');
  });

  it('gets no transaction behind one that has failed, nor that one after a reconnect; no reply is mistaken', async () => {
    const change = () => execAll(redis.multi().hset('key', 'field', '5').pexpire('key', '6')).then(String);
    slow.beSlow();
    expect(await messageOf(change())).toBe('Command timed out');
    await eventually('another one to be refused', async () => (await messageOf(change())) === owes);
    slow.got.length = 0;
    expect(await messageOf(change())).toBe(owes);
    expect(await messageOf(redis.set('key', '2'))).toBe(owes);
    expect(slow.got).toEqual([]);
    slow.breakOff();
    await works();
    expect(slow.got).not.toContain('multi');
    const replies = await eventually('replies to all in time', async () => {
      const messages = await Promise.all([redis.get('a'), change(), redis.get('b')].map(messageOf));
      return messages.every((message) => message !== 'Command timed out' && message !== owes) && messages;
    });
    expect(replies).toEqual(['a', expect.any(String), 'b']);
  });

  it('gets nothing behind a command to it alone either, which fails in time like all others', async () => {
    const [server] = redis instanceof Cluster ? redis.nodes() : [redis];
    slow.beSlow();
    expect(await messageOf(server!.time())).toBe('Command timed out');
    expect(await messageOf(redis.set('key', '2'))).toBe(owes);
    expect(slow.got).not.toContain('set');
  });
});

it('says of a command that was never sent that nothing was changed', async () => {
  const slow = await slowServer();
  const redis = connectRedis({ REDIS_URL: `redis://127.0.0.1:${slow.port}` }, { failFastAfterMs: 50 }) as Redis;
  redis.on('error', () => undefined);
  const failureOf = (sent: Promise<unknown>) => sent.catch((error: unknown) => error);
  try {
    await eventually('it to work', async () => (await failureOf(redis.set('key', '1'))) === '1');
    slow.beSlow();
    expect(await failureOf(redis.set('key', '2'))).toMatchObject({ message: 'Command timed out', isRefusal: false });
    expect(await failureOf(redis.set('key', '3'))).toMatchObject({
      message: 'Redis has not replied to an earlier command in time.',
      isRefusal: true,
    });
    const closed = slow.close();
    slow.breakOff();
    await closed;
    await eventually('it to be away', async () => {
      const { message, isRefusal } = (await failureOf(redis.set('key', '4'))) as StorageUnavailable;
      return isRefusal && message.startsWith('Connection is closed: connect ECONNREFUSED');
    });
  } finally {
    redis.disconnect();
  }
});
