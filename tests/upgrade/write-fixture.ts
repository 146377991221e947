/**
 * `npm run fixture`: writes `tests/fixtures/<version>.json`, what this release leaves in Redis. Each release keeps one.
 * `--from=<folder>` runs the apps of another checkout.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connectRedis } from '@posthorn/store';
import { eventually, isDelivery, type Receiver, startReceiver } from '@posthorn/testing';
import { readArguments } from '../../scripts/arguments.ts';
import { root } from '../../scripts/folder.ts';
import { endTreeOnSignals } from '../../scripts/process-tree.ts';
import { startRedis } from '../../scripts/redis/server.ts';
import { type ScriptProcess, startScript } from '../../scripts/script-process.ts';
import { apiClients, ENCRYPTION_KEY, sampleEvent, worldEnv } from '../world.ts';
import { dumpKeys, type Fixture, fixturesDir } from './fixture.ts';

endTreeOnSignals();
const { from } = readArguments({ from: { type: 'string', default: root } });
const dir = resolve(from);
const { version: release } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as { version: string };

/** The addresses, and the event type that each takes; `good` takes all. The receiver's path is the name. */
const TYPES = {
  good: 'all',
  retrying: 'session.resubmission_requested',
  failing: 'session.declined',
  replayed: 'session.expired',
  rebuilt: 'session.cancelled',
  held: 'session.in_review',
  hanging: 'session.submitted',
  deleted: 'session.started',
} as const;
type Name = keyof typeof TYPES;

const own = { KEY_PREFIX: 'posthorn', PARTITIONS: '2', SECRET_ENCRYPTION_KEY: ENCRYPTION_KEY };
const redisDir = mkdtempSync(join(tmpdir(), 'posthorn-fixture-'));
const redis = await startRedis(redisDir, { say: () => undefined });
const env = { PATH: process.env.PATH ?? '', ...worldEnv(own.KEY_PREFIX, redis.url), ...own, LOG_LEVEL: 'info' };
const running: ScriptProcess[] = [];
const receiver = await startReceiver();
try {
  const fixture = await write(receiver);
  mkdirSync(fixturesDir, { recursive: true });
  const file = join(fixturesDir, `${release}.json`);
  writeFileSync(file, `${JSON.stringify(fixture, null, 1)}\n`);
  console.log(`${file}: ${fixture.keys.length} keys`);
} finally {
  for (const { child, ended } of running) {
    child.kill('SIGKILL');
    await ended;
  }
  await receiver.close();
  await redis.stop();
  rmSync(redisDir, { recursive: true, force: true });
}

async function start(app: string, settings: Record<string, string> = {}) {
  const onLine = (line: string) => {
    if (!line.includes('"level":"info"')) console.error(`${app}: ${line}`);
  };
  const started = startScript(`apps/${app}/src/main.ts`, { env: { ...env, ...settings }, dir, onLine });
  running.push(started);
  return { ...started, url: (await started.ready).url };
}

