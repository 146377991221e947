/** Shared by all benchmarks: a Redis of its own for each, processes that report their CPU, medians. */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Accepted, createPublisher, type PublishedEvent, type Publisher } from '@posthorn/client';
import { ENVIRONMENTS, SESSION_EVENT_TYPES } from '@posthorn/core';
import { connectRedis } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { transformSync } from 'rolldown/utils';
import { callApi, type Operate, subscribe as subscribeWith } from '../scripts/api-client.ts';
import { root } from '../scripts/folder.ts';
import { imageEnvironment } from '../scripts/image/environment.ts';
import { killDescendants } from '../scripts/process-tree.ts';
import { startRedis } from '../scripts/redis/server.ts';
import { startScript, stopChild } from '../scripts/script-process.ts';

/** Longer than the grace period of the apps. */
const STOP_LIMIT_MS = 60_000;
const HUNG_MS = 60_000;
/**
 * The metrics of the event loop's lag include the interval at which it is sampled (packages/runtime/src/metrics.ts).
 */
const LAG_SAMPLE_MS = 50;
export const ENCRYPTION_KEY = Buffer.alloc(32, 1);
export type EventType = PublishedEvent['type'];
export const PUBLISHER_KEY = 'bench-publisher-key-0123456789';
export const OPERATOR_TOKEN = 'bench-operator-token-0123456789';

/** A running child process and what its `ready` line says. */
export interface BenchProcess {
  /** Where it listens. */
  url: string;
  child: ChildProcess;
  stop(): Promise<void>;
}

export type Bench = Awaited<ReturnType<typeof openBench>>;

/** Snapshots and rewrites of the append-only file would take the CPU of what is measured. */
const NOTHING_IN_BACKGROUND = ['--save', '', '--auto-aof-rewrite-percentage', '0'];

export interface RedisOptions {
  appendFsync?: 'everysec' | 'always';
  /** How long bytes between the measured processes and Redis take, each way. */
  delayMs?: number;
}

