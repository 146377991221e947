/** One Redis with several partitions becomes a Redis Cluster, by the commands that docs/redis.md gives. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { eventually, isDelivery } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { redisCli } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import type { OwnRedis } from '../scripts/redis/server.ts';
import { ownApps, ownClient, ownDir, ownReceiver } from './own.ts';
import { complaintsOf, type Process } from './processes.ts';
import { redisServer } from './redis-servers.ts';
import { sampleEvent, worldEnv } from './world.ts';

const PARTITIONS = 4;
const say = () => undefined;

/** Starts a node of a Cluster, with the data in its folder if there are any. */
async function startNode(dir: string, port?: number): Promise<OwnRedis> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())];
  // No node is ever considered dead, however busy the machine.
  const extra = [...settings, '--cluster-node-timeout', '600000'];
  return await redisServer(extra, { dir, port });
}

async function stopAll(processes: readonly Process[]): Promise<void> {
  for (const { child } of processes) child.kill('SIGTERM');
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual(processes.map(() => 0));
}

describe('one Redis with several partitions', () => {
  it('becomes a Cluster of three masters, and loses nothing that it had', async () => {
    const command = (await providePrograms([redisCli], { say }))[redisCli.name]!;
    const cluster = async (...args: string[]) => {
      const running = promisify(execFile)(command, ['--cluster', ...args]);
      // Only `fix` asks. The others may have ended before they could be written to.
      running.child.stdin?.end(args[0] === 'fix' ? 'yes\n' : '');
      return (await running).stdout;
    };
    const dir = ownDir();
    const one = await redisServer([], { dir: join(dir, '0') });
    const shared = { PARTITIONS: String(PARTITIONS), PAUSE_AFTER: '2', RETRY_DELAYS: '1h', LOG_LEVEL: 'info' };
    const env = { ...worldEnv('posthorn', one.url), ...shared };
    const before = await ownApps(env);
    const [well, failing] = [await ownReceiver(), await ownReceiver()];
    // Addresses in all partitions; some events have one address, some have all.
    const ids = new Map<number, string>();
    while (ids.size < PARTITIONS) {
      const { id } = await before.subscribe(well.url, { event_types: ['session.created', 'session.approved'] });
      if (ids.has(partitionOf(id, PARTITIONS))) await before.operate('DELETE', `/v1/subscriptions/${id}`);
      else ids.set(partitionOf(id, PARTITIONS), id);
    }
    const bad = await before.subscribe(failing.url, { event_types: ['session.declined', 'session.started'] });
    failing.answerWith(500);
    const publishTo = async (apps: typeof before, type: string, id?: string) => {
      const { status, body } = await apps.publish(sampleEvent({ type, id }));
      expect([200, 202]).toContain(status);
      return String(body.id);
    };
    const events: string[] = [];
    for (let i = 0; i < 8; i++)
      events.push(await publishTo(before, 'session.approved', i % 2 ? `order-${i}` : undefined));
    await well.received(8 * PARTITIONS, isDelivery);
    const waiting: string[] = [];
    for (let i = 0; i < 4; i++)
      waiting.push(await publishTo(before, 'session.declined', i % 2 ? `late-${i}` : undefined));
    const listed = async (apps: typeof before, status: string) =>
      ((await apps.operate('GET', `/v1/deliveries?status=${status}&limit=200`)).body.data as { event_id: string }[])
        .map(({ event_id }) => event_id)
        .sort();
    await eventually('all attempts to be recorded', async () => {
      const lists = await Promise.all([listed(before, 'waiting_for_retry'), listed(before, 'succeeded')]);
      return lists[0]!.length === 4 && lists[1]!.length === 8 * PARTITIONS;
    });
    await before.operate('POST', `/v1/subscriptions/${bad.id}/pause`);
    const held = [await publishTo(before, 'session.started'), await publishTo(before, 'session.started', 'held')];
    // Nobody takes these: they wait in the queue while the worker is gone.
    await stopAll([before.worker]);
    const queued: string[] = [];
    for (let i = 0; i < 4; i++)
      queued.push(await publishTo(before, 'session.created', i % 2 ? `queued-${i}` : undefined));
    await stopAll([before.ingest, before.operator]);

    await one.stop();
    const nodes = [await startNode(join(dir, '0'), one.port)];
    const clients = nodes.map(({ url }) => ownClient({ REDIS_URL: url }));
    const address = `127.0.0.1:${one.port}`;
    const allAgree = () =>
      eventually('all nodes to agree on the slots', async () => {
        const infos = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO')));
        const known = `cluster_known_nodes:${clients.length}`;
        // A node that has just joined takes no keys at first.
        const areReady = infos.map(String).every((info) => info.includes('cluster_state:ok') && info.includes(known));
        return areReady && (await cluster('check', address).then(Boolean, () => false));
      });
    await cluster('fix', address);
    await allAgree();
    for (const name of ['1', '2']) {
      const node = await startNode(join(dir, name));
      await cluster('add-node', `127.0.0.1:${node.port}`, address);
      clients.push(ownClient({ REDIS_URL: node.url }));
      nodes.push(node);
      await allAgree();
    }

    const after = await ownApps({
      ...env,
      REDIS_CLUSTER_NODES: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
    });
    // While the apps run.
    await cluster('rebalance', address, '--cluster-use-empty-masters');
    expect((await Promise.all(clients.map((client) => client.dbsize()))).every((size) => size > 0)).toBe(true);
    await well.received(4 * PARTITIONS, ({ headers }) => queued.includes(String(headers['service-event-id'])));
    await eventually('their records', async () => {
      return (await listed(after, 'succeeded')).length === (8 + 4) * PARTITIONS;
    });
    expect(await listed(after, 'held')).toEqual([...held].sort());
    // An id is known as before, wherever its event is.
    for (const id of events) {
      const { status, body } = await after.operate('GET', `/v1/events/${id}`);
      expect([status, body.deliveries.length]).toEqual([200, PARTITIONS]);
    }
    failing.answerWith(200);
    await after.operate('POST', `/v1/subscriptions/${bad.id}/resume`);
    await failing.received(2, ({ headers }) => held.includes(String(headers['service-event-id'])));
    await after.operate('POST', '/v1/deliveries/try-now', { subscription_id: bad.id });
    await failing.received(8, ({ headers }) => waiting.includes(String(headers['service-event-id'])));
    const next = await publishTo(after, 'session.approved');
    await well.received(PARTITIONS, ({ headers }) => headers['service-event-id'] === next);
    expect([after.ingest, after.operator, after.worker].flatMap(complaintsOf)).toEqual([]);
  });
});
