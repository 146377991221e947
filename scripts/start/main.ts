/** `npm start`: runs everything on one machine, with a sample receiver and one example event. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Accepted, createPublisher, type PublishedEvent } from '@posthorn/client';
import { useNoProxyForLoopback } from '@posthorn/core';
import { buildPage } from '../build-page.ts';
import { dataDir, explainFileError, prepareFolder } from '../folder.ts';
import { answersOnceLoaded, startRedis } from '../redis/server.ts';
import { type AppProcess, startApp } from './app-process.ts';
import { type DemoState, loadState } from './keys.ts';
import { writeOwnFile } from './own-file.ts';
import { APP_NAMES, type AppName, choosePorts } from './ports.ts';
import { claimRun, isAlive, type Run } from './run-file.ts';
import { type Received, startSampleReceiver } from './sample-receiver.ts';
import { ensureSampleSubscription } from './sample-subscription.ts';
import { SHOWN_HEADERS, showAddresses, showDelivery } from './show.ts';

const keysFile = join(dataDir, 'keys.json');
const runFile = join(dataDir, 'running.json');
const logDir = join(dataDir, 'logs');
const say = (line = '') => console.log(line);
/**
 * Only a delivery that does not come takes longer, such as after an operator has changed the sample receiver's
 * subscription.
 */
const DELIVERY_LIMIT_MS = 30_000;

/**
 * Called in reverse order at the end, whatever the reason. Everything that is started registers here at once, ready or
 * not.
 */
const cleanUp: (() => Promise<void> | void)[] = [];
const atEnd = (end: () => Promise<void> | void) => void cleanUp.push(end);
/** Aborted when the end begins: interrupts long work that is registered nowhere else. */
const ending = new AbortController();

/** Makes the end wait for work that `ending` interrupts, so that the work can remove what is unfinished. */
async function finishing<T>(work: Promise<T>): Promise<T> {
  const settled = work.then(
    () => undefined,
    () => undefined,
  );
  atEnd(() => settled);
  return await work;
}

async function main(): Promise<void> {
  useNoProxyForLoopback(process.env);
  prepareFolder(dataDir);
  mkdirSync(logDir, { recursive: true });
  const before = claimRun(runFile);
  atEnd(() => rmSync(runFile, { force: true }));
  const ports = await choosePorts(process.env, say);
  const state = loadState(keysFile);
  say('Starting Posthorn ...');
  const run: Run = { pid: process.pid, keysFile };
  const redis = await provideRedis(before, run);
  await finishing(buildPage(say, ending.signal));

  let first: ((received: Received) => void) | undefined;
  const receiver = await startSampleReceiver(state.sample?.port ?? 0, SHOWN_HEADERS, (received) => {
    if (first) first(received);
    else
      say(
        `  ${new Date().toISOString()}  sample receiver got ${received.headers['service-event']}  ${received.headers['service-event-id']}`,
      );
  });
  atEnd(() => receiver.close());
  if (state.sample) receiver.setSecret(state.sample.secret);

  const apps = await startApps(redis.url, state, ports);
  const urls = Object.fromEntries(apps.map(({ name, url }) => [name, url])) as Record<AppName, string>;
  writeOwnFile(runFile, { ...run, urls });
  state.sample = await ensureSampleSubscription(urls.console, state, receiver);
  writeOwnFile(keysFile, state);
  receiver.setSecret(state.sample.secret);

  const arrived = new Promise<Received>((resolve) => {
    first = resolve;
  });
  const { id: eventId, deliveries } = await publishExample(urls.ingest, state.publisherKey);
  const delivery =
    deliveries > 0 ? await Promise.race([arrived, wait(DELIVERY_LIMIT_MS, undefined, { ref: false })]) : undefined;
  first = undefined;
  if (delivery) showDelivery(delivery);
  else
    say(
      `\nThe example event has not reached the sample receiver. To see why: npx posthorn why ${eventId} ${state.sample.subscriptionId}\n`,
    );
  showAddresses(urls, { state, redisUrl: redis.url, dir: dataDir });
  const why = await Promise.race([
    ...apps.map(({ name, ended }) => ended.then((what) => `${what}. Its log: ${join(logDir, `${name}.log`)}`)),
    redis.ended.then(
      () =>
        `Redis exited. Its log: ${join(dataDir, 'redis/redis.log')}. The next npm start continues with the same data.`,
    ),
  ]);
  await end(1, why);
}

