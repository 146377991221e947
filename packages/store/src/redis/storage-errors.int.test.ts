/** That errors are typed however a command is sent, on a real Redis. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { HUNG_MS, testPrefix, testRedisUrl } from '@posthorn/testing';
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

it('a refusal does not say that nothing was changed where the command was sent before, and its reply was lost', async () => {
  let connections = 0;
  /** Loses the first connection when it gets the command. Later ones are to a master that has become a replica. */
  const server = createServer((socket) => {
    const isFirst = connections++ === 0;
    socket.on('data', (chunk) => {
      const commands = String(chunk).split(/\*\d+\r\n/);
      for (const command of commands.slice(1)) {
        if (!/\r\nset\r\n/i.test(command)) socket.write('$11\r\nloading:0\r\n\r\n');
        else if (isFirst) socket.destroy();
        else socket.write("-READONLY You can't write against a read only replica.\r\n");
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const redis = connectRedis({ REDIS_URL: `redis://127.0.0.1:${port}` }, { failFastAfterMs: HUNG_MS }) as Redis;
  redis.on('error', () => undefined);
  await once(redis, 'ready');
  const error = await rejection(redis.set('x', '1'));
  redis.disconnect();
  expect(error).toMatchObject({ message: expect.stringMatching(/^READONLY /), isRefusal: false });
  await new Promise((resolve) => server.close(resolve));
});

it('refusals of a replica close its connection once, however many commands were sent together', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const command of String(chunk)
        .split(/\*\d+\r\n/)
        .slice(1))
        socket.write(/\r\nset\r\n/i.test(command) ? '-READONLY a replica.\r\n' : '$11\r\nloading:0\r\n\r\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const redis = connectRedis({ REDIS_URL: `redis://127.0.0.1:${port}` }) as Redis;
  redis.on('error', () => undefined);
  await once(redis, 'ready');
  const { stream } = redis;
  const [before, closed] = [stream.listenerCount('close'), once(stream, 'close')];
  await Promise.allSettled(Array.from({ length: 20 }, () => redis.set('x', '1')));
  expect(stream.listenerCount('close')).toBeLessThanOrEqual(before + 2);
  await closed;
  await once(redis, 'ready');
  redis.disconnect();
  await new Promise((resolve) => server.close(resolve));
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
