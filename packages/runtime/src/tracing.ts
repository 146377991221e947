/**
 * Spans, if the settings name an exporter for them. Otherwise there is no tracing at all and nothing of OpenTelemetry
 * is loaded: only `open-telemetry.ts` imports it, and only `start` imports that file.
 */
import { type TraceContext, withTimeLimit } from '@posthorn/core';
import type { Registry } from 'prom-client';
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';
import { exporterOf, type TracingSettings } from './tracing-settings.ts';

/** The kinds of OpenTelemetry that Posthorn uses. */
export type SpanKind = 'producer' | 'client' | 'internal';

export type AttributeValue = string | number | boolean;

/** What many spans have in common. They share one object, so that the tracer writes it only once. */
export interface SpanShape {
  readonly kind: SpanKind;
  /** The name of the span. */
  readonly name: string;
  /** Undefined values are left out. */
  readonly attributes: Readonly<Record<string, AttributeValue | undefined>>;
  /** The names of the attributes that differ from span to span. */
  readonly varying: readonly string[];
  /** Kept by the tracer: of each error and each set of values that are defined, the last span of this shape. */
  written?: WrittenShape[];
}

/** A span of a shape as bytes: the next one mostly differs in ids, times, and values of the same lengths. */
export interface WrittenShape {
  readonly error: string | undefined;
  readonly bytes: Buffer;
  /** Where the id of the parent is; undefined if it has none. */
  readonly parentAt: number | undefined;
  /** The varying values. */
  readonly values: readonly (AttributeValue | undefined)[];
  /** Where texts and numbers of one byte are, and their lengths in bytes; undefined for other values. */
  readonly places: readonly ({ at: number; length: number } | undefined)[];
}

export interface SpanEnd {
  shape: SpanShape;
  /** Of the varying attributes, in the order of their names. Undefined ones are left out. */
  values: readonly (AttributeValue | undefined)[];
  /** What went wrong, as `error.type`: few values, no text of others. Undefined: nothing did. */
  error?: string | undefined;
  /** A span of another trace that belongs to this one. */
  link?: TraceContext | undefined;
  /** When it ended, from `performance.now()`; now by default. */
  endedAt?: number | undefined;
}

/** A span that is sampled: the parent of what happens within it. One that does not end is not exported. */
export interface Span extends TraceContext {
  end(end: SpanEnd): void;
}

export interface Tracing extends Service {
  /** Starts a span. Undefined if it is not sampled: then the parent stays the parent of what follows. */
  startSpan(parent: TraceContext | undefined): Span | undefined;
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
  settings: TracingSettings;
  logger: Logger;
  registry: Registry;
}

/** Returns the tracing of an app, a service to start first and to stop last; undefined if it is off. */
export function createTracing(options: TracingOptions): Tracing | undefined {
  const { settings, logger } = options;
  const exporter = exporterOf((name) => settings[name]);
  if (exporter === 'none') return undefined;
  if (settings.OTEL_SDK_DISABLED.toLowerCase() !== 'false')
    logger.warn('OTEL_SDK_DISABLED is neither true nor false: tracing is on.');
  let tracer: Tracer | undefined;
  return {
    name: 'tracing',
    async start() {
      if (tracer) return;
      const { openTracer } = await import('./open-telemetry.ts');
      tracer = openTracer({ ...options, exporter });
    },
    startSpan: (parent) => tracer?.startSpan(parent),
    async stop(graceMs) {
      const flushed = withTimeLimit(Math.min(graceMs, MAX_FLUSH_MS), tracer?.shutdown() ?? Promise.resolve());
      await flushed.catch((err: unknown) => logger.warn({ err }, 'tracing.flush_failed'));
    },
  };
}
