/**
 * The processes of a chaos run: a Redis behind a proxy and several of each app. Each keeps its port when it is
 * restarted.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectRedis } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { root } from '../../scripts/folder.ts';
import { freePort } from '../../scripts/free-port.ts';
import { type OwnRedis, startRedis } from '../../scripts/redis/server.ts';
import { complaintsOf, type Process, startProcess } from '../processes.ts';
import { ENCRYPTION_KEY, OPERATOR_TOKEN, PUBLISHER_KEY } from '../world.ts';
import { startProxy, type WayToRedis } from './proxy.ts';

export type AppName = 'ingest' | 'worker' | 'console';

/** One process and its state. */
export interface Member {
  app: AppName;
  url: string;
  env: Record<string, string>;
  /** The checkout whose app it is. */
  dir: string;
  process: Process;
  stopped: boolean;
}

export interface Cast {
  members: Member[];
  redis: OwnRedis;
  proxy: WayToRedis;
  prefix: string;
  /** Returns the output that no disturbance explains: errors in a log, and lines that are not log lines. */
  complaints(): string[];
  kill(member: Member): Promise<void>;
  start(member: Member): void;
  /** Kills Redis with SIGKILL and restarts it with the data of its append-only file. */
  restartRedis(downMs: number): Promise<void>;
  /** Takes a backup as docs/backups.md says, again if Redis is restarted meanwhile. */
  backUp(): Promise<Backup>;
  /**
   * Kills everything with SIGKILL, and starts it on the backup as docs/backups.md says. Resolves with the time when
   * Redis was ready and no app had started.
   */
  restore(backup: Backup): Promise<number>;
  close(): Promise<void>;
}

/** A copy of an RDB file: what Redis had at some moment between the two times. */
export interface Backup {
  rdb: Buffer;
  begunAtMs: number;
  takenAtMs: number;
}

/** Delays and limits in seconds instead of minutes and hours. */
export const RULES = {
  retryDelaysMs: [700, 900, 1_100, 1_300, 1_500],
  attemptTimeoutMs: 800,
  pauseAfter: 20,
  partitions: 2,
} as const;

