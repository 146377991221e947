/** The duty that gives lost jobs back: what it finds, and how much a run looks at. */
import { expect, it } from '@jest/globals';
import { deliveryIdPrefix, HOUR_MS, MINUTE_MS } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { addressesToRelease, countStored, partitionPrefix } from '@posthorn/store';
import {
  jobQueues,
  make,
  neighbour,
  partition,
  subscriptionId,
  take,
  takeOne,
} from '../../../../packages/dispatch/src/test-jobs.ts';
import { createEndings } from '../../../../packages/queue/src/endings.ts';
import { attempt, event, loadOne, loseJob, store, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { rescueLostJobs } from './rescue-lost-jobs.ts';

const logger = createLogger({ app: 'test', level: 'silent' });
const duty = () =>
  rescueLostJobs({ store, jobQueues, clock: { now: () => time.nowMs }, logger, jobExpectedAfterMs: 1 } as DutyContext);
const key = (name: string) => `${partitionPrefix(store, partition)}:${name}`;

/** Pending deliveries made before now, all in one millisecond, without jobs; their ids are in this order. */
async function madeBefore(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => deliveryIdPrefix(subscriptionId) + String(i).padStart(5, '0'));
  const pipeline = store.redis.pipeline();
  for (const id of ids) {
    pipeline.hset(key(`delivery:${id}`), {
      st: '0',
      e: 'evt_1/s',
      s: subscriptionId,
      k: '0',
      c: time.nowMs - 1,
      n: '0',
    });
    pipeline.zadd(key('by_status:pending'), time.nowMs - 1, id);
  }
  await pipeline.exec();
  return ids;
}
async function lose(to = subscriptionId): Promise<string> {
  const lost = await make(event(), to);
  await loseJob(lost);
  time.nowMs += 1;
  return lost;
}
const isRescued = async (id: string) => (await loadOne(id)).generation === 1;
async function expectRescuedBySecondRun(lost: string): Promise<void> {
  const rescuing = duty();
  await rescuing.run(partition);
  expect(await isRescued(lost)).toBe(false);
  await rescuing.run(partition);
  expect(await isRescued(lost)).toBe(true);
}
const park = async (ids: readonly string[], lane: 'parked' | 'overdue' = 'parked') =>
  await store.redis.zadd(key(`${lane}:${subscriptionId}`), ...ids.flatMap((id) => ['1', id]));

it('rescues the others where records are not as they must be, and fails with the name of the first', async () => {
  const broken = [await lose(), await lose(), await lose()] as const;
  const lost = await lose();
  await store.redis.hdel(key(`delivery:${broken[0]}`), 's');
  await store.redis.del(key(`delivery:${broken[1]}`));
  await store.redis.set(key(`delivery:${broken[1]}`), 'of another type');
  await store.redis.hset(key(`delivery:${broken[2]}`), 'g', 'no number');
  await expect(duty().run(partition)).rejects.toThrow(`Could not rescue ${broken[0]}: ERR `);
  expect(await isRescued(lost)).toBe(true);
});

it('takes deliveries whose record was deleted out of the counts of what waits, and of its age', async () => {
  const [pending, retried] = [await make(), await make()];
  await attempt(retried, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 300_000 });
  for (const id of [pending, retried]) await store.redis.del(key(`delivery:${id}`));
  time.nowMs += 60_000;
  await make();
  time.nowMs += 2;
  await duty().run(partition);
  expect(await countStored(store, time.nowMs)).toMatchObject({
    deliveries: { pending: 1, waiting_for_retry: 0 },
    oldestPendingAgeMs: 2,
  });
});

it('gives a delivery whose first job is lost another one in the queue; one that has its job gets no other', async () => {
  await make();
  const lost = await lose();
  await duty().run(partition);
  await duty().run(partition);
  await takeOne('a');
  expect(await takeOne('b')).toMatchObject({ job: { id: `${lost}.1` } });
  expect(await store.redis.llen(key('deliveries:wait'))).toBe(0);
});

it('delays the new job until the retry is due', async () => {
  const deliveryId = await make();
  const dueAtMs = time.nowMs + 300_000;
  await attempt(deliveryId, 1, { kind: 'retry', nextAttemptAtMs: dueAtMs });
  await loseJob(deliveryId);
  time.nowMs += 1;
  await duty().run(partition);
  expect(await takeOne('a')).toEqual({ dueAtMs });
  time.nowMs = dueAtMs;
  expect(await takeOne('b')).toMatchObject({ job: { id: `${deliveryId}.1` } });
  expect(await loadOne(deliveryId)).toMatchObject({ status: 'waiting_for_retry', generation: 1 });
});

