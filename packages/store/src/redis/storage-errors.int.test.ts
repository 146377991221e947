/** That errors are typed however a command is sent, on a real Redis. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { HUNG_MS, testPrefix, testRedisUrl } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import type { Cluster, Redis } from 'ioredis';
import { connectRedis } from '../index.ts';

const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each([true, false])('a closed connection, joined writes %s', (joinWrites) => {
  let redis: Redis | Cluster;
  beforeEach(async () => {
    redis = connectRedis({ REDIS_URL: testRedisUrl() }, { joinWrites });
    await redis.ping();
    redis.disconnect();
  });
  it('its commands and transactions reject with StorageUnavailable, the cause kept', async () => {
    const error = await rejection(redis.get('x'));
    expect(error).toBeInstanceOf(StorageUnavailable);
    expect(error).toMatchObject({ message: 'Connection is closed.', cause: expect.any(Error) });
    expect(await rejection(redis.multi().get('x').exec())).toBeInstanceOf(StorageUnavailable);
  });
});

it('a duplicate of a connection to a closed port rejects with StorageUnavailable, and emits it', async () => {
  const redis = connectRedis({ REDIS_URL: 'redis://127.0.0.1:1' });
  redis.on('error', () => undefined);
  const duplicate = (redis as Redis).duplicate({ lazyConnect: true });
  const emitted = new Promise((resolve) => duplicate.once('error', resolve));
  const connected = rejection(duplicate.connect());
  expect(await emitted).toBeInstanceOf(StorageUnavailable);
  expect(await emitted).toMatchObject({ code: 'ECONNREFUSED' });
  duplicate.disconnect();
  redis.disconnect();
  expect(await connected).toBeInstanceOf(StorageUnavailable);
});

/** A connection to a server, which numbers them from 0. */
interface Connection {
  number: number;
  socket: Socket;
}

/**
 * Connects to a server that replies to each command as `reply` says, except to those that ioredis sends by itself. The
 * connection and the server end with the test.
 */
async function connectTo(reply: (command: string, connection: Connection) => void) {
  let connections = 0;
  const server = createServer((socket) => {
    const connection = { number: connections++, socket };
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const command of String(chunk)
        .split(/\*\d+\r\n/)
        .slice(1)) {
        if (/\r\n(?:set|eval|evalsha)\r\n/i.test(command)) reply(command, connection);
        else socket.write('$11\r\nloading:0\r\n\r\n');
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const redis = connectRedis({ REDIS_URL: `redis://127.0.0.1:${port}` }, { failFastAfterMs: HUNG_MS }) as Redis;
  redis.on('error', () => undefined);
  atEnd(() => {
    redis.disconnect();
    server.close();
  });
  await once(redis, 'ready');
  return redis;
}

it('a refusal does not say that nothing was changed where the command was sent before, and its reply was lost', async () => {
  const redis = await connectTo((_command, { number, socket }) => {
    if (number === 0) socket.destroy();
    else socket.write("-READONLY You can't write against a read only replica.\r\n");
  });
  const error = await rejection(redis.set('x', '1'));
  expect(error).toMatchObject({ message: expect.stringMatching(/^READONLY /), isRefusal: false });
});

it('nor where it was a script that Redis does not know any more', async () => {
  let scripts = 0;
  const redis = await connectTo((command, { number, socket }) => {
    if (number === 0) socket.destroy();
    else if (/\r\nevalsha\r\n/i.test(command)) socket.write('-NOSCRIPT No matching script.\r\n');
    else socket.write(scripts++ === 0 ? '-BUSY Redis is busy.\r\n' : '-OOM command not allowed.\r\n');
  });
  redis.defineCommand('change', { numberOfKeys: 1, lua: 'return 1' });
  const { change } = redis as unknown as { change: (key: string) => Promise<unknown> };
  const errors = await Promise.all(['x', 'y'].map((key) => rejection(change.call(redis, key))));
  expect(errors).toMatchObject([{ isRefusal: false }, { isRefusal: false }]);
});

it('refusals of a replica close its connection once, however many commands were sent together', async () => {
  const redis = await connectTo((_command, { socket }) => void socket.write('-READONLY a replica.\r\n'));
  const { stream } = redis;
  const [before, closed] = [stream.listenerCount('close'), once(stream, 'close')];
  await Promise.allSettled(Array.from({ length: 20 }, () => redis.set('x', '1')));
  expect(stream.listenerCount('close')).toBeLessThanOrEqual(before + 2);
  await closed;
  await once(redis, 'ready');
});

it('a command on a key of another type rejects with the name of the key', async () => {
  const redis = connectRedis({ REDIS_URL: testRedisUrl() });
  const key = testPrefix();
  await redis.set(key, 'text', 'PX', 10_000);
  const error = await rejection(redis.hgetall(key));
  redis.disconnect();
  expect(error).toMatchObject({ message: expect.stringMatching(`^WRONGTYPE .*\\(hgetall ${key}\\)$`) });
});

it('a command that is wrong in itself rejects with the reply of Redis', async () => {
  const redis = connectRedis({ REDIS_URL: testRedisUrl() });
  const error = await rejection(redis.call('GET'));
  redis.disconnect();
  expect(error).not.toBeInstanceOf(StorageUnavailable);
  expect(error).toMatchObject({ name: 'ReplyError' });
});
