/** `npm start`: everything at once on one machine, with a sample receiver and one event to see it work. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { buildPage } from '../build-page.ts';
import { answers, freePort, startRedis } from '../redis/server.ts';
import { type AppProcess, startApp } from './app-process.ts';
import { type DemoState, loadState, saveState } from './keys.ts';
import { type Received, startSampleReceiver } from './sample-receiver.ts';
import { ensureSampleSubscription } from './sample-subscription.ts';

const root = join(import.meta.dirname, '../..');
const dataDir = join(root, '.posthorn');
const stateFile = join(dataDir, 'keys.json');
const runFile = join(dataDir, 'running.json');
const say = (line = '') => console.log(line);

const PORTS = { ingest: 3000, console: 3001, worker: 3002 } as const;

/** Undone in reverse order at the end, whatever the end is. */
const cleanUp: (() => Promise<void> | void)[] = [];
let ending = false;

async function main(): Promise<void> {
  mkdirSync(join(dataDir, 'logs'), { recursive: true });
  refuseSecondStart();
  const state = loadState(stateFile);
  say('Starting Posthorn ...');
  buildPage(say);
  const redis = await provideRedis();

  let first: ((received: Received) => void) | undefined;
  const receiver = await startSampleReceiver(state.sample?.port ?? 0, (received) => {
    if (first) first(received);
    else
      say(
        `  ${new Date().toISOString()}  sample receiver got ${received.headers['service-event']}  ${received.headers['service-event-id']}`,
      );
  });
  cleanUp.push(() => receiver.close());
  if (state.sample) receiver.setSecret(state.sample.secret);

  const apps = await startApps(redis.url, state);
  state.sample = await ensureSampleSubscription(apps.console.url, state, receiver);
  saveState(stateFile, state);
  receiver.setSecret(state.sample.secret);

  const arrived = new Promise<Received>((resolve) => {
    first = resolve;
  });
  await publishExample(apps.ingest.url, state.publisherKey);
  const delivery = await Promise.race([
    arrived,
    new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 10_000)),
  ]);
  first = undefined;
  if (!delivery) throw new Error(`The example event did not arrive. See ${join(dataDir, 'logs')}.`);
  showDelivery(delivery);
  showAddresses(apps, state, redis.url);
  const appEnded = Promise.race(Object.values(apps).map(({ ended }) => ended));
  const why = await Promise.race([
    appEnded.then((what) => `${what}. See ${join('.posthorn', 'logs')}.`),
    redis.ended.then(
      () => `Redis ended. See ${join('.posthorn', 'redis', 'redis.log')}. The next npm start goes on with what it had.`,
    ),
  ]);
  if (!ending) await end(1, why);
}

/** Two runs on the same data would take it away from each other. */
function refuseSecondStart(): void {
  if (existsSync(runFile)) {
    const { pid } = JSON.parse(readFileSync(runFile, 'utf8')) as { pid: number };
    if (isAlive(pid))
      throw new Error(`Posthorn already runs from this folder (process ${pid}). Stop it with Ctrl-C first.`);
  }
}

/** Where Redis is, and when it has ended, if it is of our own. */
async function provideRedis(): Promise<{ url: string; ended: Promise<void> }> {
  const before = existsSync(runFile)
    ? (JSON.parse(readFileSync(runFile, 'utf8')) as { redis?: { pid: number; port: number } })
    : {};
  const remember = (redis?: { pid: number; port: number }) => {
    writeFileSync(runFile, JSON.stringify({ pid: process.pid, redis }));
    cleanUp.push(() => rmSync(runFile, { force: true }));
  };
  if (process.env.REDIS_URL) {
    remember();
    return { url: process.env.REDIS_URL, ended: new Promise(() => undefined) };
  }
  // An earlier run was killed and left its Redis: it goes on with the same data.
  if (before.redis && isAlive(before.redis.pid) && (await answers(before.redis.port))) {
    const { pid, port } = before.redis;
    remember(before.redis);
    cleanUp.push(() => void process.kill(pid, 'SIGTERM'));
    return { url: `redis://127.0.0.1:${port}`, ended: gone(pid) };
  }
  const redis = await startRedis(join(dataDir, 'redis'), { say });
  remember({ pid: redis.pid, port: redis.port });
  cleanUp.push(() => redis.stop());
  return { url: redis.url, ended: gone(redis.pid) };
}