/** Makes a delivery, and ends its job without a record of its attempt, as after a failover that has lost the record. */
async function makeAndSettle(outcome: Parameters<ReturnType<typeof createEndings>['settle']>[3]): Promise<string> {
  const onError = (error: unknown) => Promise.reject(error);
  const partitionPrefixes = [partitionPrefix(store, partition)];
  const endings = createEndings({ redis: store.redis, partitionPrefixes, lockMs: 1, stalledCheckMs: 1, onError });
  await endings.ready();
  const deliveryId = await make();
  await take('a');
  await endings.settle(0, deliveryId, 'a', outcome);
  await endings.close();
  time.nowMs += 1;
  return deliveryId;
}

it('gives another job to a delivery that waits, but whose job is kept as failed', async () => {
  const deliveryId = await makeAndSettle({ kind: 'failed', reason: 'timeout' });
  await duty().run(partition);
  expect(await takeOne('b')).toMatchObject({ job: { id: `${deliveryId}.1` } });
});

it('gives another job to a delivery that is due, but whose job is delayed as for a late retry', async () => {
  const retry = { kind: 'retry', endedAtMs: Date.now(), delayMs: 12 * HOUR_MS, reason: 'timeout' } as const;
  const deliveryId = await makeAndSettle(retry);
  time.nowMs = Date.now();
  await duty().run(partition);
  expect(await takeOne('b')).toMatchObject({ job: { id: `${deliveryId}.1` } });
  expect(await store.redis.exists(key(`deliveries:${deliveryId}`))).toBe(0);
  expect(await store.redis.zcard(key('deliveries:delayed'))).toBe(0);
});

it('leaves a job that comes back soon, because its delivery could not be attempted', async () => {
  const untilMs = Date.now() + 15 * MINUTE_MS;
  const deliveryId = await makeAndSettle({ kind: 'snoozed', untilMs });
  time.nowMs = Date.now();
  await duty().run(partition);
  expect(await isRescued(deliveryId)).toBe(false);
});

it('looks for the job of the generation that a delivery has', async () => {
  const lost = await lose();
  await duty().run(partition);
  await store.redis.set(key(`deliveries:${lost}`), 'job');
  await store.redis.del(key(`deliveries:${lost}.1`));
  await duty().run(partition);
  expect((await loadOne(lost)).generation).toBe(2);
});

it('passes over 5,000 parked or overdue deliveries in a run', async () => {
  const ids = await madeBefore(5_000);
  await park(ids.slice(0, 2_500));
  await park(ids.slice(2_500), 'overdue');
  const lost = await lose();
  await expectRescuedBySecondRun(lost);
  expect(await store.redis.llen(key('deliveries:wait'))).toBe(1);
});

it.each(['parked', 'overdue'] as const)(
  'releases a lane of %s deliveries whose address was lost from the set',
  async (lane) => {
    const [id] = await madeBefore(1);
    await park([id!], lane);
    await duty().run(partition);
    expect(await addressesToRelease(store, partition, lane)).toEqual([subscriptionId]);
  },
);

it('looks for 500 jobs in a run', async () => {
  const ids = await madeBefore(500);
  for (const id of ids) await store.redis.set(key(`deliveries:${id}`), 'job');
  const lost = await lose();
  await expectRescuedBySecondRun(lost);
});

it('goes on although the delivery that it looked at last is gone', async () => {
  const ids = await madeBefore(5_001);
  await park(ids);
  const rescuing = duty();
  await rescuing.run(partition);
  await store.redis.zrem(key('by_status:pending'), ids[4_999]!);
  time.nowMs += 1;
  const lost = await lose(await neighbour());
  await rescuing.run(partition);
  await rescuing.run(partition);
  expect(await isRescued(lost)).toBe(true);
});

it('does not take a delivery for parked whose id begins like those of another address', async () => {
  const ids = await madeBefore(2);
  await park(ids.slice(0, 1));
  await store.redis.hset(key(`delivery:${ids[1]}`), 's', 'sub_other');
  await duty().run(partition);
  const generations = ids.map((id) => store.redis.hget(key(`delivery:${id}`), 'g'));
  expect(await Promise.all(generations)).toEqual([null, '1']);
});
