/**
 * While Posthorn can reach nothing, no attempt is counted and no address is paused; a dead name or host among healthy
 * ones still is.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@posthorn/core';
import { overviewSchema } from '@posthorn/operator-api';
import { createSecretBox, newSigningSecret } from '@posthorn/signing';
import { newSubscription, saveSubscription } from '@posthorn/store';
import {
  eventually,
  fakeClock,
  isDelivery,
  type NameAnswer,
  problemsOf,
  type Receiver,
  startBlackHole,
  startNameServer,
} from '@posthorn/testing';
import { atEnd, ownReceiver, ownStore, ownWorld } from '../own.ts';
import { ENCRYPTION_KEY, sampleEvent, type World, type WorldOptions } from '../world.ts';

const ADDRESSES = 200;
const NOTICE_SECRET = 'a-secret-for-notices-0123456789';
const many = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A world whose name server responds with `names.answer`, which a test may replace. */
async function namedWorld(answer: (name: string) => NameAnswer, options: WorldOptions = {}) {
  const names = { answer };
  const server = await startNameServer((name) => names.answer(name));
  atEnd(() => server.close());
  const notices = await ownReceiver();
  const world = await ownWorld({
    ...options,
    env: {
      DNS_SERVERS: server.address,
      // All names lead to this machine, so the limit per host must not apply.
      HOST_CONCURRENCY: '100',
      NOTICE_URL: notices.url,
      NOTICE_SECRET,
      ...options.env,
    },
  });
  const noticesOf = (prefix: string) =>
    notices.requests.map(({ body }) => JSON.parse(body)).filter(({ type }) => type.startsWith(prefix));
  return { world, names, noticesOf };
}

/** Active subscriptions, written directly to the store: through the API a thousand would take half a minute. */
async function subscribeAll(
  world: World,
  urls: readonly string[],
  eventType: 'session.approved' | 'session.declined' = 'session.approved',
): Promise<string[]> {
  const store = await ownStore(world);
  const box = createSecretBox([Buffer.from(ENCRYPTION_KEY, 'base64')]);
  return await Promise.all(
    urls.map(async (url) => {
      const eventTypes = [eventType];
      const one = newSubscription(
        { url, eventTypes, environment: 'both', description: '', sealedSecret: '' },
        Date.now() - 2 * HOUR_MS,
      );
      const sealedSecret = box.seal(newSigningSecret(), one.id);
      await saveSubscription(store, { ...one, sealedSecret, status: 'active', takesEvents: true });
      return one.id;
    }),
  );
}

/** A receiver that keeps no connection open: every delivery needs a lookup and a connection. */
const closingReceiver = () =>
  ownReceiver((_request, response) => response.writeHead(200, { connection: 'close' }).end());

