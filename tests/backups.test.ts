/** What docs/backups.md promises about a Redis that is put back to an earlier moment. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownApps, ownClient, ownDir, ownReceiver } from './own.ts';
import { redisServer } from './redis-servers.ts';
import { isSigned } from './signed.ts';
import { sampleEvent, worldEnv } from './world.ts';

it('a restored backup delivers what was owed then, repeats what was delivered since, and takes again what was published since', async () => {
  const [dir, before] = [ownDir(), await redisServer(['--dbfilename', 'dump.rdb'])];
  const env = { ...worldEnv('posthorn', before.url), LOG_LEVEL: 'info' };
  const system = await ownApps(env);
  const to = await ownReceiver();
  const { id, secret } = await system.subscribe(to.url);
  const publish = async (name: string) => (await system.publish(sampleEvent({ id: name }))).status;
  const got = (name: string) =>
    to.requests.filter((request) => isDelivery(request) && request.headers['service-event-id'] === name).length;
  const isRecorded = (name: string, on = system) =>
    eventually(`the record of ${name}`, async () => {
      const { body } = await on.operate('GET', `/v1/deliveries?event_id=${name}`);
      return body.data?.[0]?.status === 'succeeded';
    });
  expect(await publish('evt_done')).toBe(202);
  await isRecorded('evt_done');
  await system.operate('POST', `/v1/subscriptions/${id}/pause`);
  expect(await publish('evt_owed')).toBe(202);

  const client = ownClient({ REDIS_URL: before.url });
  const [, folder = ''] = (await client.config('GET', 'dir')) as string[];
  await client.save();
  mkdirSync(join(dir, 'backup'));
  copyFileSync(join(folder, 'dump.rdb'), join(dir, 'backup', 'dump.rdb'));

  expect(await publish('evt_after')).toBe(202);
  await system.operate('POST', `/v1/subscriptions/${id}/resume`);
  for (const name of ['evt_owed', 'evt_after']) await isRecorded(name);
  for (const { child, ended } of [system.ingest, system.worker, system.operator]) {
    child.kill('SIGKILL');
    await ended;
  }

  // From the file, as docs/backups.md says: without an append-only file, which is then switched on.
  const restored = await redisServer(['--appendonly', 'no'], { dir: join(dir, 'backup') });
  await ownClient({ REDIS_URL: restored.url }).config('SET', 'appendonly', 'yes');
  const again = await ownApps({ ...env, REDIS_URL: restored.url });
  const { status } = (await again.operate('GET', `/v1/subscriptions/${id}`)).body;
  expect(status).toBe('paused');
  expect((await again.operate('GET', '/v1/events/evt_after')).status).toBe(404);
  await again.operate('POST', `/v1/subscriptions/${id}/resume`);
  await eventually('what was owed, again', () => got('evt_owed') === 2);
  // The publisher repeats what it published since the backup, under the same ids.
  for (const [name, expected] of [
    ['evt_done', 200],
    ['evt_owed', 200],
    ['evt_after', 202],
  ] as const) {
    expect([name, (await again.publish(sampleEvent({ id: name }))).status]).toEqual([name, expected]);
  }
  await isRecorded('evt_after', again);
  await isRecorded('evt_owed', again);
  expect(['evt_done', 'evt_owed', 'evt_after'].map(got)).toEqual([1, 2, 2]);
  for (const { headers, body, receivedAtMs } of to.requests.filter(isDelivery)) {
    const header = String(headers['service-signature']);
    expect(await isSigned({ header, secret, body, nowS: receivedAtMs / 1000 })).toBe(true);
  }
});