/** Starts a fresh Redis with an append-only file. Returns functions that start the measured processes on it. */
export async function openBench({ appendFsync = 'everysec', delayMs = 0 }: RedisOptions = {}, name = '') {
  const dir = join(root, `.posthorn/bench-${process.pid}${name.replaceAll(/\W+/g, '-')}`);
  rmSync(dir, { recursive: true, force: true });
  // A benchmark that fails or is interrupted leaves nothing behind.
  process.once('exit', () => {
    killDescendants();
    rmSync(dir, { recursive: true, force: true });
  });
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
  const startOwn = (folder: string, extra: string[]) =>
    startRedis(folder, { say: console.log, extra: ['--appendfsync', appendFsync, ...NOTHING_IN_BACKGROUND, ...extra] });
  const server = await startOwn(dir, []);
  const redis = connectRedis({ REDIS_URL: server.url });
  const running = new Set<BenchProcess>();
  /** Where the measured processes find Redis. */
  let url = server.url;

  const start = async (script: string, env: Record<string, string> = {}): Promise<BenchProcess> => {
    const { child, ready } = startScript(script, {
      env: { ...process.env, REDIS_URL: url, PORT: '0', ...env },
      onLine: (line) => {
        if (!line.startsWith('{')) console.error(line);
      },
    });
    const started: BenchProcess = {
      ...(await ready),
      child,
      async stop() {
        running.delete(started);
        await stopChild(child, STOP_LIMIT_MS);
      },
    };
    running.add(started);
    return started;
  };

  if (delayMs > 0) {
    const network = await start('bench/processes/slow-network.ts', { DELAY_MS: String(delayMs) });
    url = network.url.replace('http:', 'redis:');
    console.log(`Redis is ${delayMs} ms away: PING takes ${(await pingMs(url)).toFixed(1)} ms (median).\n`);
  }

  return {
    redis,
    /** Without the delay. */
    redisUrl: server.url,
    redisPid: server.pid,
    start,
    /**
     * Starts a program of the plain system. As JavaScript, like the built apps: Node would need CPU and memory for
     * types.
     */
    startPlain(program: 'ingest' | 'worker', env: Record<string, string> = {}) {
      const file = join(dir, `plain-${program}.mjs`);
      const source = readFileSync(join(root, `bench/processes/plain-${program}.ts`), 'utf8');
      writeFileSync(file, transformSync(file, source, { lang: 'ts' }).code);
      return start(relative(root, file), env);
    },
    /** As the image starts it. */
    startApp: (app: 'ingest' | 'worker' | 'console', env: Record<string, string> = {}) =>
      start(`apps/${app}/dist/main.cjs`, {
        ...imageEnvironment(),
        PUBLISHER_KEYS: `bench:both:${PUBLISHER_KEY}`,
        OPERATOR_TOKENS: `bench:${OPERATOR_TOKEN}`,
        SECRET_ENCRYPTION_KEY: ENCRYPTION_KEY.toString('base64'),
        ALLOWED_PRIVATE_NETWORKS: '127.0.0.0/8',
        REQUIRE_HTTPS: 'never',
        OPERATOR_RATE_LIMIT: '0',
        // All load comes from one client IP.
        MAX_CLIENT_CONNECTIONS: '10000',
        ...env,
      }),
    /** Starts a replica and waits until it is in sync with Redis. */
    async startReplica() {
      const replica = await startOwn(join(dir, 'replica'), ['--replicaof', '127.0.0.1', String(server.port)]);
      const client = connectRedis({ REDIS_URL: replica.url });
      await until('the replica', async () => /master_link_status:up/.test(await client.info('replication')));
      client.disconnect();
      return replica;
    },
    /** CPU time that Redis has used so far, in microseconds. */
    async redisCpuUs(): Promise<number> {
      const info = await redis.info('cpu');
      const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]);
      return (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e6;
    },
    async redisBytes(): Promise<number> {
      return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    },
    async close() {
      for (const one of running) await one.stop();
      redis.disconnect();
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * CPU time that a process has used so far, in microseconds, and its resident memory, as the kernel counts them (Linux).
 */
export async function processUsage(pid: number): Promise<{ cpuUs: number; residentBytes: number }> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  // User and system time in hundredths of a second; resident memory in pages of 4 kB.
  return { cpuUs: (Number(fields[11]) + Number(fields[12])) * 10_000, residentBytes: Number(fields[21]) * 4096 };
}

/** The environment of an app whose tracing `askCpuUs` can turn on and off. Its spans go to this collector. */
export const withTracingSwitch = (collectorUrl: string) => ({
  NODE_OPTIONS: `--import=${pathToFileURL(join(root, 'bench/processes/tracing-switch.ts')).href}`,
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl,
});

/**
 * Returns the exact CPU time, in microseconds, of an app with the environment of `withTracingSwitch`. From then on, it
 * traces if `isTracing`.
 */
export async function askCpuUs({ child }: BenchProcess, isTracing = false): Promise<number> {
  // A process without that environment never answers.
  const answer = once(child, 'message', { signal: AbortSignal.timeout(HUNG_MS) });
  child.send(isTracing);
  const [cpuUs] = await answer;
  return Number(cpuUs);
}

async function pingMs(url: string): Promise<number> {
  const redis = connectRedis({ REDIS_URL: url });
  const times = await inParallel(100, 1, () => redis.ping());
  redis.disconnect();
  return median(times);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The median of each figure over several runs. */
export function medians<F extends Record<keyof F, number>>(runs: readonly F[]): F {
  const names = Object.keys(runs[0] ?? {}) as (keyof F)[];
  return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))])) as F;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Like `eventually` of the tests, with a longer limit, and always as often: a figure may be how long it took. */
export const until = <T>(what: string, probe: () => Promise<T | false>, limitMs = 300_000, everyMs = 20) =>
  eventually(what, probe, limitMs, everyMs);

/** Makes `count` calls of `call`, `concurrency` at a time. Resolves with the duration of each in milliseconds. */
export async function inParallel(
  count: number,
  concurrency: number,
  call: (i: number) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = [];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < count; i = next++) {
      const startedAt = performance.now();
      await call(i);
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return times;
}

/**
 * A typical event, of a session of its own. Its body as delivered has about 400 bytes, depending on the length of its
 * type.
 */
export function event400(type: EventType = 'session.approved'): PublishedEvent {
  const metadata = { user_id: 'u_8731', note: 'x'.repeat(60) };
  const data = {
    // The client has the events of a session in one call at a time.
    id: randomUUID(),
    reference: 'order-1042',
    status: 'approved',
    country: 'FR',
    tier: 2,
    achieved_tier: 2,
    metadata,
  };
  return { type, environment: 'sandbox', data };
}

/** All combinations of event type and environment. */
export const TOPICS = SESSION_EVENT_TYPES.flatMap((type) => ENVIRONMENTS.map((environment) => ({ type, environment })));

/** Creates an address of the receiver for each topic, so that each event goes to exactly one. */
export async function subscribeToTopics(consoleUrl: string, receiverUrl: string): Promise<void> {
  for (const { type, environment } of TOPICS) {
    await subscribeMany(consoleUrl, receiverUrl, 1, { event_types: [type], environment });
  }
}

