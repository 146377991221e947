/** What an open store says about Redis outages, over a gateway to a real Redis. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { DAY_MS, StorageUnavailable } from '@posthorn/core';
import { eventually, testPrefix, testRedisUrl } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { openStore } from '../open-store.ts';

/** A gateway to Redis. While its server is down, it closes each connection after the first bytes, without an error. */
async function startGateway() {
  const { hostname, port } = new URL(testRedisUrl());
  const sockets = new Set<Socket>();
  let isDown = false;
  const gateway = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    if (isDown) {
      socket.once('data', () => socket.end());
      return;
    }
    const redis = connect(Number(port), hostname);
    socket.pipe(redis).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  atEnd(() => gateway.close());
  const url = new URL(testRedisUrl());
  url.host = `127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  return {
    url,
    goDown() {
      isDown = true;
      for (const socket of sockets) socket.end();
    },
    comeBack() {
      isDown = false;
    },
  };
}

async function openStoreBehind({ url, comeBack }: Awaited<ReturnType<typeof startGateway>>) {
  const said: string[] = [];
  const settings = { REDIS_URL: url.href, KEY_PREFIX: testPrefix(), PARTITIONS: 1, RETENTION: DAY_MS };
  const back: string[] = [];
  const opened = openStore(settings, {
    onError: () => undefined,
    onWarning: (text) => said.push(text),
    onRecovery: (text) => back.push(text),
  });
  atEnd(async () => {
    const { redis, prefix } = opened.store;
    comeBack();
    await redis.del(await redis.keys(`${prefix}:*`));
    await opened.stop();
  });
  await opened.start();
  said.length = 0;
  const { redis } = opened.store;
  let closes = 0;
  redis.on('close', () => (closes += 1));
  return { redis, said, back, closes: () => closes, onError: opened.onError };
}

it('each outage has one line, also if Redis only closes connections', async () => {
  const gateway = await startGateway();
  const { redis, said, closes } = await openStoreBehind(gateway);
  const line = `Redis at ${gateway.url.host} can't be used: it closes the connection. Waiting for it.`;
  for (const lines of [[line], [line, line]]) {
    gateway.goDown();
    await eventually('the line', () => said.length === lines.length);
    const before = closes();
    await eventually('further attempts', () => closes() > before + 3);
    expect(said).toEqual(lines);
    gateway.comeBack();
    await redis.ping();
  }
});

it('each outage has a line when it is over, also if only writes were refused', async () => {
  const gateway = await startGateway();
  const { said, back, onError } = await openStoreBehind(gateway);
  const line = `Redis at ${gateway.url.host} can be used again.`;
  gateway.goDown();
  await eventually('the outage', () => said.length === 1);
  expect(back).toEqual([]);
  gateway.comeBack();
  await eventually('the first line', () => back.length === 1);
  onError(new StorageUnavailable("OOM command not allowed when used memory > 'maxmemory'."));
  await eventually('the second line', () => back.length === 2);
  expect(back).toEqual([line, line]);
  expect(said).toHaveLength(2);
});

it('a connection that is closed and back at once is no outage', async () => {
  const gateway = await startGateway();
  const { redis, said, closes } = await openStoreBehind(gateway);
  gateway.goDown();
  gateway.comeBack();
  await eventually('the close', () => closes() === 1);
  await redis.ping();
  expect(said).toEqual([]);
});

it('a master that has become a replica has one line, although each refused write makes a new connection', async () => {
  const { redis, said, onError } = await openStoreBehind(await startGateway());
  for (let write = 0; write < 3; write++) {
    onError(new StorageUnavailable("READONLY You can't write against a read only replica."));
    redis.disconnect(true);
    await once(redis, 'ready');
  }
  expect(said).toEqual([expect.stringContaining("can't be used: READONLY")]);
});