export async function startCast(
  dir: string,
  counts: Record<AppName, number>,
  { eager, beside = root }: { eager: boolean; beside?: string | undefined },
): Promise<Cast> {
  const start = (app: AppName, env: Record<string, string>, from: string) =>
    startProcess(eager && app === 'worker' ? 'eager-worker' : app, env, from);
  rmSync(dir, { recursive: true, force: true });
  const say = () => undefined;
  let redis = await startRedis(dir, { say });
  const proxy = await startProxy(redis.port);
  const prefix = 'chaos';
  const env = {
    REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
    KEY_PREFIX: prefix,
    PARTITIONS: String(RULES.partitions),
    LOG_LEVEL: 'warn',
    PUBLISHER_KEYS: `chaos:both:${PUBLISHER_KEY}`,
    OPERATOR_TOKENS: `chaos:${OPERATOR_TOKEN}`,
    OPERATOR_RATE_LIMIT: '0',
    SECRET_ENCRYPTION_KEY: ENCRYPTION_KEY,
    ALLOWED_PRIVATE_NETWORKS: '127.0.0.0/8',
    REQUIRE_HTTPS: 'never',
    RETRY_DELAYS: RULES.retryDelaysMs.map((ms) => `${ms}ms`).join(','),
    ATTEMPT_TIMEOUT: `${RULES.attemptTimeoutMs}ms`,
    PAUSE_AFTER: String(RULES.pauseAfter),
    RELEASE_RATE: '500',
    SHUTDOWN_GRACE: '5s',
  };
  const members: Member[] = [];
  for (const [app, count] of Object.entries(counts) as [AppName, number][]) {
    for (let i = 0; i < count; i++) {
      const port = await freePort();
      const own = { ...env, PORT: String(port) };
      // The first process of each app runs from the other checkout. The very first one creates the record of the
      // installation.
      const from = i === 0 ? beside : root;
      const url = `http://127.0.0.1:${port}`;
      const member: Member = { app, url, env: own, dir: from, process: start(app, own, from), stopped: false };
      members.push(member);
      if (members.length === 1) await untilReady(member);
    }
  }
  await Promise.all(members.map(untilReady));
  // Complaints of processes that were replaced.
  const earlier: string[] = [];
  const cast: Cast = {
    members,
    get redis() {
      return redis;
    },
    proxy,
    prefix,
    complaints: () => [...earlier, ...members.flatMap(complaintsAbout)],
    async kill(member) {
      member.process.child.kill('SIGCONT');
      member.process.child.kill('SIGKILL');
      member.stopped = true;
      await member.process.ended;
    },
    start(member) {
      earlier.push(...complaintsAbout(member));
      member.process = start(member.app, member.env, member.dir);
      member.stopped = false;
    },
    async restartRedis(downMs) {
      const { port, pid } = redis;
      process.kill(pid, 'SIGKILL');
      await redis.stop();
      await new Promise((resolve) => setTimeout(resolve, downMs));
      redis = await startRedis(dir, { port, say });
    },
    async backUp() {
      const begunAtMs = Date.now();
      const takenAtMs = await save(redis.url);
      return { rdb: readFileSync(join(dir, 'dump.rdb')), begunAtMs, takenAtMs };
    },
    async restore({ rdb }) {
      const { port, pid } = redis;
      process.kill(pid, 'SIGKILL');
      await Promise.all([redis.stop(), ...members.map((member) => cast.kill(member))]);
      rmSync(dir, { recursive: true });
      mkdirSync(dir);
      writeFileSync(join(dir, 'dump.rdb'), rdb);
      redis = await startRedis(dir, { port, say, extra: ['--appendonly', 'no'] });
      await switchOnAppendOnlyFile(redis.url);
      const restoredAtMs = Date.now();
      for (const member of members) cast.start(member);
      await Promise.all(members.map(untilReady));
      return restoredAtMs;
    },
    async close() {
      await Promise.all(members.filter(({ stopped }) => !stopped).map((member) => cast.kill(member)));
      await proxy.close();
      await redis.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return cast;
}

/** Makes Redis write its RDB file. Resolves with a time at which everything in the file had been stored. */
async function save(url: string): Promise<number> {
  const client = connectRedis({ REDIS_URL: url });
  // It reconnects: Redis may be restarted meanwhile.
  client.on('error', () => undefined);
  const info = async (name: string) => new RegExp(`^${name}:(.*)\\r$`, 'm').exec(await client.info())?.[1];
  const takenAtMs = await eventually('a backup', async () => {
    const run = await info('run_id');
    // Refused while Redis rewrites its append-only file.
    const reply = await client.bgsave().catch((error: Error) => error.message);
    const repliedAtMs = Date.now();
    await eventually('the end of BGSAVE', async () => (await info('rdb_bgsave_in_progress')) === '0');
    const isSaved = reply === 'Background saving started' && (await info('rdb_last_bgsave_status')) === 'ok';
    return isSaved && (await info('run_id')) === run && repliedAtMs;
  });
  client.disconnect();
  return takenAtMs;
}

async function switchOnAppendOnlyFile(url: string): Promise<void> {
  const client = connectRedis({ REDIS_URL: url });
  await client.config('SET', 'appendonly', 'yes');
  await eventually('the append-only file', async () => {
    const info = await client.info('persistence');
    return info.includes('aof_rewrite_in_progress:0') && info.includes('aof_last_bgrewrite_status:ok');
  });
  client.disconnect();
}

function complaintsAbout({ app, process }: Member): string[] {
  return complaintsOf(process).map((line) => `${app}: ${line.slice(0, 500)}`);
}

/** Waits until a process is ready. */
export async function untilReady({ url, process }: Member): Promise<void> {
  const died = process.ended.then((code) => {
    throw new Error(`The process exited with ${code}: ${process.output.slice(-5).join('\n')}`);
  });
  const ready = eventually(`${url} to be ready`, async () => {
    try {
      return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok;
    } catch {
      // It does not listen yet.
      return false;
    }
  });
  await Promise.race([ready, died]);
}

/** The folder for the Redis of a run. */
export const chaosDir = (name: string) => join(import.meta.dirname, '../../.posthorn', `chaos-${name}`);
