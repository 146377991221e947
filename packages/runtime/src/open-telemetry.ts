/**
 * The tracer: spans of our own, which are exported in batches from a bounded queue. tracing.ts loads this file only if
 * tracing is on.
 */
import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { getNumberFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { createOtlpNetworkExportDelegate, OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { convertLegacyHttpOptions, createOtlpHttpExporterMetrics } from '@opentelemetry/otlp-exporter-base/node-http';
import {
  type IExportTraceServiceResponse,
  type ISerializer,
  JsonTraceSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ConsoleSpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from './logger.ts';
import { createTransport } from './otlp-transport.ts';
import { createSampler } from './sampler.ts';
import { createSeldom } from './seldom.ts';
import { MAX_TIMER_MS } from './settings.ts';
import { batchLimitsFromEnv, SpanBatches } from './span-batches.ts';
import { SpanIds } from './span-ids.ts';
import { SpanLosses } from './span-losses.ts';
import { type AttributeLimits, NO_LIMITS, type SpanOrigin, spanRecord } from './span-record.ts';
import { type SpanBatch, SpanWriter } from './span-writer.ts';
import { StartedSpan, type TakeSpan } from './started-span.ts';
import type { Tracer, TracingOptions } from './tracing.ts';
import type { TracingSettings } from './tracing-settings.ts';
import { version } from './version.ts';

const PROTOBUF = 'application/x-protobuf';
/** A message of the SDK is truncated to this many characters, because it may have the response of a collector in it. */
const MAX_MESSAGE_LENGTH = 300;
/** What the SDK says of the URL in the environment, which may have a password in it: that URL is not used (`urlOf`). */
const OF_UNUSED_URL = /^Configuration: .*\bURL\b/;

/**
 * Opens the tracer. The standard variables that are no settings of Posthorn are read from the environment here: sizes
 * and times of the queue, limits, certificates.
 */
export function openTracer(options: TracingOptions & { exporter: string }): Tracer {
  const { app, settings, logger, registry, exporter } = options;
  const losses = new SpanLosses(registry);
  logProblems(logger, losses);
  const resource = resourceFromAttributes({
    'service.name': `posthorn-${app}`,
    'service.version': version,
    'service.instance.id': randomUUID(),
    ...settings.OTEL_RESOURCE_ATTRIBUTES,
    ...(settings.OTEL_SERVICE_NAME !== undefined && { 'service.name': settings.OTEL_SERVICE_NAME }),
  });
  const origin: SpanOrigin = { resource, instrumentationScope: { name: 'posthorn', version } };
  const limits = attributeLimits();
  const isProtobuf = exporter === 'otlp' && protocolOf(settings) === 'http/protobuf';
  const processor =
    isProtobuf && !limits
      ? writtenBatches(settings, losses, origin)
      : sdkBatches(settings, losses, exporter, origin, limits ?? NO_LIMITS);
  const ids = new SpanIds();
  const isSampled = createSampler(settings);
  return {
    startSpan(parent) {
      ids.next();
      if (!isSampled(parent ?? ids, parent)) return undefined;
      return new StartedSpan(processor.take, ids, parent);
    },
    shutdown: processor.shutdown,
  };
}

interface Processor {
  take: TakeSpan;
  shutdown(): Promise<void>;
}

/** Spans that Posthorn itself queues and writes: those for protobuf, unless attributes are limited. */
function writtenBatches(settings: TracingSettings, losses: SpanLosses, origin: SpanOrigin): Processor {
  const serializer: ISerializer<SpanBatch, IExportTraceServiceResponse> = {
    serializeRequest: ({ bytes }) => bytes,
    deserializeResponse: (data) => ProtobufTraceSerializer.deserializeResponse(data),
  };
  const exporter = createDelegate(settings, losses, PROTOBUF, serializer);
  const batches = new SpanBatches(new SpanWriter(origin), exporter, batchLimitsFromEnv());
  return { take: (span, end) => batches.add(span, end), shutdown: () => batches.shutdown() };
}

/** Spans that the SDK queues and writes, as protobuf, as JSON or for people. */
function sdkBatches(
  settings: TracingSettings,
  losses: SpanLosses,
  exporter: string,
  origin: SpanOrigin,
  limits: AttributeLimits,
): Processor {
  const { delayMs, exportTimeoutMs, maxQueue, maxBatch } = batchLimitsFromEnv();
  const processor = new BatchSpanProcessor({
    exporter: exporter === 'console' ? new ConsoleSpanExporter() : new OTLPExporterBase(sdkDelegate(settings, losses)),
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: exportTimeoutMs,
    maxQueueSize: maxQueue,
    maxExportBatchSize: maxBatch,
  });
  return {
    take: (span, end) => processor.onEnd(spanRecord(origin, limits, span, end)),
    shutdown: () => processor.shutdown(),
  };
}

function sdkDelegate(settings: TracingSettings, losses: SpanLosses) {
  return protocolOf(settings) === 'http/protobuf'
    ? createDelegate(settings, losses, PROTOBUF, ProtobufTraceSerializer)
    : createDelegate(settings, losses, 'application/json', JsonTraceSerializer);
}

/** What is set for traces alone comes first, here and below. */
const protocolOf = (settings: TracingSettings) =>
  settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL;

/** Where spans are posted to: the endpoint for traces as it is, or a path below the one for all signals. */
function urlOf({
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own,
  OTEL_EXPORTER_OTLP_ENDPOINT: base,
}: TracingSettings): string {
  if (own !== undefined) return own;
  const url = new URL(base ?? 'http://localhost:4318');
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

/** The limits of attributes; undefined if there are none. By the specification, a negative one is not set. */
function attributeLimits(): AttributeLimits | undefined {
  const limit = (name: string) =>
    [`OTEL_SPAN_ATTRIBUTE_${name}_LIMIT`, `OTEL_ATTRIBUTE_${name}_LIMIT`]
      .map(getNumberFromEnv)
      .find((value) => value !== undefined && value >= 0);
  const [count, length] = [limit('COUNT'), limit('VALUE_LENGTH')];
  if (count === undefined && length === undefined) return undefined;
  return { count: count ?? NO_LIMITS.count, length: length ?? NO_LIMITS.length };
}

function createDelegate<Spans extends { length: number }>(
  settings: TracingSettings,
  losses: SpanLosses,
  contentType: string,
  serializer: ISerializer<Spans, IExportTraceServiceResponse>,
) {
  const config = {
    // The SDK would read the variables, which may have blanks around them, and headers may come from a file.
    url: urlOf(settings),
    headers: {
      ...parseKeyPairsIntoRecord(settings.OTEL_EXPORTER_OTLP_HEADERS),
      ...parseKeyPairsIntoRecord(settings.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
  };
  const own = { 'Content-Type': contentType, 'User-Agent': 'Posthorn' };
  const given = convertLegacyHttpOptions(config, 'TRACES', 'v1/traces', own);
  const options = { ...given, timeoutMillis: Math.min(given.timeoutMillis, MAX_TIMER_MS) };
  const metrics = createOtlpHttpExporterMetrics<Spans>(
    'otlp_http_span_exporter',
    { name: 'span', countItems: ({ length }) => length },
    options.url,
    undefined,
  );
  return losses.ofExports(
    createOtlpNetworkExportDelegate(options, losses.ofResponses(serializer), metrics, createTransport(options)),
  );
}

/** What `SpanBatches` and the SDK's processor say of a full queue. */
const DROPPED = /^Dropped (\d+) spans/;

/** Sends the SDK's warnings and errors to the log: with a collector that is away, there may be one for each batch. */
function logProblems(logger: Logger, losses: SpanLosses): void {
  const mayLog = createSeldom();
  const log = (...parts: unknown[]) => {
    const reason = parts.flatMap((part) =>
      part instanceof Error ? part.message : typeof part === 'string' ? part : [],
    );
    const message = reason.join(' ');
    if (OF_UNUSED_URL.test(message)) return;
    losses.add(Number(DROPPED.exec(message)?.[1]));
    if (mayLog())
      logger.warn({ reason: message.slice(0, MAX_MESSAGE_LENGTH), spans_dropped: losses.total }, 'tracing.failed');
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: log, warn: log, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  setGlobalErrorHandler((error) => log(error));
}