async function metric(world: World, name: string): Promise<number> {
  const text = await (await fetch(`${world.workerUrls[0]}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
}

const overviewOf = async (world: World) => (await world.operate('GET', '/v1/overview')).body;

/** Checks that every delivery succeeded at its first attempt. */
async function checkAllDelivered(world: World, receiver: Receiver, count: number): Promise<void> {
  await receiver.received(count, isDelivery);
  await eventually('all to be recorded', async () => {
    const { deliveries } = await overviewOf(world);
    return deliveries.succeeded === count;
  });
  const ids = receiver.requests.map(({ headers }) => headers['service-delivery-id']);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { attempt_count } of await world.deliveries('limit=250')) expect(attempt_count).toBe(1);
}

describe('an outage of name resolution', () => {
  it.each(['refused', 'silent'] as const)(
    '(%s) counts no attempt and pauses nobody for an hour, is reported to operators, and everything is delivered after it',
    async (failure) => {
      // Behind the machine's clock, so that whatever is due by this clock is also due for the queue.
      const clock = fakeClock(Date.now() - 2 * HOUR_MS);
      const { world, names, noticesOf } = await namedWorld(() => ['127.0.0.1'], { clock });
      const to = await closingReceiver();
      await subscribeAll(
        world,
        many(ADDRESSES).map((i) => `http://hooks.customer-${i}.test:${to.port}/`),
      );
      await subscribeAll(world, [`http://hooks.busy.test:${to.port}/`], 'session.declined');
      await world.publish(sampleEvent());
      await checkAllDelivered(world, to, ADDRESSES);

      names.answer = () => failure;
      await world.publish(sampleEvent());
      await eventually('the outage to be noticed', async () => (await metric(world, 'posthorn_outage')) === 1);
      await world.publishBatch(many(20).map(() => sampleEvent({ type: 'session.declined' })));
      for (let minutes = 0; minutes < 60; minutes += 5) clock.advance(5 * 60_000);
      const during = await eventually('the worker to report the outage', async () => {
        const overview = await overviewOf(world);
        return overview.workers[0]?.outage_since != null && overview;
      });
      expect(problemsOf(overviewSchema, during)).toEqual([]);
      expect(during.deliveries).toMatchObject({ pending: ADDRESSES + 20, waiting_for_retry: 0, held: 0, failed: 0 });
      expect(during.subscriptions).toMatchObject({ active: ADDRESSES + 1, paused: 0 });
      expect(await metric(world, 'posthorn_attempts_not_counted_total')).toBeGreaterThan(0);
      await eventually('the notice', () => noticesOf('outage.').length === 1);
      expect(noticesOf('outage.')[0]).toMatchObject({ type: 'outage.started', data: { reason: 'dns' } });
      expect(noticesOf('outage.')[0].data.since).toBe(during.workers[0].outage_since);
      // A worker that starts now reads from Redis which sites could be reached.
      expect(await world.redis.zcard(`${world.prefix}:{0}:reached`)).toBeGreaterThan(3);

      names.answer = () => ['127.0.0.1'];
      await eventually('the outage to be over', async () => (await metric(world, 'posthorn_outage')) === 0);
      await to.received(2 * ADDRESSES + 1, isDelivery);
      await eventually('all to be sent', () => to.requests.length === 2 * ADDRESSES + 20);
      await checkAllDelivered(world, to, 2 * ADDRESSES + 20);
      await eventually('the other notice', () => noticesOf('outage.').length === 2);
      expect(noticesOf('outage.')[1]).toMatchObject({ type: 'outage.ended', data: { reason: 'dns' } });
      expect(noticesOf('subscription.')).toEqual([]);
      // A worker reports it with its next heartbeat.
      await eventually('the overview to show no outage', async () => {
        return (await overviewOf(world)).workers[0].outage_since === null;
      });
    },
  );

  it('is known to a worker that starts during it', async () => {
    const { world, names } = await namedWorld(() => ['127.0.0.1']);
    const to = await closingReceiver();
    await subscribeAll(
      world,
      many(6).map((i) => `http://hooks.customer-${i}.test:${to.port}/`),
    );
    await world.publish(sampleEvent());
    await checkAllDelivered(world, to, 6);
    await eventually('the names to be saved', async () => {
      return (await world.redis.zcard(`${world.prefix}:{0}:reached`)) === 7;
    });
    await world.stopWorker(0);
    names.answer = () => 'refused';
    const later = await ownWorld({ env: world.env });
    await world.publish(sampleEvent());
    await eventually('the outage to be noticed', async () => (await metric(later, 'posthorn_outage')) === 1);
    expect((await overviewOf(world)).deliveries).toMatchObject({ pending: 6, waiting_for_retry: 0 });
    names.answer = () => ['127.0.0.1'];
    await checkAllDelivered(world, to, 12);
  });
});