/** A typical event of one topic after the other. */
export const topicEvent = (i: number): PublishedEvent => ({ ...event400(), ...TOPICS[i % TOPICS.length]! });

let sessions = 0;

/** A small event, of a session of its own, that contains the time at which it is sent, or planned to be sent. */
export function timedEvent(type: EventType, sentAtMs = Date.now()): PublishedEvent {
  return { type, environment: 'sandbox', data: { id: `s${sessions++}`, status: 'x', sent_at: sentAtMs } };
}

/**
 * Publishes `count` events in batches of at most 500, four at a time; returns how many deliveries they have together.
 */
export async function publishMany(
  ingestUrl: string,
  count: number,
  eventAt: (i: number) => PublishedEvent,
): Promise<number> {
  const publisher = createPublisher({ url: ingestUrl, key: PUBLISHER_KEY });
  const accepting: Promise<Accepted>[] = [];
  for (let i = 0; i < count; i++) {
    await publisher.ready();
    accepting.push(publisher.publish(eventAt(i)));
  }
  const accepted = await Promise.all(accepting);
  await publisher.close();
  return accepted.reduce((sum, { deliveries }) => sum + deliveries, 0);
}

/** A publisher whose every event is a call of its own, sent at once. */
export function singlePublisher(ingestUrl: string): Publisher {
  return createPublisher({ url: ingestUrl, key: PUBLISHER_KEY, maxBatch: 1, concurrency: 1_000 });
}

export async function post(url: string, key: string, body: unknown): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

/** Creates and validates a subscription; resolves with its id. */
export async function subscribe(consoleUrl: string, url: string, fields?: object): Promise<string> {
  const operate: Operate = (method, path, body) =>
    callApi(method, `${consoleUrl}${path}`, { token: OPERATOR_TOKEN, body });
  return (await subscribeWith(operate, url, fields)).id;
}

/** Creates subscriptions to addresses of one receiver. */
export async function subscribeMany(
  consoleUrl: string,
  receiverUrl: string,
  count: number,
  fields: object = {},
): Promise<string[]> {
  const ids: string[] = [];
  await inParallel(count, 20, async (i) => {
    ids.push(await subscribe(consoleUrl, `${receiverUrl}/${i}`, fields));
  });
  return ids;
}

/** How many deliveries a receiver has got, or batches a collector. */
export async function countOf({ url }: Pick<BenchProcess, 'url'>): Promise<number> {
  return Number(await (await fetch(`${url}/count`)).text());
}

export interface Arrival {
  path: string;
  atMs: number;
  /** Time since `sent_at` in the event. */
  ageMs: number;
}

/** Reads what has arrived at the good addresses of a mixed receiver since the last call. */
export async function readArrivals(receiver: BenchProcess): Promise<Arrival[]> {
  return (await (await fetch(`${receiver.url}/arrivals`)).json()) as Arrival[];
}

export interface Health {
  /** Checks of /healthz and /readyz that failed or took longer than 2 s, and the number of all checks. */
  failed: number;
  checks: number;
  slowestMs: number;
  /** The longest time that the first process's event loop was blocked. */
  loopMs: number;
}

/** Checks the health of processes five times a second until it is stopped. */
export function watchHealth(processes: readonly BenchProcess[]): { stop(): Promise<Health> } {
  const health: Health = { failed: 0, checks: 0, slowestMs: 0, loopMs: 0 };
  let stopped = false;
  const check = async (url: string) => {
    const startedAt = performance.now();
    health.checks += 1;
    const ok = await fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (!ok) health.failed += 1;
    health.slowestMs = Math.max(health.slowestMs, performance.now() - startedAt);
  };
  const readLoop = async () => {
    // Each reading starts a new maximum.
    const text = await (await fetch(`${processes[0]!.url}/metrics`)).text();
    const lagMs = 1_000 * Number(/^nodejs_eventloop_lag_max_seconds\S* ([\d.e+-]+)/m.exec(text)?.[1]);
    return Math.max(0, lagMs - LAG_SAMPLE_MS);
  };
  const run = async () => {
    await readLoop();
    for (let round = 0; !stopped; round++) {
      await Promise.all(processes.flatMap(({ url }) => [check(`${url}/healthz`), check(`${url}/readyz`)]));
      if (round % 5 === 0) health.loopMs = Math.max(health.loopMs, await readLoop());
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    health.loopMs = Math.max(health.loopMs, await readLoop());
  };
  const running = run();
  return {
    async stop() {
      stopped = true;
      await running;
      return health;
    },
  };
}