/** Resolves once no process has this id. */
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await wait(1_000);
}

async function startApps(redisUrl: string, state: DemoState): Promise<Record<keyof typeof PORTS, AppProcess>> {
  const common = {
    REDIS_URL: redisUrl,
    HOST: '127.0.0.1',
    PUBLISHER_KEYS: `demo:both:${state.publisherKey}`,
    OPERATOR_TOKENS: `demo:${state.operatorToken}`,
    SECRET_ENCRYPTION_KEY: state.secretEncryptionKey,
    // The sample receiver is on this machine; a real one never is.
    ALLOWED_PRIVATE_NETWORKS: process.env.ALLOWED_PRIVATE_NETWORKS ?? '127.0.0.0/8,::1/128',
    REQUIRE_HTTPS: 'never',
  };
  const start = async (name: keyof typeof PORTS) => {
    const taken = await isTaken(PORTS[name]);
    const port = taken ? await freePort() : PORTS[name];
    if (taken) say(`Port ${PORTS[name]} is taken; ${name} uses ${port}.`);
    const app = await startApp(name, root, { ...common, PORT: String(port) }, join(dataDir, 'logs'));
    cleanUp.push(() => app.stop());
    return app;
  };
  const [ingest, worker, consoleApp] = await Promise.all([start('ingest'), start('worker'), start('console')]);
  return { ingest, worker, console: consoleApp };
}

async function isTaken(port: number): Promise<boolean> {
  const { createServer } = await import('node:net');
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(true));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(false)));
  });
}

async function publishExample(ingestUrl: string, key: string): Promise<void> {
  const response = await fetch(`${ingestUrl}/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(exampleEvent),
  });
  if (response.status !== 202) throw new Error(`The example event was not accepted: ${await response.text()}`);
}

const exampleEvent = {
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

function showDelivery({ headers, body }: Received): void {
  say('\nAn event was published, signed and delivered to the sample receiver, which verified it:\n');
  for (const name of [
    'user-agent',
    'content-type',
    'service-signature',
    'service-event',
    'service-event-id',
    'service-delivery-id',
  ]) {
    say(`  ${name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())}: ${headers[name]}`);
  }
  say(`\n  ${body}\n`);
}

function showAddresses(apps: Record<keyof typeof PORTS, AppProcess>, state: DemoState, redisUrl: string): void {
  const shown = new URL(redisUrl);
  shown.password = '';
  say('Open the console and sign in with the token:\n');
  say(`  ${apps.console.url}     ${state.operatorToken}\n`);
  say(`Publish     ${apps.ingest.url}/v1/events            key  ${state.publisherKey}`);
  say(`APIs        ${apps.console.url}/docs, ${apps.ingest.url}/docs`);
  say('Commands    npm run posthorn -- --help');
  say(`Metrics     ${apps.worker.url}/metrics              also on the other two`);
  say(`Redis       ${shown.href}`);
  say('Logs, keys  .posthorn/\n');
  say('Publish another:\n');
  say(`  curl -X POST ${apps.ingest.url}/v1/events \\`);
  say(`    -H 'Authorization: Bearer ${state.publisherKey}' \\`);
  say(`    -H 'Content-Type: application/json' \\`);
  say(`    -d '{"type":"session.declined","environment":"production","data":{"id":"s-2","status":"declined"}}'\n`);
  say('Ctrl-C stops everything; the next npm start goes on with the same data.\n');
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function end(code: number, why?: string): Promise<void> {
  if (ending) return;
  ending = true;
  if (why) console.error(why);
  else say('\nStopping ...');
  for (const undo of cleanUp.reverse()) {
    try {
      await undo();
    } catch (error) {
      console.error(String(error));
    }
  }
  process.exit(code);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(0));
try {
  await main();
} catch (error) {
  await end(1, String(error instanceof Error ? error.message : error));
}
