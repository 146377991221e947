/** Reads settings from the environment, and defines those that all apps share. One message names every invalid variable. */
import { readFileSync } from 'node:fs';
import { parseDurationMs, StartError, type SubscriptionEnvironment } from '@posthorn/core';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

/** One or more settings are missing or invalid. The message names each variable and never contains a value. */
class SettingsError extends StartError {
  override name = 'SettingsError';
}

/** Settings that hold a secret. Each may be in a file instead, whose path is in `<NAME>_FILE`. */
const SECRET_SETTINGS = new Set([
  'REDIS_URL',
  'REDIS_SENTINEL_PASSWORD',
  'PUBLISHER_KEYS',
  'OPERATOR_TOKENS',
  'SECRET_ENCRYPTION_KEY',
  'NOTICE_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
]);

/**
 * Reads and freezes settings from an environment and from the files that it names for secrets. A blank variable counts as not set.
 * Throws `SettingsError`.
 */
export function loadSettings<S extends z.ZodObject>(schema: S, env: NodeJS.ProcessEnv): Readonly<z.infer<S>> {
  const given: Record<string, string> = {};
  const fileProblems = new Map<string, string>();
  for (const name of Object.keys(schema.shape)) {
    const value = env[name]?.trim();
    const file = SECRET_SETTINGS.has(name) ? env[`${name}_FILE`]?.trim() : undefined;
    if (value) given[name] = value;
    if (!file) continue;
    if (value) fileProblems.set(name, `  ${name}, ${name}_FILE: set only one of them`);
    else
      try {
        given[name] = readSecretFile(file);
      } catch (error) {
        fileProblems.set(name, `  ${name}_FILE: the file can't be read (${(error as NodeJS.ErrnoException).code})`);
      }
  }
  const parsed = schema.safeParse(given);
  if (parsed.success && fileProblems.size === 0) return Object.freeze(parsed.data);
  const issues = (parsed.error?.issues ?? []).filter(({ path }) => !fileProblems.has(String(path[0])));
  const lines = [
    ...fileProblems.values(),
    ...issues.map((issue) => `  ${String(issue.path[0])}: ${describe(issue, given)}`),
  ];
  throw new SettingsError(`Posthorn can't start, because of these settings:\n${[...new Set(lines)].join('\n')}`);
}

/** Returns the content of a file. A list may have one entry per line. */
function readSecretFile(file: string): string {
  return readFileSync(file, 'utf8')
    .trim()
    .replace(/\s*\n\s*/g, ',');
}

function describe(issue: z.core.$ZodIssue, given: Record<string, unknown>): string {
  return given[String(issue.path[0])] === undefined ? 'is required' : issue.message;
}

/** Returns a schema that uses `parse`, which returns undefined or throws for invalid text. `must` is the message for it. */
export function parsedBy<T>(parse: (text: string) => T | undefined, must: string) {
  return z.string().transform((text, context): T => {
    try {
      const value = parse(text);
      if (value !== undefined) return value;
    } catch {
      // The error may contain the value. The message below says what is expected.
    }
    context.addIssue({ code: 'custom', message: must });
    return z.NEVER;
  });
}

/** A duration setting, in milliseconds. */
export const durationMs = parsedBy(parseDurationMs, 'must be a number and ms, s, m, h or d, such as 90s');

/** A comma-separated list of durations, in milliseconds; at most 20 of them. */
export const durationListMs = parsedBy((text) => {
  const list = text.split(',').map(parseDurationMs);
  return list.length <= 20 && list.every((ms) => ms !== undefined) ? list : undefined;
}, 'must be 1 to 20 durations separated by commas, such as 1m,5m');

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((n) => n >= min && n <= max, `must be a whole number from ${min} to ${max}`);
}

/** Shorter keys and tokens could be guessed. */
const MIN_KEY_LENGTH = 24;

/** A list `name:rest,name:rest,…` in which each name is unique and each key has at least `MIN_KEY_LENGTH` characters. */
function namedList<T extends { name: string; key: string }>(
  shape: string,
  parse: (name: string, rest: string) => T | undefined,
) {
  return parsedBy((text) => {
    const entries = text.split(',').map((entry) => {
      const [, name = '', rest = ''] = /^\s*([A-Za-z0-9._-]{1,64}):(.+?)\s*$/.exec(entry) ?? [];
      return name === '' ? undefined : parse(name, rest);
    });
    if (!entries.every((entry) => entry !== undefined)) return undefined;
    return new Set(entries.map((entry) => entry.name)).size === entries.length ? entries : undefined;
  }, `must be ${shape}, each name once`).superRefine((entries, context) => {
    const short = entries.filter(({ key }) => key.length < MIN_KEY_LENGTH).map(({ name }) => name);
    if (short.length === 0) return;
    const message = `must have at least ${MIN_KEY_LENGTH} characters for each name; shorter for ${short.join(', ')}. To make one: openssl rand -base64 24`;
    context.addIssue({ code: 'custom', message });
  });
}

/** `PUBLISHER_KEYS`. */
export const publisherKeys = namedList(
  'name:environment:key,… with environment sandbox, production or both',
  (name, rest) => {
    const [, environment, key] = /^(sandbox|production|both):(.+)$/.exec(rest) ?? [];
    return key === undefined ? undefined : { name, environment: environment as SubscriptionEnvironment, key };
  },
);

/** `OPERATOR_TOKENS`. */
export const operatorTokens = namedList('name:token,…', (name, token) => ({ name, key: token }));

