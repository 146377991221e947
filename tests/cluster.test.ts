/** The apps on a Redis Cluster of three masters with partitions on different ones; and on one that loses a master. */
import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventRef, partitionOf } from '@posthorn/core';
import { connectRedis } from '@posthorn/store';
import { eventually, HUNG_MS, isDelivery } from '@posthorn/testing';
import type { Cluster } from 'ioredis';
import { freePort } from '../scripts/free-port.ts';
import type { OwnRedis } from '../scripts/redis/server.ts';
import { atEnd, ownApis, ownApps, ownClient, ownDir, ownProcess, ownReceiver, ownWorld } from './own.ts';
import { complaintsOf } from './processes.ts';
import { accepted, redisServer } from './redis-servers.ts';
import { sampleEvent, worldEnv } from './world.ts';

const SLOTS = 16_384;
const MASTERS = 3;
const FIRST_SLOTS = Array.from({ length: MASTERS }, (_, i) => Math.ceil((i * SLOTS) / MASTERS));
const PARTITIONS = 6;
/** A node that does not respond for this long is considered dead. */
const NODE_TIMEOUT_MS = 1_500;
/** More than a partition of a test has. */
const MAX_KEYS_AT_ONCE = 100_000;
/** For a cluster in which no node is ever considered dead, however busy the machine. */
const NEVER_MS = 600_000;

interface Node extends OwnRedis {
  /** Starts it again, with its data, after it was killed. */
  again(): Promise<void>;
}

/**
 * Starts a cluster: the masters, then one replica of each in `replicasOf`, which takes over once `allowFailover` was
 * called.
 */
