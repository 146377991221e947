/** The same apps on a Redis Cluster of three nodes, with partitions on different ones. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectRedis } from '@posthorn/store';
import { eventually, isDelivery, startReceiver } from '@posthorn/testing';
import { freePort, type OwnRedis, startRedis } from '../scripts/redis/server.ts';
import { sampleEvent, startWorld } from './world.ts';

const SLOTS = 16_384;
const dir = join(import.meta.dirname, `../.posthorn/cluster-${process.pid}`);
const nodes: OwnRedis[] = [];
/** Where nodes talk to each other; Redis's own choice, 10,000 above its port, may be an outgoing connection's. */
const busPorts: number[] = [];

beforeAll(async () => {
  for (let i = 0; i < 3; i++) {
    const busPort = await freePort();
    busPorts.push(busPort);
    const extra = [
      '--cluster-enabled',
      'yes',
      '--cluster-config-file',
      'nodes.conf',
      '--cluster-port',
      String(busPort),
    ];
    nodes.push(await startRedis(join(dir, String(i)), { say: () => undefined, extra }));
  }
  const clients = nodes.map(({ url }) => connectRedis({ REDIS_URL: url }));
  for (const [i, client] of clients.entries()) {
    const [from, to] = [Math.ceil((i * SLOTS) / 3), Math.ceil(((i + 1) * SLOTS) / 3) - 1];
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    await client.call('CLUSTER', 'MEET', '127.0.0.1', String(nodes[0]!.port), String(busPorts[0]));
  }
  for (const client of clients) {
    await eventually('the cluster', async () =>
      String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
    );
    await eventually('all nodes', async () =>
      String(await client.call('CLUSTER', 'INFO')).includes('cluster_known_nodes:3'),
    );
    client.disconnect();
  }
}, 60_000);
afterAll(async () => {
  for (const node of nodes) await node.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe('Redis Cluster', () => {
  it('events fan out to subscriptions in all partitions, fail, pause, hold, resume and list as on one Redis', async () => {
    const on = await startWorld({
      redisUrl: nodes[0]!.url,
      env: {
        REDIS_CLUSTER_NODES: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
        PARTITIONS: '6',
        PAUSE_AFTER: '1',
        RETRY_DELAYS: '20ms',
      },
    });
    const to = await startReceiver();
    const ids = [];
    for (let i = 0; i < 12; i++) ids.push((await on.subscribe(to.url)).id);
    expect((await on.publish(sampleEvent())).body.deliveries).toBe(12);
    await to.received(12, 15_000, isDelivery);
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
    await to.received(12, 15_000, (request) => request.headers['service-event-id'] === body.id);
    await eventually('all recorded', async () => (await on.deliveries('status=succeeded&limit=100')).length === 24);
    expect((await fetch(`${on.consoleUrl}/readyz`)).status).toBe(200);
    await on.stop();
    await to.close();
  }, 60_000);
});
