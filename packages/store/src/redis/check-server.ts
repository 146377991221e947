/**
 * Checks the database, the version, the eviction policy, the memory limit and the persistence of Redis before it is
 * used.
 */
import { StartError, StorageUnavailable } from '@posthorn/core';
import { Cluster, type Redis } from 'ioredis';

/** Older versions lack PEXPIREAT with GT, which expiries rely on. */
const MIN_MAJOR_VERSION = 7;

/**
 * Throws `StartError` where a server lacks the database, is too old, or may evict keys and with them deliveries.
 * Returns a warning if a server would lose acknowledged writes in a crash, has no memory limit, or its ACL does not
 * allow these checks; in a Cluster one for each of these, with the servers. The client must be connected.
 */
export async function checkServer(redis: Redis | Cluster): Promise<string[]> {
  if (!(redis instanceof Cluster)) await checkDatabase(redis);
  const warnings = new Map<string, string[]>();
  for (const server of masters(redis)) {
    const { host, port } = server.options;
    const warn = (text: string) => warnings.set(text, [...(warnings.get(text) ?? []), `${host}:${port}`]);
    const info = await readInfo(server);
    if (info === undefined) {
      warn(
        'The user of REDIS_URL may not run INFO, so version, eviction policy and persistence of Redis are not checked.',
      );
      continue;
    }
    const version = info.get('redis_version') ?? '0';
    if (Number.parseInt(version, 10) < MIN_MAJOR_VERSION) {
      throw new StartError(`Redis is version ${version}; Posthorn needs ${MIN_MAJOR_VERSION}.0 or later, or Valkey.`);
    }
    const eviction = describeEviction(info);
    if (eviction !== undefined) {
      throw new StartError(
        `${eviction}. ` +
          'Set maxmemory-policy noeviction: when memory is full, ingest then responds with 503 and nothing is lost.',
      );
    }
    if (info.get('maxmemory') === '0') {
      warn(
        'Redis has no memory limit (maxmemory 0): it never refuses writes, but is killed when the memory of its machine is used up. Set maxmemory.',
      );
    }
    const hasReplicas = Number(info.get('connected_slaves') ?? 0) > 0;
    if (hasReplicas && !info.has('min_slaves_good_slaves')) {
      warn('Redis has replicas, but accepts writes without them (min-replicas-to-write 0): a failover may lose many.');
    }
    if (info.get('aof_enabled') === '0') {
      warn('Redis has no append-only file (appendonly no): the latest accepted events are lost when it stops.');
    } else if (!hasReplicas && (await readAppendFsync(server)) !== 'always') {
      warn(
        'Redis replies before it has written to its append-only file (appendfsync is not always) and has no replicas: ' +
          'when it is killed, up to two seconds of accepted events may be lost.',
      );
    }
  }
  return Array.from(warnings, ([text, servers]) =>
    redis instanceof Cluster ? `${text} That is so on ${servers.join(', ')}.` : text,
  );
}

/**
 * Where Redis refuses to select the database, ioredis reports that and goes on with database 0, which others may use.
 */
async function checkDatabase(redis: Redis): Promise<void> {
  const { db = 0 } = redis.options;
  if (db === 0) return;
  await redis.select(db).catch((error: Error) => {
    if (error instanceof StorageUnavailable) throw error;
    throw new StartError(`Redis refuses database ${db}: ${error.message}. Check the number at the end of REDIS_URL.`);
  });
}

/** Says which keys a server may evict, given the fields of its `INFO`; undefined if none. */
export function describeEviction(info: ReadonlyMap<string, string>): string | undefined {
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  return `Redis may evict keys (maxmemory-policy is ${policy}), and with them accepted events`;
}

/**
 * By what servers that run may lose accepted events, given the fields of the `INFO` of each: true where it holds for
 * any. What they do not report is taken for safe.
 */
export function unsafetiesOf(infos: readonly ReadonlyMap<string, string>[]) {
  const anyHas = (field: string, value: string) => infos.some((info) => info.get(field) === value);
  return {
    eviction: infos.some((info) => describeEviction(info) !== undefined),
    no_append_only_file: anyHas('aof_enabled', '0'),
    aof_rewrite_failed: anyHas('aof_last_bgrewrite_status', 'err'),
    aof_write_failed: anyHas('aof_last_write_status', 'err'),
  };
}

/** All servers that take writes. */
export function masters(redis: Redis | Cluster): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/**
 * When the append-only file is written; `always` where the server does not say, since there is no reason to warn then.
 */
async function readAppendFsync(server: Redis): Promise<string> {
  const reply = (await unlessRefused(server.config('GET', 'appendfsync'))) as string[] | undefined;
  return reply?.[1] ?? 'always';
}

/** Undefined where the user may not use the command, or the service does not have it. */
async function unlessRefused<T>(reply: Promise<T>): Promise<T | undefined> {
  return await reply.catch((error: unknown) => {
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return undefined;
    throw error;
  });
}

/** The fields of `INFO`, or undefined if the user may not read it. */
export async function readInfo(server: Redis): Promise<Map<string, string> | undefined> {
  const text = await unlessRefused(server.info());
  const fields = text?.matchAll(/^([^:\r\n]+):(.*)$/gm);
  return fields && new Map(Array.from(fields, ([, name = '', value = '']) => [name, value]));
}
