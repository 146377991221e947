/** The settings that all apps share. */
import { isIP } from 'node:net';
import { bareHost, DAY_MS, isDecodable } from '@posthorn/core';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { durationMs, parsedBy, setting, timerMs, wholeNumber } from './settings.ts';

/** Whether one can connect to a port. */
const isPort = (port: number) => port >= 1 && port <= 65_535;

const redisUrl = z.string().refine((text) => {
  const url = URL.parse(text);
  return (
    url !== null &&
    ['redis:', 'rediss:'].includes(url.protocol) &&
    url.hostname !== '' &&
    url.port !== '0' &&
    /^(\/\d*)?$/.test(url.pathname) &&
    // Otherwise the rest of a password that has @ before ? or # would be the host, which is logged.
    !`${url.search}${url.hash}`.includes('@') &&
    isDecodable(url.username) &&
    isDecodable(url.password)
  );
}, 'must be such as redis://host:6379, redis://user:password@host:6379/0 or rediss://…, with user and password percent-encoded (% as %25, / as %2F, # as %23)');

const hostsAndPorts = parsedBy((text) => {
  const nodes = text.split(',').map((node) => {
    const [, host, port] = /^\s*(\[[^\]\s]+\]|[^:\s]+):(\d{1,5})\s*$/.exec(node) ?? [];
    return host === undefined || !isPort(Number(port)) ? undefined : { host: bareHost(host), port: Number(port) };
  });
  return nodes.every((node) => node !== undefined) ? nodes : undefined;
}, 'must be host:port,host:port with ports from 1 to 65535');

/** Networks in CIDR form, separated by commas. */
const networks = parsedBy((text) => {
  const list = text.split(',').map((network) => network.trim());
  for (const network of list) ipaddr.parseCIDR(network);
  // ipaddr.js, also in express, reads 10/8 as 0.0.0.10/8, and 010.0.0.0/8 as 8.0.0.0/8.
  return list.every((network) => isIP(network.split('/', 1)[0] ?? '') !== 0) ? list : undefined;
}, 'must be networks in CIDR form separated by commas, such as 10.0.0.0/8');

/** How long what has succeeded is kept; `RETENTION` if that is shorter. */
const DEFAULT_RETENTION_SUCCEEDED_MS = 7 * DAY_MS;

type Agreeing = Pick<SharedSettings, 'RETENTION' | 'RETENTION_SUCCEEDED' | 'REDIS_CLUSTER_NODES' | 'REDIS_SENTINELS'>;

/**
 * For `check`, what the schemas of single settings can't check: nothing is kept longer for having succeeded, and there
 * is one way to Redis. It runs also where another setting is bad, since one message names all.
 */
