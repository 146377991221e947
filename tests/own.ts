/** Starts what a test needs, and ends it after the test, in reverse order. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DAY_MS } from '@posthorn/core';
import { connectRedis, openStore, type Store } from '@posthorn/store';
import { type Receiver, startReceiver, testPrefix, testRedisUrl } from '@posthorn/testing';
import { atEnd } from '@posthorn/testing/at-end';
import { startProxy, type WayToRedis } from './chaos/proxy.ts';
import { expectDocumented } from './documented.ts';
import { type Process, startProcess } from './processes.ts';
import { apiClients, removeKeys, startWorld, type World, type WorldOptions, worldEnv } from './world.ts';

export { atEnd };

/** A folder that is removed at the end of the test. */
export function ownDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'posthorn-test-'));
  atEnd(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export async function ownWorld(options?: WorldOptions): Promise<World> {
  const world = await startWorld(options);
  atEnd(() => world.stop());
  return world;
}

/** A receiver. At the end of the test, the deliveries that it got must be what the documents in docs/wire say. */
export async function ownReceiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...args);
  atEnd(async () => {
    await receiver.close();
    expectDocumented(receiver.requests);
  });
  return receiver;
}

export function ownProcess(...args: Parameters<typeof startProcess>): Process {
  const started = startProcess(...args);
  atEnd(async () => {
    started.child.kill('SIGKILL');
    await started.ended;
  });
  return started;
}

export interface AppsOptions {
  /** Settings of the ingest process only. */
  ingest?: Record<string, string>;
  /** Settings of the worker process only. */
  worker?: Record<string, string>;
  /** Whether the worker takes over the jobs of a dead process sooner. */
  eager?: boolean;
}

/** Starts one process of each app, waits until they are ready, and returns clients of their APIs. */
export async function ownApps(env: Record<string, string>, options: AppsOptions = {}) {
  const ingest = ownProcess('ingest', { ...env, ...options.ingest });
  const worker = ownProcess(options.eager ? 'eager-worker' : 'worker', { ...env, ...options.worker });
  const operator = ownProcess('console', env);
  const ingestUrl = (await ingest.ready).url;
  await worker.ready;
  return { ...apiClients(ingestUrl, (await operator.ready).url), ingestUrl, ingest, worker, operator };
}

/** Overwrites fields of a subscription's record, for states that no API and no process writes. Needs one partition. */
export async function overwriteSubscription(
  { redis, prefix }: World,
  subscriptionId: string,
  fields: Record<string, string | number>,
): Promise<void> {
  await redis.hset(`${prefix}:{0}:subscription:${subscriptionId}`, fields);
}

/** Opens the store of a world, for data that no API writes. The caller stops it. */
export async function openOwnStore({ env, prefix }: Pick<World, 'env' | 'prefix'>) {
  const opened = openStore(
    {
      REDIS_URL: env.REDIS_URL!,
      KEY_PREFIX: prefix,
      PARTITIONS: Number(env.PARTITIONS ?? 1),
      RETENTION: 30 * DAY_MS,
      RETENTION_SUCCEEDED: 7 * DAY_MS,
    },
    { onError: () => undefined },
  );
  await opened.start();
  return opened;
}

/** Opens the store like `openOwnStore`, and stops it at the end of the test. */
export async function ownStore(world: Pick<World, 'env' | 'prefix'>): Promise<Store> {
  const opened = await openOwnStore(world);
  atEnd(() => opened.stop());
  return opened.store;
}

export function ownClient(...args: Parameters<typeof connectRedis>): ReturnType<typeof connectRedis> {
  const client = connectRedis(...args);
  atEnd(() => client.disconnect());
  return client;
}

export async function ownProxy(targetPort: number): Promise<WayToRedis> {
  const proxy = await startProxy(targetPort);
  atEnd(() => proxy.close());
  return proxy;
}

/** The settings of processes that share the Redis of the run, with a key prefix of their own. */
export function ownEnv(change: Record<string, string> = {}): Record<string, string> {
  const shared = worldEnv(testPrefix(), testRedisUrl());
  const env: Record<string, string> = { ...shared, LOG_LEVEL: 'info', SHUTDOWN_GRACE: '60s', ...change };
  atEnd(async () => {
    const redis = connectRedis({ REDIS_URL: testRedisUrl() });
    await removeKeys(redis, env.KEY_PREFIX!);
    redis.disconnect();
  });
  return env;
}

/** Starts an ingest and a console process, waits until they are ready, and returns clients of their APIs. */
export async function ownApis(env: Record<string, string>) {
  const [ingest, operator] = [ownProcess('ingest', env), ownProcess('console', env)];
  return { ...apiClients((await ingest.ready).url, (await operator.ready).url), ingest, operator };
}
