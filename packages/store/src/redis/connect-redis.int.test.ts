/** What a connection says of itself. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, it } from '@jest/globals';
import { eventually, testCertificate, testRedisUrl } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { Cluster, type Redis } from 'ioredis';
import { connectRedis, onDisconnect } from './connect-redis.ts';

/** The connections of a Cluster to its nodes, which ioredis keeps to itself. */
interface Pool {
  findOrCreate(node: { host: string; port: number }): void;
  reset(nodes: readonly object[]): void;
}

it('reports that the connection to a node of a Cluster has closed, also if the node is back before', async () => {
  const { hostname: host, port } = new URL(testRedisUrl());
  const node = { host, port: Number(port) };
  const cluster = new Cluster([node], { lazyConnect: true });
  const { connectionPool: pool } = cluster as unknown as { connectionPool: Pool };
  let closed = 0;
  pool.findOrCreate(node);
  onDisconnect(cluster, () => (closed += 1));
  const closeNext = async () => {
    await cluster.nodes()[0]?.ping();
    pool.reset([]);
  };
  await closeNext();
  pool.findOrCreate(node);
  await eventually('the first connection has closed', () => closed === 1);
  await closeNext();
  await eventually('the second connection has closed', () => closed === 2);
  expect(cluster.nodes()).toEqual([]);
});

it('connects to the nodes of a Cluster by name, also beside a name that does not resolve', async () => {
  const nodes = ['nowhere.invalid', 'localhost'].map((host) => ({ host, port: 1 }));
  const cluster = connectRedis({ REDIS_URL: 'rediss://anywhere', REDIS_CLUSTER_NODES: nodes });
  atEnd(() => cluster.disconnect());
  cluster.on('error', () => undefined);
  const names: (string | undefined)[] = [];
  cluster.on('+node', ({ options }: Redis) => names.push(options.host));
  await eventually('both nodes', () => names.length >= nodes.length);
  expect(names.slice(0, nodes.length)).toEqual(nodes.map(({ host }) => host));
});

it('names the host of REDIS_URL in the TLS handshake, as a proxy that serves several Redis needs it', async () => {
  const named: string[] = [];
  const SNICallback = (name: string, done: (error: null) => void) => {
    named.push(name);
    done(null);
  };
  const server = createServer({ ...testCertificate, SNICallback });
  atEnd(() => server.close());
  server.on('tlsClientError', () => undefined).listen(0, 'localhost');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const redis = connectRedis({ REDIS_URL: `rediss://localhost:${port}` });
  atEnd(() => redis.disconnect());
  redis.on('error', () => undefined);
  await eventually('the name', () => named[0] === 'localhost');
});
