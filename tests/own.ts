/** What a test starts for itself: ended when the test is over, the last first. */
import { afterEach } from '@jest/globals';
import { connectRedis } from '@posthorn/store';
import { type Receiver, startReceiver } from '@posthorn/testing';
import { startProxy, type WayToRedis } from './chaos/proxy.ts';
import { type Process, startProcess } from './processes.ts';
import { apiClients, startWorld, type World, type WorldOptions } from './world.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Has something done when the test is over. */
export function atEnd(end: () => unknown): void {
  ends.push(end);
}

export async function ownWorld(options?: WorldOptions): Promise<World> {
  const world = await startWorld(options);
  atEnd(() => world.stop());
  return world;
}

export async function ownReceiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const receiver = await startReceiver(...args);
  atEnd(() => receiver.close());
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

/** One process of each app, ready, and clients of their APIs; ingest and worker may have settings of their own. */
export async function ownApps(
  env: Record<string, string>,
  change: { ingest?: Record<string, string>; worker?: Record<string, string> } = {},
) {
  const ingest = ownProcess('ingest', { ...env, ...change.ingest });
  const worker = ownProcess('worker', { ...env, ...change.worker });
  const operator = ownProcess('console', env);
  const ingestUrl = (await ingest.ready).url;
  await worker.ready;
  return { ...apiClients(ingestUrl, (await operator.ready).url), ingestUrl, ingest, worker, operator };
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
