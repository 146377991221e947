/** What the cancellation of a bulk replay does with its jobs, on a real Redis. */
import { expect, it } from '@jest/globals';
import { readJobId } from '@posthorn/core';
import { cancelReplay, type FoundJob, loadReplays, stepCancellation } from '@posthorn/store';
import { prefixOfSubscription, queueKey } from '../../store/src/keys.ts';
import { anna, end, failed, replaysIn, run, start } from '../../store/src/replays/test-replays.ts';
import { begin, loadOne, release, store, time } from '../../store/src/test-deliveries.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import { jobQueues, lock, partition, subscriptionId, take } from './test-jobs.ts';

it('leaves one in the queue to a worker, which finds its delivery ended; one that a worker has gets its attempt', async () => {
  await failed(subscriptionId);
  await failed(subscriptionId);
  // The jobs of the failed ones.
  await store.redis.del(queueKey(prefixOfSubscription(store, subscriptionId), 'wait'));
  const replayId = await start(subscriptionId);
  await run(replayId);
  await release('parked', subscriptionId, 2);
  const [next] = await takeFrom(store, { partition, token: 'token', limit: 1 }, lock(undefined));
  const { deliveryId: taken } = readJobId((next as { job: FoundJob }).job.id);
  await cancelReplay(store, replayId, time.nowMs, anna);
  await stepCancellation(store, replayId, time.nowMs);
  expect(await jobQueues.counts()).toMatchObject({ waiting: 1, active: 1 });
  const made = (await replaysIn(subscriptionId)).map(({ id, failureReason }) => [id === taken, failureReason]);
  expect(made.sort()).toEqual([
    [false, 'cancelled'],
    [true, null],
  ]);
  expect(await begin(await take('another'), time.nowMs)).toEqual({ kind: 'over' });
  await end(taken, { kind: 'succeeded' });
  await stepCancellation(store, replayId, time.nowMs);
  expect(await loadOne(taken)).toMatchObject({ status: 'succeeded' });
  expect(await loadReplays(store, [replayId])).toMatchObject([{ outcome: { delivered: 1, cancelled: 1, waiting: 0 } }]);
});
