/** The tracer: spans of OpenTelemetry's SDK, exported in batches from a bounded queue. tracing.ts loads this file only if tracing is on. */
import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import { JsonTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ConsoleSpanExporter,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { TraceContext } from '@posthorn/core';
import type { Logger } from './logger.ts';
import { spanSerializer } from './span-serializer.ts';
import type { Tracer, TracingOptions } from './tracing.ts';
import type { TracingSettings } from './tracing-settings.ts';

/** A collector that is away may make the SDK report an error with each batch. */
const LOG_EVERY_MS = 10_000;
/** What a collector answers may be part of the SDK's messages. */
const MAX_MESSAGE_LENGTH = 300;

const KINDS = { producer: SpanKind.PRODUCER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Opens the tracer. The SDK reads the settings that Posthorn does not know from the environment: sizes and times of the queue, limits, certificates. */
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
  const processor = new BatchSpanProcessor(
    exporter === 'console' ? new ConsoleSpanExporter() : createOtlpExporter(settings),
  );
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
  const tracer = provider.getTracer('posthorn', version);
  return {
    startSpan(kind, name, parent) {
      const span = tracer.startSpan(name, { kind: KINDS[kind] }, parent ? contextOf(parent) : ROOT_CONTEXT);
      if (!span.isRecording()) return undefined;
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        context: { traceId, spanId, flags: traceFlags },
        end({ name: finalName, attributes, error, link, endedAt }) {
          if (finalName !== undefined) span.updateName(finalName);
          for (const key in attributes) {
            const value = attributes[key];
            if (value !== undefined) span.setAttribute(key, value);
          }
          if (error !== undefined) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
          if (link) span.addLink({ context: remote(link) });
          span.end(endedAt);
        },
      };
    },
    shutdown: () => provider.shutdown(),
  };
}

function createOtlpExporter(settings: TracingSettings): SpanExporter {
  const text = settings.OTEL_EXPORTER_OTLP_HEADERS;
  // Passed on since they may come from a file, which the SDK does not know.
  const headers = text === undefined ? {} : { headers: parseKeyPairsIntoRecord(text) };
  const isJson = settings.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json';
  const contentType = isJson ? 'application/json' : 'application/x-protobuf';
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(
      convertLegacyHttpOptions(headers, 'TRACES', 'v1/traces', { 'Content-Type': contentType }),
      isJson ? JsonTraceSerializer : spanSerializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

const remote = ({ traceId, spanId, flags }: TraceContext) => ({ traceId, spanId, traceFlags: flags, isRemote: true });
const contextOf = (parent: TraceContext) => trace.setSpanContext(ROOT_CONTEXT, remote(parent));

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
