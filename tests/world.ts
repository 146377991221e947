/**
 * Runs a complete Posthorn in the test's process: apps on free ports, a key prefix of its own, and clients of both
 * APIs.
 */
import { type App, type Clock, stopServices } from '@posthorn/runtime';
import { connectRedis } from '@posthorn/store';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { buildConsole } from '../apps/console/src/build.ts';
import { loadConsoleSettings } from '../apps/console/src/config.ts';
import { buildIngest } from '../apps/ingest/src/build.ts';
import { loadIngestSettings } from '../apps/ingest/src/config.ts';
import { buildWorker } from '../apps/worker/src/build.ts';
import { loadWorkerSettings } from '../apps/worker/src/config.ts';
import { callApi, subscribe } from '../scripts/api-client.ts';

export const PUBLISHER_KEY = 'publisher-key-for-all-tests';
export const OPERATOR_TOKEN = 'operator-token-for-tests';
export const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');

export interface WorldOptions {
  /** Settings of all apps, in addition to those of `worldEnv`. */
  env?: Record<string, string>;
  /** Settings of the workers only: the console's validations must succeed however short the workers' limit is. */
  workerEnv?: Record<string, string>;
  ingests?: number;
  workers?: number;
  clock?: Clock;
  /** In place of `clock`, where the clocks of machines differ. */
  consoleClock?: Clock;
  redisUrl?: string;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** The environment that all apps of a world get. */
export function worldEnv(prefix: string, redisUrl: string): Record<string, string> {
  return {
    REDIS_URL: redisUrl,
    KEY_PREFIX: prefix,
    PORT: '0',
    LOG_LEVEL: 'silent',
    PUBLISHER_KEYS: `tests:both:${PUBLISHER_KEY},sandbox-only:sandbox:${PUBLISHER_KEY}-sandbox`,
    OPERATOR_TOKENS: `tests:${OPERATOR_TOKEN}`,
    SECRET_ENCRYPTION_KEY: ENCRYPTION_KEY,
    ALLOWED_PRIVATE_NETWORKS: '127.0.0.0/8',
    REQUIRE_HTTPS: 'never',
    // No attempt reaches its time limit, however slow the machine is, unless the test sets a shorter one.
    ATTEMPT_TIMEOUT: '10m',
    SHUTDOWN_GRACE: '5s',
  };
}

export async function startWorld(options: WorldOptions = {}) {
  const prefix = testPrefix();
  const redisUrl = options.redisUrl ?? testRedisUrl();
  const env: Record<string, string> = { ...worldEnv(prefix, redisUrl), ...options.env };
  const workerEnv = { ...env, ...options.workerEnv };
  const repeat = <T>(count: number, build: () => T) => Array.from({ length: count }, build);
  const ingests = repeat(options.ingests ?? 1, () => buildIngest(loadIngestSettings(env), options.clock));
  const workers = repeat(options.workers ?? 1, () => buildWorker(loadWorkerSettings(workerEnv), options.clock));
  const consoleApp = buildConsole(loadConsoleSettings(env), options.consoleClock ?? options.clock);
  const apps = [...ingests, ...workers, consoleApp];
  const running = new Set(apps);
  // Once: disconnecting a closed connection again keeps the process alive for two more seconds.
  const stopOnce = async (app: (typeof apps)[number]) => {
    if (running.delete(app)) await stopApp(app);
  };
  for (const { http, services } of apps) for (const service of [http, ...services]) await service.start();
  const urlOf = (app: (typeof apps)[number]) => String(app.http.describe().url);
  const redis = connectRedis({ REDIS_URL: redisUrl });
  const apis = apiClients(urlOf(ingests[0]!), urlOf(consoleApp));
  return {
    prefix,
    env,
    redis,
    ...apis,
    ingestUrls: ingests.map(urlOf),
    workerUrls: workers.map(urlOf),
    consoleUrl: urlOf(consoleApp),
    /** The express app of a process, to inspect its routes. */
    expressOf: (app: 'ingest' | 'console') => (app === 'ingest' ? ingests[0]! : consoleApp).http.app,
    /** Stops one ingest like a deployment. */
    stopIngest: (index: number) => stopOnce(ingests[index]!),
    /** Stops one worker like a deployment. */
    stopWorker: (index: number) => stopOnce(workers[index]!),
    async stop() {
      for (const app of [...apps].reverse()) await stopOnce(app);
      await removeKeys(redis, prefix);
      redis.disconnect();
    },
  };
}

const stopApp = ({ services, http, logger }: App) => stopServices([...services, http], 5_000, logger);

/** Removes every key of a prefix. */
export async function removeKeys(redis: ReturnType<typeof connectRedis>, prefix: string): Promise<void> {
  const keys = await redis.keys(`${prefix}:*`);
  // One at a time: on a Cluster they are in different slots.
  await Promise.all(keys.map((key) => redis.del(key)));
}

/** Clients of the publisher API and the operator API. */
export function apiClients(ingestUrl: string, consoleUrl: string) {
  const publish = (path: string, body: unknown, token = PUBLISHER_KEY) =>
    callApi('POST', `${ingestUrl}${path}`, { token, body });
  const operate = (method: string, path: string, body?: unknown) =>
    callApi(method, `${consoleUrl}${path}`, { token: OPERATOR_TOKEN, body });
  return {
    publish: (event: unknown, key?: string) => publish('/v1/events', event, key),
    publishBatch: (events: unknown) => publish('/v1/events/batch', { events }),
    operate,
    /** Creates a subscription and validates it. */
    subscribe: (url: string, fields?: object) => subscribe(operate, url, fields),
    delivery: async (id: string) => (await operate('GET', `/v1/deliveries/${id}`)).body,
    deliveries: async (query: string) => (await operate('GET', `/v1/deliveries?${query}`)).body.data,
    subscription: async (id: string) => (await operate('GET', `/v1/subscriptions/${id}`)).body,
  };
}

/** A valid event; `change` replaces top-level fields. */
export function sampleEvent(change: Record<string, unknown> = {}) {
  return { type: 'session.approved', environment: 'sandbox', data: { id: 's-1', status: 'approved' }, ...change };
}