export const settingsAgree = z.superRefine<Agreeing>(
  ({ RETENTION, RETENTION_SUCCEEDED, REDIS_CLUSTER_NODES, REDIS_SENTINELS }, context) => {
    const complain = (name: keyof Agreeing, message: string) =>
      context.addIssue({ code: 'custom', path: [name], message });
    // The default may be longer: then it is RETENTION.
    if (RETENTION_SUCCEEDED > RETENTION && RETENTION_SUCCEEDED !== DEFAULT_RETENTION_SUCCEEDED_MS)
      complain('RETENTION_SUCCEEDED', 'must be at most RETENTION');
    if (REDIS_CLUSTER_NODES && REDIS_SENTINELS)
      complain('REDIS_SENTINELS', 'must not be set together with REDIS_CLUSTER_NODES');
  },
  { when: () => true },
);

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Returns the schemas of the settings that all apps have (interface 2). `defaultPort` differs by app. */
export function sharedSettings(defaultPort: number) {
  return {
    REDIS_URL: setting(
      redisUrl.default('redis://127.0.0.1:6379'),
      'Redis',
      '`redis://127.0.0.1:6379`',
      'Redis 7 or Valkey, with `noeviction`, `maxmemory` and `appendfsync always`; `rediss://` for TLS',
    ),
    REDIS_CLUSTER_NODES: setting(
      hostsAndPorts.optional(),
      'Redis',
      'none',
      'some nodes of a Redis Cluster, `host:port,…`; `REDIS_URL` then only sets user, password and TLS',
    ),
    REDIS_SENTINELS: setting(
      hostsAndPorts.optional(),
      'Redis',
      'none',
      'some sentinels, `host:port,…`, without `REDIS_CLUSTER_NODES`; `REDIS_URL` then only sets user, password, database and TLS',
    ),
    REDIS_SENTINEL_NAME: setting(
      z.string().default('mymaster'),
      'Redis',
      '`mymaster`',
      'the name under which the sentinels watch the master',
    ),
    REDIS_SENTINEL_PASSWORD: setting(z.string().optional(), 'Redis', 'none', 'the password of the sentinels'),
    KEY_PREFIX: setting(
      z
        .string()
        .regex(/^[A-Za-z0-9._:-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ : -')
        .default('posthorn'),
      'Redis',
      '`posthorn`',
      'the beginning of all keys; several installations may share a Redis',
    ),
    PARTITIONS: setting(
      wholeNumber(1, 256).default(1),
      'Redis',
      '`1`',
      'into how many parts the data are divided, for a Redis Cluster; it cannot change after the first start: [growing beyond one Redis](redis.md#growing-beyond-one-redis)',
    ),
    HOST: setting(
      z.string().transform(bareHost).default('127.0.0.1'),
      'HTTP',
      '`127.0.0.1`',
      'the IP to listen on, or a name of it',
    ),
    PORT: setting(
      wholeNumber(0, 65_535).default(defaultPort),
      'HTTP',
      '`3000` ingest, `3001` console, `3002` worker',
      'the port to listen on',
    ),
    OPERATIONS_PORT: setting(
      wholeNumber(0, 65_535).optional(),
      'HTTP',
      'none',
      'a separate port for `/healthz`, `/readyz` and `/metrics`, which need not be public',
    ),
    MAX_CLIENT_CONNECTIONS: setting(
      wholeNumber(1, 10_000).default(5_000),
      'HTTP',
      '`5000`',
      'maximum connections from one client IP (IPv6: from one /64)',
    ),
    TRUSTED_PROXIES: setting(
      networks.default([]),
      'HTTP',
      'none',
      'CIDRs of the proxies whose `X-Forwarded-*` headers are trusted; `MAX_CLIENT_CONNECTIONS` does not apply to them, and their idle connections stay open for 65 minutes (those of others: 65 seconds)',
    ),
    RETENTION: setting(
      durationMs.default(30 * DAY_MS),
      'Delivery',
      '`30d`',
      'how long failed deliveries are kept and can be replayed. Set the same in all processes, which warn if another one has another value. After a change, searches may miss events that were accepted before, and what publishers have stored is counted anew',
    ),
    RETENTION_SUCCEEDED: setting(
      durationMs.refine((ms) => ms >= DAY_MS, 'must be at least 1d').default(DEFAULT_RETENTION_SUCCEEDED_MS),
      'Delivery',
      '`7d`',
      'how long succeeded deliveries are kept, and [events](architecture.md#how-long-data-is-kept) whose deliveries have all succeeded or that matched nobody, with their ids: at least a day, at most `RETENTION`. Where `RETENTION` is less than 7 days, the default is `RETENTION`',
    ),
    SHUTDOWN_GRACE: setting(
      timerMs.default(20_000),
      'Processes',
      '`20s`',
      'time limit for finishing work in flight on SIGTERM',
    ),
    LOG_LEVEL: setting(
      z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
      'Processes',
      '`info`',
      'the least important level that is logged: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
    ),
  };
}

/** The values of `sharedSettings`. */
export type SharedSettings = z.infer<z.ZodObject<ReturnType<typeof sharedSettings>>>;
