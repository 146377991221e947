/**
 * Maintenance: a duty that fails in one partition affects no other duty and no other partition, and operators can see
 * it.
 */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownApps, ownClient, ownEnv, ownReceiver } from './own.ts';
import { sampleEvent } from './world.ts';

type Apps = Awaited<ReturnType<typeof ownApps>>;

/** A receiver and its subscription in the given one of two partitions. */
async function subscribeIn(on: Apps, partition: number) {
  const receiver = await ownReceiver();
  for (;;) {
    const { id } = await on.subscribe(receiver.url);
    if (partitionOf(id, 2) === partition) return { id, receiver };
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
  }
}

async function maintenanceMetrics({ worker }: Apps) {
  const text = await (await fetch(`${(await worker.ready).url}/metrics`)).text();
  const read = (name: string, duty: string) =>
    Number(new RegExp(`^posthorn_maintenance_${name}\\{.*duty="${duty}".*\\} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    errors: (duty: string) => read('errors_total', duty),
    lastSuccess: (duty: string) => read('last_success_timestamp_seconds', duty),
  };
}

it('a duty that always fails in one partition stops no other duty and no other partition, and is reported', async () => {
  const env = ownEnv({ PARTITIONS: '2', RETRY_DELAYS: '1ms' });
  const on = await ownApps(env);
  const redis = ownClient({ REDIS_URL: env.REDIS_URL! });
  const [broken, healthy] = [await subscribeIn(on, 0), await subscribeIn(on, 1)];
  broken.receiver.answerWith(500);
  await on.publish(sampleEvent());
  await eventually('a failed delivery', async () => (await on.deliveries('status=failed')).length === 1);
  broken.receiver.answerWith(200);
  const key = `${env.KEY_PREFIX}:{0}:release_held`;
  await eventually('nothing to release', async () => (await redis.exists(key)) === 0);
  // The duty expects a set: from now on Redis returns WRONGTYPE, in this partition only.
  await redis.set(key, 'not a set');

  // The same duty continues in the other partition.
  await on.operate('POST', `/v1/subscriptions/${healthy.id}/pause`);
  await on.publish(sampleEvent());
  await eventually('a held delivery', async () => (await on.deliveries('status=held')).length === 1);
  await on.operate('POST', `/v1/subscriptions/${healthy.id}/resume`);
  await healthy.receiver.received(2, isDelivery);

  // Other duties continue in the same partition: they run a bulk replay and release its deliveries.
  const before = (await broken.receiver.received(3, isDelivery)).length;
  expect((await on.operate('POST', '/v1/replays', { subscription_id: broken.id })).status).toBe(202);
  await broken.receiver.received(before + 1, isDelivery);

  const during = await maintenanceMetrics(on);
  expect(during.errors('release_held')).toBeGreaterThan(0);
  for (const duty of ['release_parked', 'run_replays', 'rescue_lost_jobs', 'expire_held']) {
    expect([duty, during.errors(duty)]).toEqual([duty, 0]);
  }
  expect(during.lastSuccess('run_replays')).toBeGreaterThan(during.lastSuccess('release_held'));
  const logged = await eventually('a line in the log', () => {
    const found = on.worker.output.filter((line) => line.includes('maintenance.failed'));
    return found.length > 0 && found;
  });
  for (const line of logged) {
    expect(JSON.parse(line)).toMatchObject({ level: 'error', duty: 'release_held', partition: 0 });
    expect(line).toContain('WRONGTYPE');
  }

  await redis.del(key);
  await eventually('the duty to succeed again', async () => {
    const now = await maintenanceMetrics(on);
    return now.lastSuccess('release_held') > during.lastSuccess('run_replays');
  });
});