async function write(to: Receiver): Promise<Fixture> {
  const failing = new Set<string>(['/failing', '/replayed', '/rebuilt', '/retrying']);
  const hanging = new Set<string>(['/hanging']);
  to.answerWith((request, response) => {
    if (!isDelivery(request)) response.end();
    else if (hanging.has(request.path)) return;
    else response.writeHead(failing.has(request.path) ? 500 : 200).end('{"why":"fixture"}');
  });
  const [ingest, operator] = [await start('ingest'), await start('console')];
  const api = apiClients(ingest.url, operator.url);
  const ok = async (method: string, path: string, body?: unknown) => {
    const answer = await api.operate(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const subscriptions: Fixture['subscriptions'] = {};
  for (const [name, type] of Object.entries(TYPES)) {
    const fields = { event_types: type === 'all' ? 'all' : [type], description: `The address ${name}` };
    const { id, secret } = await api.subscribe(`http://127.0.0.1:${to.port}/${name}`, fields);
    subscriptions[name] = { id, secrets: [secret] };
  }
  const idOf = (name: Name) => subscriptions[name]!.id;
  let made = 0;
  const publish = async (name: Name, data: object = {}) => {
    const id = `evt_${name}_${++made}`;
    const type = TYPES[name] === 'all' ? 'session.created' : TYPES[name];
    const event = sampleEvent({ id, type, data: { id: `session-${name}`, status: 'x', ...data } });
    const { status } = await api.publish(event);
    if (status !== 202) throw new Error(`${id}: ${status}`);
    return id;
  };
  const deliveriesOf = async (name: Name, status: string): Promise<{ id: string; event_id: string }[]> =>
    (await ok('GET', `/v1/deliveries?subscription_id=${idOf(name)}&status=${status}&limit=250`)).data;
  const until = (name: Name, status: string, count: number) => {
    console.error(`waiting for ${count} ${status} of ${name}`);
    return eventually(`${count} ${status} of ${name}`, async () => (await deliveriesOf(name, status)).length >= count);
  };

  // Work that ends: successes, failures that pause an address, replays, a rotated secret, an erasure, a deletion.
  const first = await start('worker', { RETRY_DELAYS: '20ms', PAUSE_AFTER: '2' });
  await publish('good', { reference: 'order-1', metadata: { user_id: 'user-1' } });
  await publish('good', { id: 'session-erased', metadata: { user_id: 'user-erased' } });
  for (let i = 0; i < 2; i++) await publish('failing');
  await until('failing', 'failed', 2);
  await publish('failing');
  await publish('replayed');
  await publish('rebuilt');
  await publish('deleted');
  await until('good', 'succeeded', 8);
  await until('failing', 'held', 1);
  for (const name of ['replayed', 'rebuilt'] as const) await until(name, 'failed', 1);
  await until('deleted', 'succeeded', 1);
  const rotated = await ok('POST', `/v1/subscriptions/${idOf('good')}/rotate-secret`, { overlap: '30d' });
  subscriptions.good!.secrets.push(rotated.secret);
  failing.delete('/replayed');
  const [failed] = await deliveriesOf('replayed', 'failed');
  await ok('POST', `/v1/deliveries/${failed!.id}/replay`);
  await until('replayed', 'succeeded', 1);
  failing.add('/replayed');
  await publish('replayed');
  await until('replayed', 'failed', 2);
  failing.delete('/replayed');
  const { id: bulk } = await ok('POST', '/v1/replays', { subscription_id: idOf('replayed') });
  await eventually('the bulk replay', async () => {
    const { status, outcome } = await ok('GET', `/v1/replays/${bulk}`);
    return status === 'done' && outcome.waiting === 0;
  });
  await ok('POST', `/v1/subscriptions/${idOf('good')}/test`);
  const { id: erasure } = await ok('POST', '/v1/erasures', { user_id: 'user-erased', confirm: true });
  await eventually('the erasure', async () => (await ok('GET', `/v1/erasures/${erasure}`)).status === 'done', 180_000);
  await ok('POST', `/v1/subscriptions/${idOf('held')}/pause`);
  await ok('DELETE', `/v1/subscriptions/${idOf('deleted')}`);
  await eventually('all successes', async () => (await deliveriesOf('good', 'pending')).length === 0);
  const arrived = Object.fromEntries(
    await Promise.all(
      (Object.keys(TYPES) as Name[]).map(async (name) => [
        name,
        (await deliveriesOf(name, 'succeeded')).map(({ event_id: id }) => id),
      ]),
    ),
  ) as Fixture['arrived'];
  first.child.kill('SIGTERM');
  await first.ended;

  // Work that waits: a retry, an attempt in flight when its worker dies, a held delivery, one without an attempt, and a
  // bulk replay.
  const second = await start('worker', { RETRY_DELAYS: '30s,30s' });
  const retrying = await publish('retrying');
  await until('retrying', 'waiting_for_retry', 1);
  const inFlight = await publish('hanging');
  await to.received(1, ({ path }) => path === '/hanging');
  const held = await publish('held');
  await until('held', 'held', 1);
  await eventually('the successes', async () => (await deliveriesOf('good', 'pending')).length === 0);
  arrived.good = (await deliveriesOf('good', 'succeeded')).map(({ event_id: id }) => id);
  second.child.kill('SIGKILL');
  await second.ended;
  const pending = [await publish('good'), await publish('good')];
  const [rebuilt] = await deliveriesOf('rebuilt', 'failed');
  await ok('POST', '/v1/replays', { subscription_id: idOf('rebuilt') });
  const heldByFailures = (await deliveriesOf('failing', 'held')).map(({ event_id: id }) => id);

  const views: Fixture['views'] = {};
  const view = async (path: string) => {
    views[path] = await ok('GET', path);
    return views[path] as { data: { id: string; event_id: string }[] };
  };
  await view('/v1/subscriptions?limit=250');
  for (const [name, { id }] of Object.entries(subscriptions))
    if (name !== 'deleted') await view(`/v1/subscriptions/${id}`);
  const deliveries = (await view('/v1/deliveries?limit=250')).data;
  for (const { id } of deliveries) await view(`/v1/deliveries/${id}`);
  for (const id of new Set(deliveries.map(({ event_id: event }) => event))) await view(`/v1/events/${id}`);
  for (const path of ['audit', 'replays', 'erasures']) await view(`/v1/${path}?limit=250`);
  await view('/v1/timeline?session_id=session-replayed');
  for (const { child, ended } of running) {
    child.kill('SIGKILL');
    await ended;
  }
  const client = connectRedis({ REDIS_URL: redis.url });
  // These keys name the machine. Without them, the data are as if the processes had been gone for a minute.
  await client.del(`${own.KEY_PREFIX}:{0}:workers`, `${own.KEY_PREFIX}:{0}:workers_seen`);
  const installation = `${own.KEY_PREFIX}:installation`;
  const registered = (await client.hkeys(installation)).filter((field) => field.startsWith('process:'));
  if (registered.length > 0) await client.hdel(installation, ...registered);
  const keys = await dumpKeys(client);
  client.disconnect();
  const owed = {
    retrying: [retrying],
    hanging: [inFlight],
    held: [held],
    failing: heldByFailures,
    rebuilt: [rebuilt!.event_id],
    good: pending,
  };
  return { release, writtenAt: new Date().toISOString(), env: own, subscriptions, owed, arrived, views, keys };
}
