/** The apps on a Redis Cluster of three masters with partitions on different ones; and on one that loses a master. */
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { connectRedis } from '@posthorn/store';
import { eventually, isDelivery } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { type OwnRedis, startRedis } from '../scripts/redis/server.ts';
import { atEnd, ownApps, ownClient, ownReceiver, ownWorld } from './own.ts';
import { complaintsOf } from './processes.ts';
import { accepted, newDir } from './redis-servers.ts';
import { sampleEvent, worldEnv } from './world.ts';

const SLOTS = 16_384;
const MASTERS = 3;
/** A node that does not respond for this long is considered dead. */
const NODE_TIMEOUT_MS = 1_500;
/** For a cluster in which no node is ever considered dead, however busy the machine. */
const NEVER_MS = 600_000;

interface Node extends OwnRedis {
  /** Starts it again, with its data, after it was killed. */
  again(): Promise<void>;
}

/** Starts a cluster: the masters, then one replica of each in `replicasOf`, which takes over once `allowFailover` was called. */
async function startCluster(replicasOf: number[] = [], nodeTimeoutMs = NODE_TIMEOUT_MS): Promise<Node[]> {
  const dir = newDir();
  const nodes: Node[] = [];
  const clients: ReturnType<typeof connectRedis>[] = [];
  let firstBusPort = 0;
  for (let i = 0; i < MASTERS + replicasOf.length; i++) {
    // The port of the cluster bus. Redis's default, 10,000 above its port, may be in use by an outgoing connection.
    const busPort = await freePort();
    firstBusPort ||= busPort;
    const settings = {
      'cluster-enabled': 'yes',
      'cluster-config-file': 'nodes.conf',
      'cluster-port': busPort,
      'cluster-node-timeout': nodeTimeoutMs,
      'cluster-replica-no-failover': 'yes',
      // However long its link to the master was down.
      'cluster-replica-validity-factor': 0,
      'repl-diskless-sync-delay': 0,
    };
    const extra = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const start = async (port?: number) => {
      const started = await startRedis(join(dir, String(i)), {
        say: () => undefined,
        extra,
        ...(port ? { port } : {}),
      });
      atEnd(() => started.stop());
      return started;
    };
    const node = await start();
    nodes.push({ ...node, again: async () => void (await start(node.port)) });
    const client = connectRedis({ REDIS_URL: node.url });
    clients.push(client);
    if (i < MASTERS) {
      const [from, to] = [Math.ceil((i * SLOTS) / MASTERS), Math.ceil(((i + 1) * SLOTS) / MASTERS) - 1];
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    }
    await client.call('CLUSTER', 'MEET', '127.0.0.1', String(nodes[0]!.port), String(firstBusPort));
  }
  const all = (what: string, text: string, command: string[]) =>
    eventually(what, async () => {
      const answers = await Promise.all(clients.map((client) => client.call('CLUSTER', ...command)));
      return answers.every((answer) => String(answer).includes(text));
    });
  await all('all nodes to know each other', `cluster_known_nodes:${nodes.length}`, ['INFO']);
  for (const [i, client] of clients.slice(MASTERS).entries()) {
    await client.call('CLUSTER', 'REPLICATE', String(await clients[replicasOf[i]!]!.call('CLUSTER', 'MYID')));
    await eventually('a replica in sync', async () =>
      /master_link_status:up/.test(String(await client.info('replication'))),
    );
  }
  await all('the cluster', 'cluster_state:ok', ['INFO']);
  for (const client of clients) client.disconnect();
  return nodes;
}

async function allowFailover(replicas: OwnRedis[]): Promise<void> {
  for (const { url } of replicas)
    await ownClient({ REDIS_URL: url }).config('SET', 'cluster-replica-no-failover', 'no');
}

const settingsFor = (nodes: OwnRedis[]) => ({
  REDIS_CLUSTER_NODES: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
  PARTITIONS: '6',
});

