/** The tracer: spans of our own, which OpenTelemetry's SDK exports in batches from a bounded queue. tracing.ts loads this file only if tracing is on. */
import { randomBytes, randomUUID } from 'node:crypto';
import { DiagLogLevel, diag, TraceFlags } from '@opentelemetry/api';
import { getNumberFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import { type ISerializer, JsonTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Logger } from './logger.ts';
import { createSampler } from './sampler.ts';
import { type AttributeLimits, type SpanOrigin, SpanRecord } from './span-record.ts';
import { SpanSerializer } from './span-serializer.ts';
import type { Tracer, TracingOptions } from './tracing.ts';
import type { TracingSettings } from './tracing-settings.ts';

/** A collector that is away may make the SDK report an error with each batch. */
const LOG_EVERY_MS = 10_000;
/** What a collector answers may be part of the SDK's messages. */
const MAX_MESSAGE_LENGTH = 300;
const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;
/** For 170 spans that begin a trace. */
const RANDOM_BYTES = 4_096;

/** Opens the tracer. What Posthorn's settings do not have is read from the environment: sizes and times of the queue, limits, certificates. */
export function openTracer({
  app,
  version,
  settings,
  logger,
  exporter,
}: TracingOptions & { exporter: string }): Tracer {
  logProblems(logger);
  const resource = resourceFromAttributes({
    'service.name': `posthorn-${app}`,
    'service.version': version,
    'service.instance.id': randomUUID(),
  }).merge(detectResources({ detectors: [envDetector] }));
  const scope = { resource, instrumentationScope: { name: 'posthorn', version } };
  const own =
    exporter === 'otlp' && settings.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/protobuf'
      ? new SpanSerializer(scope)
      : undefined;
  const processor = new BatchSpanProcessor(
    exporter === 'console' ? new ConsoleSpanExporter() : createOtlpExporter(settings, own),
  );
  const origin: SpanOrigin = {
    ...scope,
    limits: attributeLimits(own !== undefined),
    take(span) {
      // Of what our serializer takes, the SDK asks no more than a queued span has.
      processor.onEnd(own ? (own.add(span) as unknown as ReadableSpan) : span);
    },
  };
  const randomDigits = createRandomDigits();
  const isSampled = createSampler(settings);
  return {
    startSpan(kind, name, parent) {
      const traceId = parent?.traceId ?? randomDigits(TRACE_ID_DIGITS);
      if (!isSampled(traceId, parent)) return undefined;
      const context = { traceId, spanId: randomDigits(SPAN_ID_DIGITS), flags: TraceFlags.SAMPLED };
      return new SpanRecord(origin, kind, name, context, parent);
    },
    shutdown: () => processor.shutdown(),
  };
}

/** Returns a function for ids: random hexadecimal digits, made many at once. With the SDK's generator, the start of a span takes twice as long. */
function createRandomDigits(): (count: number) => string {
  let digits = '';
  let at = 0;
  return (count) => {
    if (at + count > digits.length) {
      digits = randomBytes(RANDOM_BYTES).toString('hex');
      at = 0;
    }
    at += count;
    return digits.slice(at - count, at);
  };
}

/** The limits of attributes. The SDK's serializers need them even if there are none: a span without limits keeps undefined values. */
function attributeLimits(isOwnSerializer: boolean): AttributeLimits | undefined {
  const limit = (name: string) =>
    getNumberFromEnv(`OTEL_SPAN_ATTRIBUTE_${name}_LIMIT`) ?? getNumberFromEnv(`OTEL_ATTRIBUTE_${name}_LIMIT`);
  const [count, length] = [limit('COUNT'), limit('VALUE_LENGTH')];
  if (isOwnSerializer && count === undefined && length === undefined) return undefined;
  return {
    count: Math.max(0, count ?? Number.POSITIVE_INFINITY),
    length: length !== undefined && length > 0 ? length : Number.POSITIVE_INFINITY,
  };
}

function createOtlpExporter(settings: TracingSettings, serializer: SpanSerializer | undefined): SpanExporter {
  const text = settings.OTEL_EXPORTER_OTLP_HEADERS;
  // Passed on since they may come from a file, which the SDK does not know.
  const headers = text === undefined ? {} : { headers: parseKeyPairsIntoRecord(text) };
  const contentType = serializer ? 'application/x-protobuf' : 'application/json';
  return new OTLPExporterBase<ReadableSpan[]>(
    createOtlpHttpExportDelegate<ReadableSpan[], unknown>(
      convertLegacyHttpOptions(headers, 'TRACES', 'v1/traces', { 'Content-Type': contentType }),
      // It gets what `take` has queued.
      (serializer as unknown as ISerializer<ReadableSpan[], unknown>) ?? JsonTraceSerializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

/** Sends the SDK's warnings and errors to the log. */
function logProblems(logger: Logger): void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const log = (message: string) => {
    const now = performance.now();
    if (now - loggedAt < LOG_EVERY_MS) return;
    loggedAt = now;
    logger.warn({ reason: message.slice(0, MAX_MESSAGE_LENGTH) }, 'tracing.failed');
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: log, warn: log, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  setGlobalErrorHandler((error) => log(error instanceof Error ? error.message : String(error)));
}
