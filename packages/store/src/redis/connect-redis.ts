/** Connects to Redis, to Redis Cluster, or to the master that sentinels name. */
import { isIP } from 'node:net';
import { bareHost } from '@posthorn/core';
import { Cluster, Redis } from 'ioredis';
import { failFast } from './fail-fast.ts';
import { joinWrites } from './join-writes.ts';
import { leaveReplacedServers } from './replaced-servers.ts';
import { sentinelConnector } from './sentinel-connector.ts';
import { typeErrors } from './storage-errors.ts';

export interface RedisSettings {
  REDIS_URL: string;
  /** Some nodes of a Redis Cluster; wins over `REDIS_URL`, which then only gives user, password and TLS. */
  REDIS_CLUSTER_NODES?: readonly HostAndPort[] | undefined;
  /** Some sentinels, which say where the master is; `REDIS_URL` then only gives user, password, database and TLS. */
  REDIS_SENTINELS?: readonly HostAndPort[] | undefined;
  /** The name under which the sentinels watch the master; needed with `REDIS_SENTINELS`. */
  REDIS_SENTINEL_NAME?: string | undefined;
  REDIS_SENTINEL_PASSWORD?: string | undefined;
}

export interface HostAndPort {
  host: string;
  port: number;
}

/**
 * A connection on which a command waits for this long is dead although it was not closed: the machine or the network is
 * gone. Longer than workers wait for a marker (5 s), shorter than a job's lock (30 s).
 */
const SILENCE_MS = 20_000;
const SENTINEL_TIMEOUT_MS = 2_000;
/** Longest pause between two attempts to reconnect, so that work resumes within a second of the return of Redis. */
const MAX_RECONNECT_DELAY_MS = 1_000;

/**
 * A connection to Redis or Redis Cluster that never stops reconnecting. Its commands, and those of its duplicates,
 * reject with `StorageUnavailable` while Redis is unavailable. With `failFastAfterMs`, a command without a reply in
 * that time fails, for apps that have a caller waiting; without it, commands wait until Redis is back.
 */
export function connectRedis(settings: RedisSettings, options: ConnectOptions = {}): Redis | Cluster {
  const redis = typeErrors(connect(settings, options));
  if (redis instanceof Cluster) {
    leaveReplacedServers(redis);
    rememberServers(redis);
  }
  if (options.joinWrites) joinWrites(redis);
  if (options.failFastAfterMs !== undefined) failFast(redis, options.failFastAfterMs);
  return redis;
}

interface ConnectOptions {
  failFastAfterMs?: number;
  /** Sends the commands of one turn of the event loop in one write. Not for connections that block. */
  joinWrites?: boolean;
}

function connect(settings: RedisSettings, options: ConnectOptions): Redis | Cluster {
  const { REDIS_CLUSTER_NODES: nodes = [], REDIS_SENTINELS: sentinels = [] } = settings;
  const common = {
    maxRetriesPerRequest: options.failFastAfterMs === undefined ? null : 1,
    connectTimeout: 5_000,
    socketTimeout: SILENCE_MS,
    retryStrategy: reconnectDelayMs,
    // Redis loads its data: ask again after this, however long it says that it will take.
    maxLoadingRetryTime: MAX_RECONNECT_DELAY_MS,
    // The master has become a replica: reconnect. With sentinels, the command is repeated on the new master.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY') && (sentinels.length > 0 ? 2 : 1),
  };
  const { username, password, protocol, hostname, pathname } = new URL(settings.REDIS_URL);
  const isTls = protocol === 'rediss:';
  if (nodes.length === 0 && sentinels.length === 0) {
    // A proxy that serves several Redis selects by this name, which ioredis does not send by itself.
    const tls = isTls && isIP(bareHost(hostname)) === 0 && { tls: { servername: hostname } };
    return new Redis(settings.REDIS_URL, { ...common, ...tls });
  }
  const redisOptions = {
    ...common,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(isTls && { tls: {} }),
  };
  if (nodes.length > 0) {
    return new Cluster([...nodes], {
      clusterRetryStrategy: reconnectDelayMs,
      // Names stay names: certificates are issued for them, and one that does not resolve is one node that is away.
      dnsLookup: (name, done) => done(null, name, 0),
      redisOptions,
    });
  }
  const { REDIS_SENTINEL_NAME: name, REDIS_SENTINEL_PASSWORD: sentinelPassword } = settings;
  return new Redis({
    ...redisOptions,
    db: Number(pathname.slice(1) || 0),
    sentinels: [...sentinels],
    name,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    sentinelRetryStrategy: reconnectDelayMs,
    // For a sentinel that accepts connections but does not reply. Then the next one is asked.
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // The sentinels report a failover, so that a master that is only unreachable is left at once.
    failoverDetector: true,
    Connector: sentinelConnector,
  });
}

/**
 * Lets the client connect again, and make duplicates, by the servers that the Cluster has now. Those in the settings
 * may have left it since.
 */
function rememberServers(cluster: Cluster): void {
  const client = cluster as unknown as { startupNodes: HostAndPort[] };
  const given = client.startupNodes;
  cluster.on('refresh', () => {
    const now = cluster.nodes().map(({ options: { host = '', port = 0 } }) => ({ host, port }));
    client.startupNodes = [...now, ...given];
  });
}

/** Calls the listener whenever a connection of this client has closed, in Redis Cluster that of any node. */
export function onDisconnect(redis: Redis | Cluster, listener: () => void): void {
  const watch = (node: Redis) => node.on('close', listener);
  if (redis instanceof Redis) {
    watch(redis);
    return;
  }
  // Not its `-node`, which a node that is replaced while its connection closes does not cause.
  redis.on('+node', watch);
  for (const node of redis.nodes()) watch(node);
}

function reconnectDelayMs(times: number): number {
  return Math.min(times * 50, MAX_RECONNECT_DELAY_MS);
}