/**
 * Finds or starts Redis. Returns where it is, and a promise for its end if it is ours; `before` is what an earlier run
 * left.
 */
async function provideRedis(before: Run | undefined, run: Run): Promise<{ url: string; ended: Promise<void> }> {
  const given = process.env.REDIS_URL?.trim();
  if (given) return { url: given, ended: new Promise(() => undefined) };
  const remember = (redis: { pid: number; port: number }) => {
    run.redis = redis;
    writeOwnFile(runFile, run);
  };
  // An earlier run was killed and its Redis still runs: use it, with the same data.
  if (before?.redis && isAlive(before.redis.pid) && (await answersOnceLoaded(before.redis.port))) {
    const { pid, port } = before.redis;
    remember(before.redis);
    atEnd(() => void process.kill(pid, 'SIGTERM'));
    return { url: `redis://127.0.0.1:${port}`, ended: gone(pid) };
  }
  const options = { say, atEnd, spawned: remember, signal: ending.signal };
  const redis = await finishing(startRedis(join(dataDir, 'redis'), options));
  return { url: redis.url, ended: gone(redis.pid) };
}

/** Resolves once no process has this id. */
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await wait(1_000);
}

async function startApps(redisUrl: string, state: DemoState, ports: Record<AppName, number>): Promise<AppProcess[]> {
  const env = {
    REDIS_URL: redisUrl,
    HOST: '127.0.0.1',
    PUBLISHER_KEYS: `demo:both:${state.publisherKey}`,
    OPERATOR_TOKENS: `demo:${state.operatorToken}`,
    SECRET_ENCRYPTION_KEY: state.secretEncryptionKey,
    // The sample receiver is on this machine; a real one never is.
    ALLOWED_PRIVATE_NETWORKS: process.env.ALLOWED_PRIVATE_NETWORKS ?? '127.0.0.0/8,::1/128',
    REQUIRE_HTTPS: 'never',
    // A higher level leaves out the line `ready`, which is waited for.
    ...(/warn|error|fatal|silent/.test(process.env.LOG_LEVEL ?? '') && { LOG_LEVEL: 'info' }),
  };
  return await Promise.all(
    APP_NAMES.map((name) =>
      startApp(name, {
        env: { ...env, PORT: String(ports[name]) },
        logDir,
        atEnd,
        say,
        // All apps have the same warnings, such as a Redis that can't be reached, and the others also warn about
        // ALLOWED_PRIVATE_NETWORKS at each start.
        saysWarnings: name === 'ingest',
      }),
    ),
  );
}

async function publishExample(ingestUrl: string, key: string): Promise<Accepted> {
  const publisher = createPublisher({ url: ingestUrl, key });
  const accepted = await publisher.publish(exampleEvent);
  await publisher.close();
  return accepted;
}

const exampleEvent: PublishedEvent = {
  type: 'session.approved',
  environment: 'sandbox',
  data: {
    id: '3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11',
    reference: 'order-1042',
    status: 'approved',
    country: 'FR',
    tier: 2,
    achieved_tier: 2,
    metadata: { user_id: 'u_8731' },
  },
};

/** Ends everything and exits; prints `why` if there is a reason other than a signal. */
async function end(code: number, why?: string): Promise<void> {
  if (ending.signal.aborted) return;
  ending.abort();
  if (why) console.error(why);
  else say('\nStopping ...');
  // Something may be registered while this waits.
  for (let undo = cleanUp.pop(); undo !== undefined; undo = cleanUp.pop()) {
    try {
      await undo();
    } catch (error) {
      console.error(String(error));
    }
  }
  process.exit(code);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(0));
// Nobody reads the output any more, for example after `npm start | head`.
process.stdout.on('error', () => void end(1));
try {
  await main();
} catch (error) {
  await end(1, String(explainFileError(error)?.message ?? (error instanceof Error ? error.message : error)));
}
