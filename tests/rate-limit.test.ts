/** Rate limits while Redis does not reply, as one master of a Redis Cluster that hangs. */
import { createServer } from 'node:net';
import { expect, it } from '@jest/globals';
import { limitPerSecond } from '@posthorn/http';
import { atEnd, ownClient } from './own.ts';

it('are counted in the process, without a wait for the reply', async () => {
  const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  atEnd(() => silent.close());
  const { port } = silent.address() as { port: number };
  const redis = ownClient({ REDIS_URL: `redis://127.0.0.1:${port}` });
  const limit = limitPerSecond({ redis, keyPrefix: 'limit', perSecond: 2, message: 'two a second' })!;
  const results = await Promise.allSettled(['anna', 'anna', 'anna', 'ben'].map((caller) => limit.consume(caller)));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  expect(results[2]).toMatchObject({ reason: { code: 'too_many_requests', message: 'two a second' } });
});
