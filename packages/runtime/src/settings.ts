/** Reads settings from the environment. One message names every invalid variable. */
import { readFileSync } from 'node:fs';
import { isHeaderText, parseDurationMs, StartError, type SubscriptionEnvironment } from '@posthorn/core';
import { z } from 'zod';
import type { Logger } from './logger.ts';

/** Settings that hold a secret. Each may be in a file instead, whose path is in `<NAME>_FILE`. */
const SECRET_SETTINGS = new Set([
  'REDIS_URL',
  'REDIS_SENTINEL_PASSWORD',
  'PUBLISHER_KEYS',
  'OPERATOR_TOKENS',
  'SECRET_ENCRYPTION_KEY',
  'NOTICE_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
]);

/**
 * Reads and freezes settings from an environment and from the files that it names for secrets. A blank variable counts
 * as not set. Throws a `StartError` that names each variable which is missing or invalid, never a value.
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
        if (given[name] === '') fileProblems.set(name, `  ${name}_FILE: the file is empty`);
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
  throw new StartError(`Posthorn can't start, because of these settings:\n${[...new Set(lines)].join('\n')}`);
}

/** Returns the content of a file. A list may have one entry per line. */
function readSecretFile(file: string): string {
  return readFileSync(file, 'utf8')
    .trim()
    .replace(/\s*\n\s*/g, ',');
}

function describe(issue: z.core.$ZodIssue, given: Record<string, unknown>): string {
  const isMissing = given[String(issue.path[0])] === undefined && issue.code !== 'custom';
  return isMissing ? 'is required' : issue.message;
}

/**
 * Returns a schema that uses `parse`, which returns undefined or throws for invalid text. `must` is the message for it.
 */
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
export const durationMs = parsedBy(
  parseDurationMs,
  'must be a number and ms, s, m, h or d, such as 90s: more than 0, at most 3650d',
);

/** A longer timer of Node fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** A duration that a timer waits for, in milliseconds. */
export const timerMs = durationMs.refine((ms) => ms <= MAX_TIMER_MS, 'must be at most 24d');

/** A comma-separated list of durations, in milliseconds; at most 20 of them. */
export const durationListMs = parsedBy((text) => {
  const list = text.split(',').map(parseDurationMs);
  return list.length <= 20 && list.every((ms) => ms !== undefined) ? list : undefined;
}, 'must be 1 to 20 durations separated by commas, such as 1m,5m');

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, message)
    .transform(Number)
    .refine((n) => n >= min && n <= max, message);
}

/** Shorter keys and tokens could be guessed. */
const ADVISED_KEY_LENGTH = 24;

/** Warns of keys that could be guessed. The interface has no minimum, so they are accepted. */
export function warnOfShortKeys(
  setting: string,
  entries: readonly { name: string; key: string }[],
  logger: Pick<Logger, 'warn'>,
): void {
  const names = entries.filter(({ key }) => key.length < ADVISED_KEY_LENGTH).map(({ name }) => name);
  if (names.length === 0) return;
  logger.warn(
    `${setting}: shorter than ${ADVISED_KEY_LENGTH} characters for ${names.join(', ')}: can be guessed. To make a better one: openssl rand -base64 24`,
  );
}

/**
 * A list `name:rest,name:rest,…` in which each key is unique and fits into a header. A name may have several keys, so
 * that one can be replaced while both are in use. Names are logged, so one that seems to be a secret is refused.
 */
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
    const isUnique = (values: string[]) => new Set(values).size === values.length;
    // A key of two publishers would be the key of one of them only.
    return isUnique(entries.map(({ key }) => key)) ? entries : undefined;
  }, `must be ${shape}, each entry with a key of its own`).superRefine((entries, context) => {
    const refuse = (isBad: (entry: T) => boolean, messageOf: (names: string) => string) => {
      // A long name may be a secret whose owner has swapped the two.
      const shown = (name: string, i: number) => (name.length < ADVISED_KEY_LENGTH ? name : `entry ${i + 1}`);
      const names = entries.flatMap((entry, i) => (isBad(entry) ? [shown(entry.name, i)] : []));
      if (names.length > 0) context.addIssue({ code: 'custom', message: messageOf(names.join(', ')) });
    };
    refuse(
      ({ name, key }) => name.length >= ADVISED_KEY_LENGTH && key.length < ADVISED_KEY_LENGTH,
      (names) => `must be ${shape}; name and key seem to be swapped for ${names}`,
    );
    refuse(
      ({ key }) => !isHeaderText(key),
      (names) =>
        `must have printable ASCII characters only, since callers send it in an HTTP header; others for ${names}`,
    );
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
