/** Redis servers and sentinels that a test starts, and Posthorn on them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, testCertificate } from '@posthorn/testing';
import { freePort } from '../scripts/free-port.ts';
import { type OwnRedis, startRedis, startServer } from '../scripts/redis/server.ts';
import { type AppsOptions, atEnd, ownApps, ownClient, ownDir, ownReceiver } from './own.ts';
import { worldEnv } from './world.ts';

const say = () => undefined;
/** A quorum larger than the number of sentinels: with it, there is no failover. */
const NEVER_REACHED = 99;

/** Starts a server; in a folder that has the data of an earlier one, with these data. */
export async function redisServer(
  extra: string[] = [],
  { dir = ownDir(), port }: { dir?: string; port?: number | undefined } = {},
): Promise<OwnRedis> {
  const redis = await startRedis(dir, { say, extra, port });
  atEnd(() => redis.stop());
  return redis;
}

/** The settings of a server with TLS, and its certificate. */
export function tls() {
  const dir = ownDir();
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
  writeFileSync(cert, testCertificate.cert);
  writeFileSync(key, testCertificate.key);
  const settings = { 'tls-cert-file': cert, 'tls-key-file': key, 'tls-ca-cert-file': cert, 'tls-auth-clients': 'no' };
  return { cert, settings };
}

export const asArguments = (settings: Record<string, string>) =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);

interface Sentinels {
  servers: OwnRedis[];
  /** Until this is called there is no failover, whatever happens to the master. */
  allowFailover(): Promise<void>;
}

interface SentinelOptions {
  count: number;
  replicas: number;
  settings?: Record<string, string>;
  /** The password of the sentinels and of the servers that they watch. */
  password?: string;
}

/**
 * Starts sentinels that watch a master under the name `posthorn`, and waits until they know its replicas and each
 * other.
 */
export async function startSentinels(
  masterPort: number,
  { count, replicas, settings = {}, password = '' }: SentinelOptions,
): Promise<Sentinels> {
  const servers: OwnRedis[] = [];
  for (let i = 0; i < count; i++) {
    const [dir, port] = [ownDir(), await freePort()];
    const config = join(dir, 'sentinel.conf');
    const lines = [
      `port ${port}`,
      `dir ${dir}`,
      ...Object.entries(settings).map(([name, value]) => `${name} ${value}`),
      `sentinel monitor posthorn 127.0.0.1 ${masterPort} ${NEVER_REACHED}`,
      'sentinel down-after-milliseconds posthorn 1000',
      'sentinel failover-timeout posthorn 10000',
      ...(password ? [`requirepass ${password}`, `sentinel auth-pass posthorn ${password}`] : []),
    ];
    writeFileSync(config, lines.join('\n'));
    const sentinel = await startServer(dir, { port, args: [config, '--sentinel'], say });
    atEnd(() => sentinel.stop());
    servers.push(sentinel);
  }
  const clients = servers.map(({ port }) => ownClient({ REDIS_URL: `redis://:${password}@127.0.0.1:${port}` }));
  for (const client of clients) {
    client.on('error', () => undefined);
    await eventually('the sentinels to know all', async () => {
      const [fields] = (await client.call('SENTINEL', 'MASTERS')) as string[][];
      const of = (name: string) => Number(fields?.[fields.indexOf(name) + 1]);
      return of('num-slaves') === replicas && of('num-other-sentinels') === count - 1;
    });
  }
  return {
    servers,
    async allowFailover() {
      const quorum = String(Math.ceil((count + 1) / 2));
      for (const client of clients) await client.call('SENTINEL', 'SET', 'posthorn', 'quorum', quorum);
    },
  };
}

/** Posthorn on a Redis of its own, with one subscription. */
export async function system(change: Record<string, string>, options?: AppsOptions) {
  const env: Record<string, string> = { ...worldEnv('posthorn', 'redis://127.0.0.1'), LOG_LEVEL: 'info', ...change };
  const apps = await ownApps(env, options);
  const to = await ownReceiver();
  await apps.subscribe(to.url);
  return { ...apps, to, env };
}

/** Publishes until an event is accepted, while ingest refuses. */
export const accepted = (publish: () => Promise<{ status: number }>) =>
  eventually('an event to be accepted', async () => [200, 202].includes((await publish()).status));
