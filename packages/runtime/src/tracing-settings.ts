/**
 * The settings of tracing: the standard ones of OpenTelemetry that Posthorn acts on or checks. The SDK itself reads all
 * others.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isDecodable } from '@posthorn/core';
import { z } from 'zod';
import { parsedBy, setting } from './settings.ts';

const httpUrl = z.string().refine((text) => {
  const url = URL.parse(text);
  return (
    url !== null && ['http:', 'https:'].includes(url.protocol) && isDecodable(url.username) && isDecodable(url.password)
  );
}, 'must be an http or https URL, with % in a user or password as %25');

/** Whether a list of percent-encoded `name=value` can be sent as headers. The SDK would fail at each export. */
function areHeaders(text: string): boolean {
  try {
    for (const pair of text.split(',')) {
      const [name = '', ...rest] = pair.split('=').map((part) => decodeURIComponent(part.trim()));
      validateHeaderName(name);
      validateHeaderValue(name, rest.join('='));
    }
    return true;
  } catch {
    return false;
  }
}

const headers = z
  .string()
  .regex(/^[^=,]+=[^,]*(,[^=,]+=[^,]*)*$/, 'must be name=value,name=value')
  .refine(areHeaders, 'must have names and values that HTTP headers can carry, with correct percent-encoding');

const protocol = z.enum(['http/protobuf', 'http/json'], 'must be http/protobuf or http/json');

/** Characters of the name or the value of an attribute, as in the SDK. */
const MAX_ATTRIBUTE_LENGTH = 255;

/** Attributes as a list of percent-encoded `name=value`. The SDK would leave out all of them if it can't read one. */
const attributes = parsedBy((text) => {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  const read = pairs.map((pair) => pair.split('=').map((part) => decodeURIComponent(part.trim())));
  const isGood = read.every(
    (parts) => parts.length === 2 && parts[0] !== '' && parts.every(({ length }) => length <= MAX_ATTRIBUTE_LENGTH),
  );
  return isGood ? (Object.fromEntries(read) as Record<string, string>) : undefined;
}, `must be name=value,name=value, each up to ${MAX_ATTRIBUTE_LENGTH} characters, with , = and % in them as %2C, %3D and %25`);

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** The schemas of these settings, which all apps have. */
export function tracingSettings() {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: setting(
      httpUrl.optional(),
      'Tracing',
      'none',
      'the base URL of a collector, such as `http://collector:4318`: turns [tracing](tracing.md) on',
    ),
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: setting(
      httpUrl.optional(),
      'Tracing',
      'none',
      'the same as the complete URL for traces',
    ),
    OTEL_EXPORTER_OTLP_PROTOCOL: setting(
      protocol.default('http/protobuf'),
      'Tracing',
      '`http/protobuf`',
      '`http/protobuf` or `http/json`',
    ),
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: setting(
      protocol.optional(),
      'Tracing',
      'none',
      'the same for traces; it takes precedence',
    ),
    OTEL_EXPORTER_OTLP_HEADERS: setting(
      headers.optional(),
      'Tracing',
      'none',
      'headers for the collector, `name=value,…`',
    ),
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: setting(
      headers.optional(),
      'Tracing',
      'none',
      'the same for traces: added, and in place of those with the same name',
    ),
    OTEL_TRACES_EXPORTER: setting(
      z.enum(['otlp', 'console', 'none'], 'must be otlp, console or none').optional(),
      'Tracing',
      '`none`; `otlp` if there is an endpoint',
      '`otlp`, `console` (spans on stdout, for a first look) or `none`',
    ),
    OTEL_TRACES_SAMPLER: setting(
      z.enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`).default('parentbased_always_on'),
      'Tracing',
      '`parentbased_always_on`',
      'which traces are sampled; with `parentbased_…`, the publisher decides for those that it begins',
    ),
    OTEL_TRACES_SAMPLER_ARG: setting(
      z
        .string()
        .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be a number from 0 to 1')
        .default('1'),
      'Tracing',
      '`1`',
      'the ratio of `traceidratio` and `parentbased_traceidratio`',
    ),
    OTEL_SERVICE_NAME: setting(
      z.string().optional(),
      'Tracing',
      '`posthorn-ingest`, `posthorn-worker`, `posthorn-console`',
      'the name of the service in traces',
    ),
    OTEL_RESOURCE_ATTRIBUTES: setting(
      attributes.optional(),
      'Tracing',
      'none',
      'attributes of the process in traces, `name=value,…`, percent-encoded',
    ),
    OTEL_SDK_DISABLED: setting(
      z.string().default('false'),
      'Tracing',
      '`false`',
      '`true` turns tracing off; anything else does not',
    ),
  };
}

type Deciding =
  | 'OTEL_SDK_DISABLED'
  | 'OTEL_TRACES_EXPORTER'
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';

/** The name of the exporter, by the settings that decide; `none` if tracing is off. */
export function exporterOf(settingOf: (name: Deciding) => string | undefined): string {
  if (settingOf('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return 'none';
  const endpoint = settingOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? settingOf('OTEL_EXPORTER_OTLP_ENDPOINT');
  return settingOf('OTEL_TRACES_EXPORTER') ?? (endpoint === undefined ? 'none' : 'otlp');
}

/** Returns an environment without the settings of tracing if it is off: then a bad one keeps no app from starting. */
export function withoutUnusedTracing(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (exporterOf((name) => env[name]?.trim() || undefined) !== 'none') return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('OTEL_')));
}

export type TracingSettings = z.infer<z.ZodObject<ReturnType<typeof tracingSettings>>>;
