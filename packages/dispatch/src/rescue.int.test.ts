/** A delivery whose job is gone gets another one, on a real Redis. */
import { expect, it } from '@jest/globals';
import { attempt, deliver, loadOne, store, time } from '../../store/src/test-deliveries.ts';
import { rescue } from './rescue.ts';
import { jobQueues, make, partition, subscriptionId, takeOne } from './test-jobs.ts';

const rescueAll = async (status: 'pending' | 'waiting_for_retry') =>
  await rescue({ store, jobQueues }, partition, status, { beforeMs: time.nowMs, offset: 0, limit: 10 }, time.nowMs);

it('waits in the queue if its first attempt is missing; one that has its job gets no other', async () => {
  await make();
  const [lost] = await deliver([subscriptionId]);
  time.nowMs += 1;
  expect(await rescueAll('pending')).toEqual({ rescued: 1, next: undefined });
  expect(await rescueAll('pending')).toEqual({ rescued: 0, next: undefined });
  await takeOne('a');
  expect(await takeOne('b')).toMatchObject({ job: { id: `${lost!.deliveryId}.1` } });
});

it('is delayed until its retry is due', async () => {
  const [{ deliveryId } = { deliveryId: '' }] = await deliver([subscriptionId]);
  const dueAtMs = time.nowMs + 300_000;
  await attempt(deliveryId, 1, { kind: 'retry', delayMs: 300_000, nextAttemptAtMs: dueAtMs });
  time.nowMs += 1;
  expect(await rescueAll('waiting_for_retry')).toEqual({ rescued: 1, next: undefined });
  expect(await takeOne('a')).toEqual({ dueAtMs });
  time.nowMs = dueAtMs;
  expect(await takeOne('b')).toMatchObject({ job: { id: `${deliveryId}.1` } });
  expect(await loadOne(deliveryId)).toMatchObject({ status: 'waiting_for_retry', generation: 1 });
});
