/** Waiting for the Redis of an earlier run, which may still load its data. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from '@jest/globals';
import { answersOnceLoaded } from './server.ts';

it.each([
  ['loads first', ['-LOADING Redis is loading the dataset in memory\r\n', '+PONG\r\n'], true],
  ['asks for a password', ['-NOAUTH Authentication required.\r\n'], true],
  ['refuses', ['HTTP/1.1 400 Bad Request\r\n'], false],
])('says whether a program that %s is a Redis', async (_, replies, isRedis) => {
  let pings = 0;
  const server = createServer((socket) => {
    socket.once('data', () => socket.end(replies[Math.min(pings++, replies.length - 1)]!));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  expect(await answersOnceLoaded((server.address() as AddressInfo).port)).toBe(isRedis);
  server.close();
});

it('says that nothing listens there', async () => {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  expect(await answersOnceLoaded(port)).toBe(false);
});
