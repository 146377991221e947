/** Looks at the Redis behind the store before anything is trusted to it. */
import { StartError } from '@posthorn/core';
import { Cluster, type Redis } from 'ioredis';

/** Below this a command that expiries rely on (PEXPIREAT with GT) is missing. */
const OLDEST_MAJOR = 7;

/**
 * Throws `StartError` where a server is too old, or may evict keys: each of them is somebody's delivery. Returns a warning for each that
 * would lose acknowledged writes when it dies, or whose ACL does not allow these checks. The client must be connected.
 */
export async function checkServer(redis: Redis | Cluster): Promise<string[]> {
  const warnings: string[] = [];
  const warn = (text: string) => warnings.push(text);
  for (const server of masters(redis)) {
    const info = await readInfo(server);
    if (info === undefined) {
      warn('Redis does not answer INFO to this user, so its version, eviction policy and persistence are not checked.');
      continue;
    }
    const version = info.get('redis_version') ?? '0';
    if (Number.parseInt(version, 10) < OLDEST_MAJOR) {
      throw new StartError(`Redis is version ${version}; Posthorn needs ${OLDEST_MAJOR}.0 or later, or Valkey.`);
    }
    const policy = info.get('maxmemory_policy') ?? 'noeviction';
    if (policy !== 'noeviction') {
      throw new StartError(
        `Redis may evict keys (maxmemory-policy is ${policy}), and with them accepted events. ` +
          'Set maxmemory-policy noeviction: when memory is full, ingest then answers 503 and nothing is lost.',
      );
    }
    const hasReplicas = Number(info.get('connected_slaves') ?? 0) > 0;
    if (hasReplicas && !info.has('min_slaves_good_slaves')) {
      warn('Redis has replicas, but takes writes without them (min-replicas-to-write 0): a failover may lose many.');
    }
    if (info.get('aof_enabled') === '0') {
      warn('Redis has no append-only file (appendonly no): what was accepted last is lost when it stops.');
    } else if (!hasReplicas && (await readAppendFsync(server)) !== 'always') {
      warn(
        'Redis answers before it has written to its append-only file (appendfsync is not always) and has no replicas: ' +
          'when it is killed, up to two seconds of accepted events may be lost.',
      );
    }
  }
  return warnings;
}

/** All servers that take writes. */
export function masters(redis: Redis | Cluster): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** When the append-only file is written; `always` where the server does not say, since nothing can be held against it then. */
async function readAppendFsync(server: Redis): Promise<string> {
  try {
    const [, value] = (await server.config('GET', 'appendfsync')) as string[];
    return value ?? 'always';
  } catch (error) {
    if (isRefusal(error)) return 'always';
    throw error;
  }
}

/** Users without the right to it, and services that don't have the command. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message);
}

/** The fields of `INFO`, or undefined if the user may not read it. */
export async function readInfo(server: Redis): Promise<Map<string, string> | undefined> {
  try {
    const text = await server.info();
    return new Map(
      text.split('\r\n').flatMap((line): [string, string][] => {
        const colon = line.indexOf(':');
        return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
      }),
    );
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}
