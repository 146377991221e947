/** Which jobs are found, on a real Redis. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { deliveryIdPrefix } from '@posthorn/core';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import { openTestQueue, testJob } from './test-queue.ts';

let queue: Awaited<ReturnType<typeof openTestQueue>>;
beforeEach(async () => {
  queue = await openTestQueue(1);
});
afterEach(() => queue.close());

const take = (limit: number) =>
  takeFrom(queue.store, { partition: 0, token: 'worker:0', limit }, { lockMs: 30_000, nowMs: Date.now() });

it('the active jobs of an address are found by their ids alone', async () => {
  const { jobQueues, redis } = queue;
  const idOf = (subscriptionId: string, rest: string) => `${deliveryIdPrefix(subscriptionId)}${rest}`;
  const ids = [idOf('sub_a', '1'), idOf('sub_b', '2'), idOf('sub_a', '3')];
  const later = idOf('sub_a', '4');
  await addJobs(jobQueues, 0, [...ids, later].map(testJob));
  await take(ids.length);
  const send = jest.spyOn(redis, 'sendCommand');
  expect((await jobQueues.active(0, 'sub_a')).sort()).toEqual([ids[0], ids[2]].sort());
  expect(send.mock.calls.map(([{ name }]) => name)).toEqual(['lrange']);
  send.mockRestore();
});
