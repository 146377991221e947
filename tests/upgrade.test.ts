/** Upgrades: this release on what earlier releases left in Redis, and on what it must not touch. */
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { eventually, isDelivery } from '@posthorn/testing';
import { ownApis, ownApps, ownClient, ownProcess, ownReceiver } from './own.ts';
import { complaintsOf } from './processes.ts';
import { redisServer } from './redis-servers.ts';
import { isSigned } from './signed.ts';
import { type Fixture, readFixtures, restoreKeys } from './upgrade/fixture.ts';
import { sampleEvent, worldEnv } from './world.ts';

const APPS = ['ingest', 'worker', 'console'] as const;
/** The data of a fixture are as old as the release, and nothing of it may expire. The longest duration of a setting. */
const FOREVER = '3650d';
/** Fields that depend on the time of the call, and one that depends on `RETENTION`. */
const OF_THE_MOMENT = new Set(['health', 'next_cursor', 'replayable_until']);

/** The end of a rotation is shown until then. */
const isOver = (name: string, value: unknown) =>
  name === 'previous_secret_until' && typeof value === 'string' && Date.parse(value) <= Date.now();

/** Removes what no upgrade has to preserve, and what time has removed since. */
function lasting(view: unknown): unknown {
  if (Array.isArray(view)) return view.map(lasting);
  if (typeof view !== 'object' || view === null) return view;
  return Object.fromEntries(
    Object.entries(view).flatMap(([name, value]) =>
      OF_THE_MOMENT.has(name) || isOver(name, value) ? [] : [[name, lasting(value)]],
    ),
  );
}

/** A Redis with what the release left, and a receiver at the addresses of its subscriptions. */
async function restored(fixture: Fixture) {
  const server = await redisServer();
  const redis = ownClient({ REDIS_URL: server.url });
  await restoreKeys(redis, fixture);
  const to = await ownReceiver();
  const prefix = fixture.env.KEY_PREFIX;
  const env = {
    ...worldEnv(prefix, server.url),
    ...fixture.env,
    LOG_LEVEL: 'info',
    RETENTION: FOREVER,
    RETENTION_SUCCEEDED: FOREVER,
    RELEASE_RATE: '1000',
  };
  /** Moves the addresses to the receiver, since the port of the fixture's may be taken. */
  const moveAddresses = async () => {
    const { origin } = new URL(to.url);
    for (const [name, { id }] of Object.entries(fixture.subscriptions)) {
      for (const key of await redis.keys(`${prefix}:*:subscription:${id}`))
        await redis.hset(key, 'url', `${origin}/${name}`);
    }
  };
  return { redis, to, env, moveAddresses, installation: `${prefix}:installation` };
}

describe.each(readFixtures().map((fixture) => [fixture.release, fixture] as const))('data from %s', (_, fixture) => {
  it('are shown as that release showed them', async () => {
    const { env } = await restored(fixture);
    const { operate } = await ownApis(env);
    for (const [path, body] of Object.entries(fixture.views)) {
      const answer = await operate('GET', path);
      expect([path, answer.status]).toEqual([path, 200]);
      expect({ [path]: lasting(answer.body) }).toMatchObject({ [path]: lasting(body) } as object);
    }
  });

  it('lose nothing: what is owed arrives, what has arrived is not sent again, and the format is raised', async () => {
    const { redis, to, env, moveAddresses, installation } = await restored(fixture);
    await moveAddresses();
    const system = await ownApps(env, { eager: true, worker: { ROLLBACK_WINDOW: '1ms' } });
    for (const name of ['held', 'failing']) {
      const { status } = await system.operate('POST', `/v1/subscriptions/${fixture.subscriptions[name]!.id}/resume`);
      expect(status).toBe(200);
    }
    const got = (name: string) =>
      to.requests
        .filter((one) => isDelivery(one) && one.path === `/${name}`)
        .map(({ headers }) => String(headers['service-event-id']));
    for (const [name, owed] of Object.entries(fixture.owed)) {
      await eventually(`what is owed to ${name}`, () => owed.every((id) => got(name).includes(id)));
    }
    await eventually('all records', async () => {
      const { deliveries } = (await system.operate('GET', '/v1/overview')).body;
      return deliveries.pending + deliveries.waiting_for_retry + deliveries.held === 0;
    });
    for (const [name, arrived] of Object.entries(fixture.arrived)) {
      expect([name, got(name).filter((id) => arrived.includes(id))]).toEqual([name, []]);
    }
    for (const request of to.requests.filter(isDelivery)) {
      const { secrets } = fixture.subscriptions[request.path.slice(1)]!;
      const { headers, body, receivedAtMs } = request;
      const check = (secret: string) =>
        isSigned({ header: String(headers['service-signature']), secret, body, nowS: receivedAtMs / 1000 });
      expect(await Promise.all(secrets.map(check))).toContain(true);
    }

    // Nothing of the earlier release has been seen for long enough.
    await eventually('the newest format', async () => {
      const { current, newest } = (await system.operate('GET', '/v1/overview')).body.format;
      if (current === newest) return true;
      const longAgo = Date.now() - HOUR_MS;
      await redis.hset(installation, { settled_since: longAgo, checked_since: longAgo, looked_at: Date.now() });
      await redis.hdel(installation, 'event_search');
      return false;
    });
    await system.publish(sampleEvent({ id: 'evt_after' }));
    await eventually('a new event', () => got('good').includes('evt_after'));
    for (const app of [system.ingest, system.worker, system.operator]) expect(complaintsOf(app)).toEqual([]);
  });
});

describe('data that are too new', () => {
  it.each(APPS)('make %s refuse to start, with a message and an exit code of its own', async (app) => {
    const { url } = await redisServer();
    await ownClient({ REDIS_URL: url }).hset('posthorn:installation', {
      format: 99,
      partitions: 1,
      raised_by: '7.8.9',
    });
    const refusing = ownProcess(app, { ...worldEnv('posthorn', url), LOG_LEVEL: 'info' });
    expect(await refusing.ended).toBe(78);
    expect(refusing.output.join('\n')).toContain('has stored format 99');
    expect(refusing.output.join('\n')).toContain('Start release 7.8.9 or a later one');
  });
  it.each(APPS)('end %s while it runs', async (app) => {
    const { url } = await redisServer();
    const running = ownProcess(app, { ...worldEnv('posthorn', url), LOG_LEVEL: 'info' });
    await running.ready;
    await ownClient({ REDIS_URL: url }).hset('posthorn:installation', { format: 99, raised_by: '7.8.9' });
    expect(await running.ended).toBe(78);
    expect(running.output.join('\n')).toContain('"msg":"process.must_not_continue"');
  });
});