/** Servers on the same port in several loopback networks, like different hosts. */
async function startHosts(hosts: readonly string[]) {
  let port = 0;
  let deliveries = 0;
  for (const host of hosts) {
    const server: Server = createServer((request, response) => {
      if (request.headers['service-delivery-id']) deliveries += 1;
      request.resume();
      response.writeHead(200, { connection: 'close' }).end();
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
    port = (server.address() as AddressInfo).port;
    atEnd(() => new Promise((resolve) => server.close(resolve)));
  }
  return { port, deliveries: () => deliveries };
}

const BLACK_HOLE = '127.9.9.9';
const hostOf = (name: string) => `127.0.${Number(/\d+/.exec(name)) + 1}.1`;
const quickRetries = { RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms', ADDRESS_CONCURRENCY: '100' };

/**
 * A world whose five names lead to hosts of their own, each of which has got a delivery. Nothing responds at
 * `BLACK_HOLE`.
 */
async function reachedWorld(nameAt: (i: number) => string) {
  const env = { ...quickRetries, ATTEMPT_TIMEOUT: '2s', PAUSE_AFTER: '20' };
  const named = await namedWorld((name) => [hostOf(name)], { env });
  const hosts = await startHosts(many(5).map((i) => hostOf(`${i}`)));
  const hole = await startBlackHole(BLACK_HOLE, hosts.port);
  atEnd(() => hole.close());
  await subscribeAll(
    named.world,
    many(5).map((i) => `http://${nameAt(i)}:${hosts.port}/`),
  );
  await named.world.publish(sampleEvent());
  await eventually('all to be reached', () => hosts.deliveries() >= 5);
  return { ...named, hosts };
}

describe('an outage of outgoing connections', () => {
  it('counts no attempt, unlike many names of one dead host among healthy ones, which are paused at 20', async () => {
    const { world, names, noticesOf, hosts } = await reachedWorld((i) => `hooks.customer-${i}.test`);

    names.answer = () => [BLACK_HOLE];
    await world.publish(sampleEvent());
    await eventually('the outage to be noticed', async () => (await metric(world, 'posthorn_outage')) === 1);
    const { deliveries, subscriptions } = await overviewOf(world);
    expect(deliveries).toMatchObject({ pending: 5, waiting_for_retry: 0, failed: 0 });
    expect(subscriptions).toMatchObject({ paused: 0 });
    names.answer = (name) => [name.includes('dead') ? BLACK_HOLE : hostOf(name)];
    await eventually('all to be delivered', () => hosts.deliveries() >= 10);
    await eventually('both notices', () => noticesOf('outage.').length === 2);
    expect(noticesOf('outage.').map(({ type, data }) => [type, data.reason])).toEqual([
      ['outage.started', 'connection'],
      ['outage.ended', 'connection'],
    ]);

    const dead = await subscribeAll(
      world,
      many(2).map((i) => `http://hooks.dead-${i}.test:${hosts.port}/`),
      'session.declined',
    );
    await world.publishBatch(many(25).map(() => sampleEvent({ type: 'session.declined' })));
    await checkPausedAt20(world, dead, 'timeout');
    expect(noticesOf('outage.')).toHaveLength(2);
  });
});

describe('a dead name among healthy ones', () => {
  it('fails after six attempts, and its address is paused at exactly 20', async () => {
    const { world, noticesOf } = await namedWorld((name) => (name.includes('dead') ? 'missing' : ['127.0.0.1']), {
      env: quickRetries,
    });
    const to = await closingReceiver();
    await subscribeAll(
      world,
      many(5).map((i) => `http://hooks.customer-${i}.test:${to.port}/`),
    );
    await world.publish(sampleEvent());
    await checkAllDelivered(world, to, 5);
    const urls = ['http://hooks.dead.test/a', 'http://hooks.dead.test/b'];
    const dead = await subscribeAll(world, urls, 'session.declined');
    await world.publishBatch(many(25).map(() => sampleEvent({ type: 'session.declined' })));
    await checkPausedAt20(world, dead, 'dns');
    expect(noticesOf('outage.')).toEqual([]);
    expect(await metric(world, 'posthorn_attempts_not_counted_total')).toBe(0);
  });
});

describe('all names of one domain', () => {
  it.each([
    ['dns', 'that do not resolve', 'missing' as const],
    ['timeout', 'that lead to a host that does not respond', [BLACK_HOLE]],
  ])('are one site: its failures (%s) are counted (%s)', async (error, _, failure) => {
    const { world, names, noticesOf } = await reachedWorld((i) => `app-${i}.fly.test`);
    await eventually('all to be recorded', async () => (await overviewOf(world)).deliveries.succeeded === 5);
    names.answer = () => failure;
    await world.publish(sampleEvent());
    await eventually('all to fail', async () => {
      return (await overviewOf(world)).deliveries.failed === 5 || noticesOf('outage.').length > 0;
    });
    expect(noticesOf('outage.')).toEqual([]);
    for (const { id } of await world.deliveries('status=failed')) {
      const { attempts } = await world.delivery(id);
      expect(attempts.map((attempt: { error: string }) => attempt.error)).toEqual(many(6).map(() => error));
    }
    expect(await metric(world, 'posthorn_attempts_not_counted_total')).toBe(0);
  });
});

async function checkPausedAt20(world: World, ids: readonly string[], error: string): Promise<void> {
  for (const id of ids) {
    const [entry] = await eventually('the address to be paused', async () => {
      const { body } = await world.operate('GET', `/v1/audit?subscription_id=${id}&action=subscription.paused`);
      return body.data.length > 0 && body.data;
    });
    expect(entry.detail).toEqual({ reason: 'consecutive_failures', consecutive_failures: 20 });
    for (const { id: failed } of await world.deliveries(`subscription_id=${id}&status=failed&limit=20`)) {
      const { attempts } = await world.delivery(failed);
      expect(attempts.map((attempt: { error: string }) => attempt.error)).toEqual(many(6).map(() => error));
    }
  }
}