describe('Redis Cluster', () => {
  it('delivers, retries, pauses, holds, resumes and lists over all partitions as on one Redis', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = { ...settingsFor(nodes), PAUSE_AFTER: '1', RETRY_DELAYS: '20ms' };
    const on = await ownWorld({ redisUrl: nodes[0]!.url, env });
    const to = await ownReceiver();
    const ids = [];
    for (let i = 0; i < 12; i++) ids.push((await on.subscribe(to.url)).id);
    expect((await on.publish(sampleEvent())).body.deliveries).toBe(12);
    await to.received(12, isDelivery);
    await eventually('all recorded', async () => (await on.deliveries('status=succeeded')).length === 12);
    to.answerWith(500);
    await on.publish(sampleEvent());
    await eventually(
      'all paused',
      async () => (await on.operate('GET', '/v1/subscriptions?status=paused')).body.data.length === 12,
    );
    to.answerWith(200);
    const { body } = await on.publish(sampleEvent());
    expect((await on.deliveries(`event_id=${body.id}`)).map(({ status }: { status: string }) => status)).toEqual(
      Array(12).fill('held'),
    );
    for (const id of ids) await on.operate('POST', `/v1/subscriptions/${id}/resume`);
    await to.received(12, (request) => request.headers['service-event-id'] === body.id);
    await eventually('all recorded', async () => (await on.deliveries('status=succeeded&limit=100')).length === 24);
    expect((await fetch(`${on.consoleUrl}/readyz`)).status).toBe(200);
  });

  it('loses no accepted event when a master dies, and continues with the replica that takes over', async () => {
    const nodes = await startCluster([0, 0, 1, 2]);
    const env = { ...worldEnv('posthorn', nodes[0]!.url), ...settingsFor(nodes), ACK_REPLICAS: '1', LOG_LEVEL: 'info' };
    const on = await ownApps(env, { eager: true });
    const to = await ownReceiver();
    for (let i = 0; i < 6; i++) await on.subscribe(to.url);

    const taken = new Set<string>();
    const answers = new Set<number>();
    let publishing = true;
    const publishers = Array.from({ length: 4 }, async () => {
      for (let event = sampleEvent(); publishing; event = sampleEvent()) {
        const { status, body } = await on.publish(event);
        answers.add(status);
        if (status === 202) taken.add(body.id);
      }
    });
    await eventually('some events', () => taken.size > 50);
    answers.clear();
    process.kill(nodes[0]!.pid, 'SIGKILL');
    await eventually('a publisher to get 503', () => answers.has(503));
    const before = taken.size;
    await allowFailover(nodes.slice(MASTERS));
    await eventually('events through the new master', () => taken.size > before + 100);
    publishing = false;
    await Promise.all(publishers);
    expect([...answers].sort()).toEqual([202, 503]);
    await eventually('all accepted events at each address', () => {
      const arrived = Map.groupBy(to.requests, ({ headers }) => String(headers['service-event-id']));
      return [...taken].every((id) => (arrived.get(id)?.length ?? 0) >= 6);
    });
    await eventually('their records', async () => (await on.deliveries('status=pending')).length === 0);
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });

  it('answers publishers with 503 within seconds while it is unreachable; what they repeat is delivered later', async () => {
    const nodes = await startCluster();
    const env = { ...worldEnv('posthorn', nodes[0]!.url), ...settingsFor(nodes), LOG_LEVEL: 'info' };
    const on = await ownApps(env);
    const to = await ownReceiver();
    for (let i = 0; i < 6; i++) await on.subscribe(to.url);
    await accepted(() => on.publish(sampleEvent({ id: 'evt_before' })));
    await to.received(6, isDelivery);
    for (const { pid } of nodes) process.kill(pid, 'SIGKILL');
    const event = sampleEvent({ id: 'evt_meanwhile' });
    for (let i = 0; i < 3; i++) expect((await on.publish(event)).status).toBe(503);
    expect((await fetch(`${on.ingestUrl}/readyz`)).status).toBe(503);
    for (const { again } of nodes) await again();
    await accepted(() => on.publish(event));
    await to.received(6, ({ headers }) => headers['service-event-id'] === 'evt_meanwhile');
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });
});