const redisUrl = z.string().refine((text) => {
  const url = URL.parse(text);
  return (
    url !== null &&
    ['redis:', 'rediss:'].includes(url.protocol) &&
    url.hostname !== '' &&
    /^(\/\d*)?$/.test(url.pathname)
  );
}, 'must be redis:// or rediss://, with host and at most a database number');

const hostsAndPorts = parsedBy((text) => {
  const nodes = text.split(',').map((node) => {
    const [, host, port] = /^\s*([^:\s]+):(\d{1,5})\s*$/.exec(node) ?? [];
    return host === undefined ? undefined : { host, port: Number(port) };
  });
  return nodes.every((node) => node !== undefined) ? nodes : undefined;
}, 'must be host:port,host:port');

/** Networks in CIDR form, separated by commas. */
const networks = parsedBy((text) => {
  const list = text.split(',').map((network) => network.trim());
  for (const network of list) ipaddr.parseCIDR(network);
  return list;
}, 'must be networks in CIDR form separated by commas, such as 10.0.0.0/8');

/** The sections of docs/settings.md, in order. */
export const SETTING_GROUPS = [
  'Secrets',
  'Redis',
  'HTTP',
  'Publishers',
  'Delivery',
  'Addresses',
  'Operators',
  'Tracing',
  'Processes',
] as const;

/** What docs/settings.md says about a setting. */
export interface SettingDoc {
  group: (typeof SETTING_GROUPS)[number];
  /** What it means. Markdown; one line. */
  means: string;
  /** The default as it would be written, or what applies without it. */
  default: string;
}

const docs = z.registry<SettingDoc>();

/** Returns the schema of a setting with its documentation. */
export function setting<S extends z.ZodType>(
  schema: S,
  group: SettingDoc['group'],
  shownDefault: string,
  means: string,
): S {
  docs.add(schema, { group, means, default: shownDefault });
  return schema;
}

/** The documentation of each setting of an app, by name. Throws for a setting that has none. */
export function documentedSettings(schema: z.ZodObject): Map<string, SettingDoc> {
  return new Map(
    Object.entries(schema.shape).map(([name, one]) => {
      const doc = docs.get(one);
      if (doc === undefined) throw new Error(`The setting ${name} has no documentation: declare it with setting().`);
      return [name, doc];
    }),
  );
}

/** Whether a setting may be in a file instead. */
export const mayBeInFile = (name: string): boolean => SECRET_SETTINGS.has(name);

const DAY_MS = 86_400_000;

/** How long what has succeeded is kept; `RETENTION` if that is shorter. */
const DEFAULT_RETENTION_SUCCEEDED_MS = 7 * DAY_MS;

/** Checks what the schemas of single settings can't: nothing is kept longer for having succeeded. */
export function checkShared(
  settings: Pick<SharedSettings, 'RETENTION' | 'RETENTION_SUCCEEDED'>,
  context: z.RefinementCtx,
): void {
  // The default may be longer: then it is RETENTION.
  if (settings.RETENTION_SUCCEEDED > Math.max(settings.RETENTION, DEFAULT_RETENTION_SUCCEEDED_MS)) {
    context.addIssue({ code: 'custom', path: ['RETENTION_SUCCEEDED'], message: 'must be at most RETENTION' });
  }
}

/** Returns the schemas of the settings that all apps have (interface 2). `defaultPort` differs by app. */
export function sharedSettings(defaultPort: number) {
  return {
    REDIS_URL: setting(
      redisUrl.default('redis://127.0.0.1:6379'),
      'Redis',
      '`redis://127.0.0.1:6379`',
      'Redis 7 or Valkey, with `noeviction` and `appendfsync always`; `rediss://` for TLS',
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
      'some sentinels, `host:port,…`; `REDIS_URL` then only sets user, password, database and TLS',
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
      'into how many parts the data are divided, for a Redis Cluster; it cannot change after the first start',
    ),
    HOST: setting(z.string().default('127.0.0.1'), 'HTTP', '`127.0.0.1`', 'the address to listen on'),
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
      'CIDRs of the proxies whose `X-Forwarded-*` headers are trusted; `MAX_CLIENT_CONNECTIONS` does not apply to them',
    ),
    RETENTION: setting(
      durationMs.default(30 * DAY_MS),
      'Delivery',
      '`30d`',
      'how long failed deliveries are kept and can be replayed',
    ),
    RETENTION_SUCCEEDED: setting(
      durationMs.refine((ms) => ms >= DAY_MS, 'must be at least 1d').default(DEFAULT_RETENTION_SUCCEEDED_MS),
      'Delivery',
      '`7d`',
      'how long succeeded deliveries are kept, and [events](architecture.md#how-long-data-is-kept) whose deliveries have all succeeded or that matched nobody, with their ids: at least a day, at most `RETENTION`',
    ),
    SHUTDOWN_GRACE: setting(
      durationMs.default(20_000),
      'Processes',
      '`20s`',
      'time limit for finishing work in flight on SIGTERM',
    ),
    LOG_LEVEL: setting(
      z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'must be a level of pino').default('info'),
      'Processes',
      '`info`',
      'the least important level that is logged: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
    ),
  };
}

/** The values of `sharedSettings`. */
export type SharedSettings = z.infer<z.ZodObject<ReturnType<typeof sharedSettings>>>;

/** Posthorn's version, from the root package.json. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version;
