/**
 * Spans, if the settings name an exporter for them. Otherwise there is no tracing at all and nothing of OpenTelemetry
 * is loaded: only `open-telemetry.ts` imports it, and only `start` imports that file.
 */
import { type TraceContext, withTimeLimit } from '@posthorn/core';
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';
import type { TracingSettings } from './tracing-settings.ts';

/** The kinds of OpenTelemetry that Posthorn uses. */
export type SpanKind = 'producer' | 'client' | 'internal';

type AttributeValue = string | number | boolean;

/** What many spans have in common, always in the same object: it is written once. */
export interface SpanShape {
  /** The name of the span. */
  readonly name: string;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** What the tracer has written. */
  written?: Buffer;
}

export interface SpanEnd {
  /** The final name, and attributes that others have too. Without it, the name is the one of the start. */
  shape?: SpanShape;
  /** Undefined values are left out. */
  attributes: Record<string, AttributeValue | undefined>;
  /** What went wrong, as `error.type`: few values, no text of others. Undefined: nothing did. */
  error?: string | undefined;
  /** A span of another trace that belongs to this one. */
  link?: TraceContext | undefined;
  /** When it ended, from `performance.now()`; now by default. */
  endedAt?: number | undefined;
}

/** A span that is sampled. One that does not end is not exported. */
export interface Span {
  /** Its place in the trace: the parent of what happens within it. */
  readonly context: TraceContext;
  end(end: SpanEnd): void;
}

export interface Tracing extends Service {
  /** Starts a span. Undefined if it is not sampled: then the parent stays the parent of what follows. */
  startSpan(kind: SpanKind, name: string, parent: TraceContext | undefined): Span | undefined;
}

/** What `open-telemetry.ts` makes. */
export interface Tracer extends Pick<Tracing, 'startSpan'> {
  /** Exports what has ended. It may take as long as the collector does. */
  shutdown(): Promise<void>;
}

/** Time limit for exporting the last spans when a process stops. They matter less than a fast stop. */
const MAX_FLUSH_MS = 3_000;

export interface TracingOptions {
  app: string;
  version: string;
  settings: TracingSettings;
  logger: Logger;
}

/** Returns the tracing of an app, a service to start first and to stop last; undefined if it is off. */
export function createTracing(options: TracingOptions): Tracing | undefined {
  const { settings, logger } = options;
  const endpoint = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_ENDPOINT;
  const exporter = settings.OTEL_TRACES_EXPORTER ?? (endpoint === undefined ? 'none' : 'otlp');
  if (settings.OTEL_SDK_DISABLED === 'true' || exporter === 'none') return undefined;
  let tracer: Tracer | undefined;
  return {
    name: 'tracing',
    async start() {
      if (tracer) return;
      const { openTracer } = await import('./open-telemetry.ts');
      tracer = openTracer({ ...options, exporter });
    },
    startSpan: (kind, name, parent) => tracer?.startSpan(kind, name, parent),
    async stop(graceMs) {
      const flushed = withTimeLimit(Math.min(graceMs, MAX_FLUSH_MS), tracer?.shutdown() ?? Promise.resolve());
      await flushed.catch((err: unknown) => logger.warn({ err }, 'tracing.flush_failed'));
    },
  };
}
