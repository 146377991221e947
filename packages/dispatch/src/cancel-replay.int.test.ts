/** What the cancellation of a bulk replay does with its jobs, on a real Redis. */
import { expect, it } from '@jest/globals';
import { readJobId } from '@posthorn/core';
import { cancelReplay, type FoundJob, loadReplays } from '@posthorn/store';
import { prefixOfSubscription, queueKey } from '../../store/src/keys.ts';
import { anna, end, failed, replaysIn, run, start } from '../../store/src/replays/test-replays.ts';
import { loadOne, release, store, time } from '../../store/src/test-deliveries.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import { stepCancellation } from './cancel-replay.ts';
import { jobQueues, lock, partition, subscriptionId } from './test-jobs.ts';

it('removes them, and ends their deliveries, but for those that a worker has: these get their attempt', async () => {
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
  await stepCancellation({ store, jobQueues }, replayId, time.nowMs);
  expect(await jobQueues.counts()).toMatchObject({ waiting: 0, active: 1 });
  const made = (await replaysIn(subscriptionId)).map(({ id, failureReason }) => [id === taken, failureReason]);
  expect(made.sort()).toEqual([
    [false, 'cancelled'],
    [true, null],
  ]);
  await end(taken, { kind: 'succeeded' });
  await stepCancellation({ store, jobQueues }, replayId, time.nowMs);
  expect(await loadOne(taken)).toMatchObject({ status: 'succeeded' });
  expect(await loadReplays(store, [replayId])).toMatchObject([{ outcome: { delivered: 1, cancelled: 1, waiting: 0 } }]);
});
