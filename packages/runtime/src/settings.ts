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

/** Returns the schemas of the settings that all apps have (interface 2). `defaultPort` differs by app. */
export function sharedSettings(defaultPort: number) {
  return {
    REDIS_URL: redisUrl.default('redis://127.0.0.1:6379'),
    REDIS_CLUSTER_NODES: hostsAndPorts.optional(),
    REDIS_SENTINELS: hostsAndPorts.optional(),
    REDIS_SENTINEL_NAME: z.string().default('mymaster'),
    REDIS_SENTINEL_PASSWORD: z.string().optional(),
    KEY_PREFIX: z
      .string()
      .regex(/^[A-Za-z0-9._:-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ : -')
      .default('posthorn'),
    PARTITIONS: wholeNumber(1, 256).default(1),
    HOST: z.string().default('127.0.0.1'),
    PORT: wholeNumber(0, 65_535).default(defaultPort),
    OPERATIONS_PORT: wholeNumber(0, 65_535).optional(),
    MAX_CLIENT_CONNECTIONS: wholeNumber(1, 10_000).default(5_000),
    TRUSTED_PROXIES: networks.default([]),
    RETENTION: durationMs.default(30 * 86_400_000),
    SHUTDOWN_GRACE: durationMs.default(20_000),
    LOG_LEVEL: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'must be a level of pino')
      .default('info'),
  };
}

/** The values of `sharedSettings`. */
export type SharedSettings = z.infer<z.ZodObject<ReturnType<typeof sharedSettings>>>;

/** Posthorn's version, from the root package.json. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version;
