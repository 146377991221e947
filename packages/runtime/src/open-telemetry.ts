/**
 * The tracer: spans of our own, which OpenTelemetry's SDK exports in batches from a bounded queue. tracing.ts loads
 * this file only if tracing is on.
 */
import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { getNumberFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { createOtlpNetworkExportDelegate, OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { convertLegacyHttpOptions, createOtlpHttpExporterMetrics } from '@opentelemetry/otlp-exporter-base/node-http';
import { type ISerializer, JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ConsoleSpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { Logger } from './logger.ts';
import { createTransport } from './otlp-transport.ts';
import { createSampler } from './sampler.ts';
import { createSeldom } from './seldom.ts';
import { batchLimitsFromEnv, SpanBatches } from './span-batches.ts';
import { SpanIds } from './span-ids.ts';
import { type AttributeLimits, type SpanOrigin, SpanRecord } from './span-record.ts';
import { type SpanBatch, SpanWriter } from './span-writer.ts';
import type { Tracer, TracingOptions } from './tracing.ts';
import type { TracingSettings } from './tracing-settings.ts';

/** What a collector answers may be part of the SDK's messages. */
const MAX_MESSAGE_LENGTH = 300;

/**
 * Opens the tracer. What Posthorn's settings do not have is read from the environment: sizes and times of the queue,
 * limits, certificates.
 */
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
  const isWritten = exporter === 'otlp' && settings.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/protobuf';
  const processor = isWritten ? writtenBatches(settings, scope) : sdkBatches(settings, exporter);
  const origin: SpanOrigin = {
    ...scope,
    limits: attributeLimits(isWritten),
    take: processor.take,
  };
  const ids = new SpanIds();
  const isSampled = createSampler(settings);
  return {
    startSpan(kind, name, parent) {
      ids.next();
      if (!isSampled(parent?.traceId ?? ids.traceId, parent)) return undefined;
      return new SpanRecord(origin, kind, name, ids, parent);
    },
    shutdown: processor.shutdown,
  };
}

interface Processor {
  take(span: SpanRecord): void;
  shutdown(): Promise<void>;
}

/** Spans that we write. */
function writtenBatches(settings: TracingSettings, scope: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>) {
  const serializer: ISerializer<SpanBatch, unknown> = {
    serializeRequest: ({ bytes }) => bytes,
    deserializeResponse: (data) => ProtobufTraceSerializer.deserializeResponse(data),
  };
  const exporter = createDelegate(settings, 'application/x-protobuf', serializer);
  const batches = new SpanBatches(new SpanWriter(scope), exporter, batchLimitsFromEnv());
  return { take: (span: SpanRecord) => batches.add(span), shutdown: () => batches.shutdown() };
}

/** Spans that the SDK writes, as JSON or for people. */
function sdkBatches(settings: TracingSettings, exporter: string): Processor {
  const processor = new BatchSpanProcessor(
    exporter === 'console'
      ? new ConsoleSpanExporter()
      : new OTLPExporterBase(createDelegate(settings, 'application/json', JsonTraceSerializer)),
  );
  return { take: (span) => processor.onEnd(span), shutdown: () => processor.shutdown() };
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

function createDelegate<Spans extends { length: number }>(
  settings: TracingSettings,
  contentType: string,
  serializer: ISerializer<Spans, unknown>,
) {
  const text = settings.OTEL_EXPORTER_OTLP_HEADERS;
  // Passed on since they may come from a file, which the SDK does not know.
  const headers = text === undefined ? {} : { headers: parseKeyPairsIntoRecord(text) };
  const own = { 'Content-Type': contentType, 'User-Agent': 'Posthorn' };
  const options = convertLegacyHttpOptions(headers, 'TRACES', 'v1/traces', own);
  const metrics = createOtlpHttpExporterMetrics<Spans>(
    'otlp_http_span_exporter',
    { name: 'span', countItems: ({ length }) => length },
    options.url,
    undefined,
  );
  return createOtlpNetworkExportDelegate(options, serializer, metrics, createTransport(options));
}

/** Sends the SDK's warnings and errors to the log: with a collector that is away, there may be one for each batch. */
function logProblems(logger: Logger): void {
  const mayLog = createSeldom();
  const log = (message: string) => {
    if (mayLog()) logger.warn({ reason: message.slice(0, MAX_MESSAGE_LENGTH) }, 'tracing.failed');
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: log, warn: log, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  setGlobalErrorHandler((error) => log(error instanceof Error ? error.message : String(error)));
}
