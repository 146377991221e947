/**
 * Workers that are killed or suspended with attempts in flight, and a Redis that stands still: who makes the attempts,
 * and how often.
 */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownApis, ownClient, ownEnv, ownProcess, ownReceiver } from './own.ts';
import { accepted, redisServer, system } from './redis-servers.ts';
import { sampleEvent } from './world.ts';

const COUNT = 8;

/** Posthorn with one worker that has `COUNT` attempts in flight to a receiver which answers when it is told to. */
async function withAttemptsInFlight() {
  const env = ownEnv({ PARTITIONS: '2', ADDRESS_CONCURRENCY: '40' });
  const apis = await ownApis(env);
  const worker = ownProcess('worker', env);
  await worker.ready;
  const to = await ownReceiver();
  await apis.subscribe(to.url);
  const answer = Promise.withResolvers<void>();
  to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
  await apis.publishBatch(Array.from({ length: COUNT }, () => sampleEvent()));
  await to.received(COUNT, isDelivery);
  const attemptsOf = async (status: string): Promise<number[]> =>
    (await apis.deliveries(`status=${status}&limit=100`)).map((one: { attempt_count: number }) => one.attempt_count);
  const timesSent = () => {
    const times = new Map<string, number>();
    for (const { headers } of to.requests.filter(isDelivery)) {
      const id = String(headers['service-delivery-id']);
      times.set(id, (times.get(id) ?? 0) + 1);
    }
    return [...times.values()];
  };
  return { ...apis, env, worker, to, answer: () => answer.resolve(), attemptsOf, timesSent };
}

describe('attempts in flight in a worker', () => {
  it('that is killed are made again by another one, long before their locks expire, and recorded once', async () => {
    const { env, worker, to, answer, attemptsOf, timesSent } = await withAttemptsInFlight();
    worker.child.kill('SIGKILL');
    await worker.ended;
    const redis = ownClient({ REDIS_URL: env.REDIS_URL! });
    const locks = await redis.keys(`${env.KEY_PREFIX}:*:lock`);
    expect(locks).toHaveLength(COUNT);
    // Were the locks what decides, nobody would ever take the jobs over.
    await Promise.all(locks.map((lock) => redis.persist(lock)));
    const other = ownProcess('worker', env);
    await to.received(2 * COUNT, isDelivery);
    answer();
    await eventually('all records', async () => (await attemptsOf('succeeded')).length === COUNT);
    expect(await attemptsOf('succeeded')).toEqual(Array(COUNT).fill(1));
    expect(timesSent()).toEqual(Array(COUNT).fill(2));
    expect(other.output.join('\n')).toContain('"msg":"jobs.taken_over"');
  });

  it('that is suspended are made by another one; once it goes on it repeats nothing, and takes part again', async () => {
    const { env, worker, to, answer, attemptsOf, timesSent, publishBatch } = await withAttemptsInFlight();
    const other = ownProcess('worker', env);
    await other.ready;
    worker.child.kill('SIGSTOP');
    await to.received(2 * COUNT, isDelivery);
    worker.child.kill('SIGCONT');
    answer();
    await eventually('all records', async () => (await attemptsOf('succeeded')).length === COUNT);
    await publishBatch(Array.from({ length: COUNT }, () => sampleEvent()));
    other.child.kill('SIGTERM');
    expect(await other.ended).toBe(0);
    await eventually('the others', async () => (await attemptsOf('succeeded')).length === 2 * COUNT);
    expect(await attemptsOf('succeeded')).toEqual(Array(2 * COUNT).fill(1));
    expect(timesSent().sort()).toEqual([...Array(COUNT).fill(1), ...Array(COUNT).fill(2)]);
    expect((await attemptsOf('pending')).length).toBe(0);
  });

  it('stay where they are when Redis stands still for longer than a worker may, and are made once', async () => {
    const redis = await redisServer();
    const { publish, deliveries, to, env, worker } = await system({
      REDIS_URL: redis.url,
      ADDRESS_CONCURRENCY: '40',
    });
    const other = ownProcess('worker', env);
    await other.ready;
    const answer = Promise.withResolvers<void>();
    to.answerWith((_request, response) => void answer.promise.then(() => response.end()));
    for (let i = 0; i < COUNT; i++) await accepted(() => publish(sampleEvent()));
    await to.received(COUNT, isDelivery);
    process.kill(redis.pid, 'SIGSTOP');
    // Ingest waits for Redis for 5 s.
    await eventually('Redis to have been away for long', async () => (await publish(sampleEvent())).status === 503);
    process.kill(redis.pid, 'SIGCONT');
    const client = ownClient({ REDIS_URL: redis.url });
    let [checks, lastPttl] = [0, 0];
    await eventually('more checks than a dead worker gets', async () => {
      const pttl = await client.pttl(`${env.KEY_PREFIX}:{0}:working_checked`);
      if (pttl > lastPttl) checks += 1;
      lastPttl = pttl;
      return checks > 6;
    });
    answer.resolve();
    await eventually('all records', async () => (await deliveries('status=pending')).length === 0);
    const ids = to.requests.filter(isDelivery).map(({ headers }) => headers['service-delivery-id']);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { output } of [worker, other]) expect(output.join('\n')).not.toContain('jobs.taken_over');
  });
});