async function startCluster(replicasOf: number[] = [], nodeTimeoutMs = NODE_TIMEOUT_MS): Promise<Node[]> {
  const dir = ownDir();
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
    const start = (port?: number) => redisServer(extra, { dir: join(dir, String(i)), port });
    const node = await start();
    nodes.push({ ...node, again: async () => void (await start(node.port)) });
    const client = connectRedis({ REDIS_URL: node.url });
    clients.push(client);
    if (i < MASTERS) {
      const [from, end] = [FIRST_SLOTS[i], FIRST_SLOTS[i + 1] ?? SLOTS];
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(end - 1));
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

/** Begins to move a slot to the next master, as `redis-cli --cluster reshard` does. */
async function beginMove(nodes: Node[], slot: number) {
  const clients = nodes.map(({ url }) => ownClient({ REDIS_URL: url }));
  const call = (node: number, ...[name, ...args]: [string, ...(string | number)[]]) =>
    clients[node]!.call(name, ...args.map(String));
  const from = ownerOf(slot);
  const to = (from + 1) % MASTERS;
  const [fromId, toId] = [await call(from, 'CLUSTER', 'MYID'), await call(to, 'CLUSTER', 'MYID')].map(String);
  await call(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId!);
  await call(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId!);
  const keysOn = async (node: number) =>
    (await call(node, 'CLUSTER', 'GETKEYSINSLOT', slot, MAX_KEYS_AT_ONCE)) as string[];
  const migrate = (keys: string[]) =>
    call(from, 'MIGRATE', '127.0.0.1', nodes[to]!.port, '', 0, HUNG_MS, 'KEYS', ...keys);
  return {
    /** The keys that the new server has. */
    arrived: () => keysOn(to),
    /** Moves half of the keys, and returns them. */
    async half() {
      const keys = await keysOn(from);
      const half = keys.slice(0, Math.ceil(keys.length / 2));
      await migrate(half);
      return half;
    },
    async end() {
      for (let keys = await keysOn(from); keys.length > 0; keys = await keysOn(from)) await migrate(keys);
      for (const node of [to, from, (to + 1) % MASTERS]) await call(node, 'CLUSTER', 'SETSLOT', slot, 'NODE', toId!);
    },
  };
}

/** The master to which `startCluster` gives a slot. */
const ownerOf = (slot: number) => FIRST_SLOTS.findLastIndex((first) => first <= slot);

const settingsFor = (nodes: OwnRedis[]) => ({
  REDIS_CLUSTER_NODES: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
  PARTITIONS: String(PARTITIONS),
});

/** The settings of all apps on a cluster. */
const envFor = (nodes: OwnRedis[]) => ({
  ...worldEnv('posthorn', nodes[0]!.url),
  ...settingsFor(nodes),
  LOG_LEVEL: 'info',
});

const ownClusterClient = (nodes: OwnRedis[]) =>
  ownClient({
    REDIS_URL: nodes[0]!.url,
    REDIS_CLUSTER_NODES: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
  });

/** The slot of a key, by the cluster's own count. */
const slotOf = async (client: ReturnType<typeof ownClient>, key: string) =>
  Number(await client.call('CLUSTER', 'KEYSLOT', key));

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

  it('counts an event that an erasure cannot read once, not once for each partition', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const on = await ownWorld({ redisUrl: nodes[0]!.url, env: settingsFor(nodes) });
    const id = 'order:1';
    await on.publish(sampleEvent({ id }));
    const ref = eventRef({ id, environment: 'sandbox' });
    const key = `${on.prefix}:{${partitionOf(id, PARTITIONS)}}:event:${ref}`;
    const slot = await slotOf(ownClient({ REDIS_URL: nodes[0]!.url }), key);
    const client = ownClient({ REDIS_URL: nodes[ownerOf(slot)]!.url });
    expect(await client.rename(key, `${key}-away`)).toBe('OK');
    await client.sadd(key, 'wrong');
    const { body } = await on.operate('POST', '/v1/erasures', { event_id: id });
    const counted = await eventually('the count', async () => {
      const { body: erasure } = await on.operate('GET', `/v1/erasures/${body.id}`);
      return erasure.status === 'counted' && erasure;
    });
    expect(counted.unreadable).toEqual({ events: 1, ids: [id] });
  });

  it('names the master that is nearly full while others have room', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const on = await ownWorld({ redisUrl: nodes[0]!.url, env: settingsFor(nodes) });
    const full = ownClient({ REDIS_URL: nodes[1]!.url });
    const usedBytes = Number(/used_memory:(\d+)/.exec(await full.info('memory'))?.[1]);
    await full.config('SET', 'maxmemory', Math.round(usedBytes / 0.9));
    const memory = await eventually('it is named', async () => {
      const { not_well: notWell } = (await on.operate('GET', '/v1/overview')).body;
      return notWell.find(({ kind }: { kind: string }) => kind === 'memory');
    });
    expect(memory.message).toMatch(
      new RegExp(`^the Redis master 127\\.0\\.0\\.1:${nodes[1]!.port} uses \\d+ % of its memory$`),
    );
    const metrics = await (await fetch(`${on.consoleUrl}/metrics`)).text();
    expect(Number(/^posthorn_redis_memory_used_ratio\S* (\S+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0.85);
  });

  it('counts the partitions of the one master that refuses writes', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const on = await ownWorld({ redisUrl: nodes[0]!.url, env: settingsFor(nodes) });
    const client = ownClient({ REDIS_URL: nodes[1]!.url });
    await client.config('SET', 'min-replicas-to-write', '1');
    const slots = await Promise.all(Array.from({ length: PARTITIONS }, (_, i) => slotOf(client, `{${i}}`)));
    const refusing = slots.filter((slot) => ownerOf(slot) === 1).length;
    expect(refusing).toBeGreaterThan(0);
    const sample = new RegExp(`^posthorn_partitions_refusing_writes\\S* ${refusing}$`, 'm');
    await eventually('the metric', async () => sample.test(await (await fetch(`${on.consoleUrl}/metrics`)).text()));
  });

  it('loses no accepted event when a master dies, and continues with the replica that takes over', async () => {
    const nodes = await startCluster([0, 0, 1, 2]);
    const env = { ...envFor(nodes), ACK_REPLICAS: '1' };
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

  it('delays only the partitions of a master that hangs: the others attempt, retry, release, accept and notify', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const limits = { ADDRESS_CONCURRENCY: '1', HOST_CONCURRENCY: '100', RELEASE_RATE: '2' };
    const on = await ownApps({ ...env, ...limits, ATTEMPT_TIMEOUT: '1h', RETRY_DELAYS: '1s,1s' });
    const to = await ownReceiver();
    const client = ownClient({ REDIS_URL: nodes[2]!.url });
    const masterOf = async (id: string) => ownerOf(await slotOf(client, `{${partitionOf(id, PARTITIONS)}}`));
    // The second one has the record of the installation: without it, all would wait after 30 s.
    const [hung, well] = [0, 2] as const;
    let events = 0;
    const idOn = async (master: number): Promise<string> => {
      const id = `evt_${events++}`;
      return (await masterOf(id)) === master ? id : await idOn(master);
    };
    const subscribeOn = async (master: number, type: string): Promise<string> => {
      const { id } = await on.subscribe(`${to.url}/${type}`, { event_types: [type] });
      if ((await masterOf(id)) === master) return id;
      await on.operate('DELETE', `/v1/subscriptions/${id}`);
      return await subscribeOn(master, type);
    };
    const publishOn = async (master: number, type: string) => {
      const id = await idOn(master);
      expect((await on.publish(sampleEvent({ id, type }))).status).toBe(202);
      return id;
    };
    const requests = (id: string) => to.requests.filter(({ headers }) => headers['service-event-id'] === id).length;
    const released = 'session.created';
    const address = await subscribeOn(well, released);
    await on.operate('POST', `/v1/subscriptions/${address}/pause`);
    const held: string[] = [];
    for (let i = 0; i < 15; i++) held.push(await publishOn(well, released));
    // Workers keep the events of two addresses in memory, and read those of one for each attempt.
    const [kept, read, onHung] = ['session.started', 'session.submitted', 'session.declined'] as const;
    for (const type of [kept, kept, read]) await subscribeOn(well, type);
    await subscribeOn(hung, onHung);
    const answers: ServerResponse[] = [];
    to.answerWith((request, response) => {
      if (request.path.endsWith(released)) response.writeHead(200).end();
      else answers.push(response);
    });
    const [keptHung, readHung] = [await publishOn(hung, kept), await publishOn(hung, read)];
    await eventually('attempts in flight', () => answers.length >= 3);
    await on.operate('POST', `/v1/subscriptions/${address}/resume`);
    await to.received(2, ({ path }) => path.endsWith(released));

    process.kill(nodes[hung]!.pid, 'SIGSTOP');
    atEnd(() => process.kill(nodes[hung]!.pid, 'SIGCONT'));
    const urls = await Promise.all([on.ingest, on.operator, on.worker].map(async ({ ready }) => (await ready).url));
    const readiness = await Promise.all(urls.map((url) => fetch(`${url}/readyz`)));
    expect(readiness.map(({ status }) => status)).toEqual([200, 200, 200]);
    to.answerWith(200);
    for (const answer of answers) answer.writeHead(500).end();
    await eventually('the retries of an event that a worker keeps', () => requests(keptHung) >= 4);
    for (const type of [kept, read]) {
      const id = await publishOn(well, type);
      await eventually(`an event of the same addresses as others that hang`, () => requests(id) > 0);
    }
    await eventually('all that was held', () => held.every((id) => requests(id) > 0));
    await eventually('their attempts in the statistics of the address', async () => {
      const { body } = await on.operate('GET', `/v1/subscriptions/${address}/attempts`);
      return body.succeeded >= held.length;
    });
    // Ingest would have to read who is subscribed in all partitions.
    const change = await on.operate('PATCH', `/v1/subscriptions/${address}`, { event_types: [kept] });
    expect(change.status).toBe(503);
    expect((await on.subscription(address)).event_types).toEqual([released]);
    await publishOn(well, kept);
    // It has to be told that an event has succeeded. Partition 4 comes after partitions of it.
    const other = ownClient({ REDIS_URL: nodes[well]!.url });
    const beatAtMs = async () => Number((await other.zrange('posthorn:{0}:workers_seen', '0', '0', 'WITHSCORES'))[1]);
    const seenAtMs = await beatAtMs();
    await other.xadd('posthorn:{4}:notices', '*', 'k', 'outage.ended', 'at', Date.now());
    await eventually('a heartbeat', async () => (await beatAtMs()) > seenAtMs);
    await eventually('a notice', async () => (await other.xlen('posthorn:{4}:notices')) === 0);
    const lateId = await idOn(well);
    const late = sampleEvent({ id: lateId, type: onHung });
    const refusal = await on.publish(late);
    expect([refusal.status, refusal.headers.get('retry-after')]).toEqual([503, expect.any(String)]);
    expect(await on.operate('GET', '/v1/overview')).toMatchObject({
      status: 503,
      body: {
        detail: expect.stringContaining(`partition 3 of 6, on Redis at 127.0.0.1:${nodes[hung]!.port}: `),
      },
    });

    process.kill(nodes[hung]!.pid, 'SIGCONT');
    await accepted(() => on.publish(late));
    await eventually('what has hung', () => requests(readHung) > 1 && requests(lateId) > 0);
    await eventually('all deliveries to succeed', async () => {
      const all = await on.deliveries('limit=100');
      return all.every(({ status }: { status: string }) => status === 'succeeded');
    });
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });

  it('leaves a master that hangs once a replica has taken over, before it gives up the connection', async () => {
    const nodes = await startCluster([0, 1, 2]);
    const hung = nodes[0]!;
    const old = ownClient({ REDIS_URL: hung.url });
    const slots = await Promise.all(Array.from({ length: PARTITIONS }, (_, i) => slotOf(old, `{${i}}`)));
    const key = `{${slots.findIndex((slot) => ownerOf(slot) === 0)}}`;
    await old.set(key, 'value');
    await old.wait(1, HUNG_MS);
    const client = ownClusterClient(nodes);
    const errors: string[] = [];
    client.on('node error', ({ message }: Error) => errors.push(message));
    expect(await client.get(key)).toBe('value');
    process.kill(hung.pid, 'SIGSTOP');
    atEnd(() => process.kill(hung.pid, 'SIGCONT'));
    const reply = client.get(key);
    await allowFailover(nodes.slice(MASTERS));
    expect(await reply).toBe('value');
    expect(errors.filter((message) => message.startsWith('Socket timeout'))).toEqual([]);
  });

  it('connects again, and once more, after the only server in the settings has gone for ever', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const [gone, ...others] = nodes.map((node) => ({ ...node, client: ownClient({ REDIS_URL: node.url }) }));
    const slots = await Promise.all(Array.from({ length: PARTITIONS }, (_, i) => slotOf(gone!.client, `{${i}}`)));
    const key = `{${slots.findIndex((slot) => ownerOf(slot) === 1)}}`;
    const client = ownClusterClient(nodes.slice(0, 1)) as Cluster;
    client.on('error', () => undefined);
    expect(await client.set(key, 'value')).toBe('OK');
    process.kill(gone!.pid, 'SIGKILL');
    for (const { client: other } of others) await other.call('CLIENT', 'KILL', 'TYPE', 'normal');
    expect(await client.get(key)).toBe('value');
    const second = client.duplicate();
    atEnd(() => second.disconnect());
    expect(await second.get(key)).toBe('value');
  });

  it('delivers an event that is repeated after a failover has lost it, but not its deliveries', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const on = await ownApis(env);
    const to = await ownReceiver();
    for (let i = 0; i < 6; i++) await on.subscribe(to.url);
    const event = sampleEvent({ id: 'evt_lost' });
    expect(await on.publish(event)).toMatchObject({ status: 202, body: { deliveries: 6 } });
    const client = ownClusterClient(nodes);
    const ref = eventRef({ id: 'evt_lost', environment: 'sandbox' });
    expect(await client.del(`posthorn:{${partitionOf('evt_lost', PARTITIONS)}}:event:${ref}`)).toBe(1);
    ownProcess('worker', env);
    await eventually('all deliveries to wait for their event', async () => {
      const partitions = Array.from({ length: PARTITIONS }, (_, i) =>
        client.zcard(`posthorn:{${i}}:deliveries:delayed`),
      );
      return (await Promise.all(partitions)).reduce((sum, delayed) => sum + delayed, 0) === 6;
    });
    expect(await on.publish(event)).toMatchObject({ status: 202, body: { deliveries: 6, duplicate: false } });
    await to.received(6, isDelivery);
  });

  it('posts the notices of the other masters where one hangs while a notice of it is posted', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const to = await ownReceiver();
    const env = envFor(nodes);
    await ownApps({ ...env, NOTICE_URL: `${to.url}/notices`, NOTICE_SECRET: 'n'.repeat(32) });
    const client = ownClient({ REDIS_URL: nodes[0]!.url });
    const ownerOfPartition = async (partition: number) => ownerOf(await slotOf(client, `{${partition}}`));
    const add = async (partition: number) => {
      const on = ownClient({ REDIS_URL: nodes[await ownerOfPartition(partition)]!.url });
      await on.xadd(`posthorn:{${partition}}:notices`, '*', 'k', 'outage.ended', 'at', String(Date.now()));
    };
    const notices = () => to.requests.filter(({ path }) => path.endsWith('/notices')).length;
    const answers: ServerResponse[] = [];
    to.answerWith((_request, response) => void answers.push(response));
    const [first, later] = [1, 4];
    expect(await ownerOfPartition(first)).not.toBe(await ownerOfPartition(later));
    await add(first);
    await eventually('a notice in flight', () => answers.length > 0);
    const hung = nodes[await ownerOfPartition(first)]!;
    process.kill(hung.pid, 'SIGSTOP');
    atEnd(() => process.kill(hung.pid, 'SIGCONT'));
    to.answerWith(200);
    for (const answer of answers) answer.writeHead(200).end();
    await add(later);
    await eventually('the notice of another master', () => notices() > 1, 30_000);
  });

  it('with ACK_REPLICAS, accepts events for which a master that hangs is not needed', async () => {
    const nodes = await startCluster([0, 1, 2], NEVER_MS);
    const env = { ...envFor(nodes), ACK_REPLICAS: '1' };
    const on = await ownApps(env);
    // Ingest then knows who is subscribed.
    await accepted(() => on.publish(sampleEvent()));
    const hung = nodes[1]!;
    process.kill(hung.pid, 'SIGSTOP');
    atEnd(() => process.kill(hung.pid, 'SIGCONT'));
    const client = ownClient({ REDIS_URL: nodes[0]!.url });
    const statuses = new Map<number, number>();
    for (let i = 0; statuses.size < MASTERS; i++) {
      const id = `evt_${i}`;
      const master = ownerOf(await slotOf(client, `{${partitionOf(id, PARTITIONS)}}`));
      if (!statuses.has(master)) statuses.set(master, (await on.publish(sampleEvent({ id }))).status);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 0: 202, 1: 503, 2: 202 });
  });

  it('uses no partition while its slot is being moved, and loses nothing when all slots move', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const on = await ownApps(env);
    const to = await ownReceiver();
    for (let i = 0; i < 6; i++) await on.subscribe(to.url);
    const client = ownClient({ REDIS_URL: nodes[0]!.url });
    const taken: string[] = [];
    let isMoving = true;
    const publish = async () => {
      for (let i = 0; isMoving; i++) {
        const id = `evt_${i}`;
        await accepted(() => on.publish(sampleEvent({ id })));
        taken.push(id);
      }
    };
    const publishing = publish();
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const slot = await slotOf(client, `{${partition}}`);
      const move = await beginMove(nodes, slot);
      const id = Array.from({ length: 1_000 }, (_, i) => `evt_moving_${i}`).find(
        (one) => partitionOf(one, PARTITIONS) === partition,
      );
      expect((await on.publish(sampleEvent({ id }))).status).toBe(503);
      expect(await move.arrived()).toEqual([]);
      const half = await move.half();
      expect((await on.publish(sampleEvent({ id }))).status).toBe(503);
      // Some may have expired.
      expect(half).toEqual(expect.arrayContaining(await move.arrived()));
      await move.end();
    }
    isMoving = false;
    await publishing;
    await eventually('all accepted events at each address', () => {
      const arrived = Map.groupBy(to.requests, ({ headers }) => String(headers['service-event-id']));
      return taken.every((id) => (arrived.get(id)?.length ?? 0) >= 6);
    });
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });

  it('loses nothing if the master whose slot is being moved dies and comes back, without a failover', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const on = await ownApps(env);
    const to = await ownReceiver();
    for (let i = 0; i < 6; i++) await on.subscribe(to.url);
    const answers: ServerResponse[] = [];
    to.answerWith((_request, response) => void answers.push(response));
    const ids = Array.from({ length: 12 }, (_, i) => `evt_${i}`);
    for (const id of ids) await accepted(() => on.publish(sampleEvent({ id })));
    const slot = await slotOf(ownClient({ REDIS_URL: nodes[0]!.url }), '{0}');
    const from = nodes[ownerOf(slot)]!;
    const move = await beginMove(nodes, slot);
    await move.half();
    process.kill(from.pid, 'SIGKILL');
    await from.again();
    const client = ownClient({ REDIS_URL: from.url });
    await eventually('it to be a part of the cluster again', async () =>
      String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
    );
    to.answerWith(200);
    for (const answer of answers) answer.writeHead(200).end();
    const id = ids.find((one) => partitionOf(one, PARTITIONS) === 0);
    expect((await on.publish(sampleEvent({ id }))).status).toBe(503);
    await move.end();
    await eventually('all deliveries to succeed', async () => {
      const all = await on.operate('GET', '/v1/deliveries?status=succeeded&limit=100');
      return all.status === 200 && all.body.data.length === 6 * ids.length;
    });
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });

  it('accepts nothing while a master has lost its data, though another one has the record of the installation', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const on = await ownApps(env);
    const client = ownClient({ REDIS_URL: nodes[0]!.url });
    const withRecord = ownerOf(await slotOf(client, 'posthorn:installation'));
    const slots = await Promise.all(Array.from({ length: PARTITIONS }, (_, i) => slotOf(client, `{${i}}`)));
    const emptied = [0, 1, 2].find((i) => i !== withRecord && slots.some((slot) => ownerOf(slot) === i))!;
    const numbers = slots.flatMap((slot, i) => (ownerOf(slot) === emptied ? i : []));
    const master = ownClient({ REDIS_URL: nodes[emptied]!.url });
    const marks = numbers.map((i) => `posthorn:{${i}}:begun`);
    const values = await Promise.all(marks.map((mark) => master.get(mark)));
    await accepted(() => on.publish(sampleEvent()));
    await master.flushall();
    await eventually('a refusal', async () => (await on.publish(sampleEvent())).status === 503);
    await eventually('the reason', async () => (await on.operate('GET', '/v1/overview')).status === 503);
    expect((await on.operate('GET', '/v1/overview')).body.detail).toContain(
      `Redis has lost the data of partitions ${numbers.join(', ')} of ${PARTITIONS}`,
    );
    expect((await fetch(`${on.ingestUrl}/readyz`)).status).toBe(503);
    // As after a restore.
    for (const [i, mark] of marks.entries()) await master.set(mark, values[i]!);
    await accepted(() => on.publish(sampleEvent()));
    expect([on.ingest, on.operator, on.worker].flatMap(complaintsOf)).toEqual([]);
  });

  it('accepts no event without its deliveries from the moment at which a killed master comes back empty', async () => {
    const nodes = await startCluster([], NEVER_MS);
    const env = envFor(nodes);
    const on = await ownApps(env);
    const client = ownClient({ REDIS_URL: nodes[0]!.url });
    const emptied = nodes[(ownerOf(await slotOf(client, 'posthorn:installation')) + 1) % MASTERS]!;
    const to = await ownReceiver();
    // More than enough for one on each master.
    const addresses = 24;
    for (let i = 0; i < addresses; i++) await on.subscribe(to.url);
    await accepted(() => on.publish(sampleEvent()));
    const [, dir = ''] = (await ownClient({ REDIS_URL: emptied.url }).config('GET', 'dir')) as string[];
    process.kill(emptied.pid, 'SIGKILL');
    rmSync(join(dir, 'appendonlydir'), { recursive: true });
    await emptied.again();
    // It may be in flight when the master is reached again.
    await on.publish(sampleEvent());
    const partial: unknown[] = [];
    await eventually('the reason', async () => {
      const { status, body } = await on.publish(sampleEvent());
      if (status === 202 && body.deliveries < addresses) partial.push(body);
      return String((await on.operate('GET', '/v1/overview')).body.detail).includes('Redis has lost the data of');
    });
    expect(partial).toEqual([]);
  });

  it('answers publishers with 503 within seconds while it is unreachable; what they repeat is delivered later', async () => {
    const nodes = await startCluster();
    const env = envFor(nodes);
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
