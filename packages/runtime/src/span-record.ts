/**
 * A span, as the SDK's processor and exporters take it. The SDK's own spans check each attribute, know contexts and
 * events, and count themselves: with them, tracing costs more than a twentieth of ingest's CPU (docs/decisions, 49).
 */
import {
  type Attributes,
  type HrTime,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { TraceContext } from '@posthorn/core';
import type { SpanIds } from './span-ids.ts';
import type { SpanKind as Kind, Span, SpanEnd, SpanShape } from './tracing.ts';

/** What the spans of a process have in common. */
export interface SpanOrigin extends Pick<ReadableSpan, 'resource' | 'instrumentationScope'> {
  /** Undefined if there are none and the exporter leaves out undefined values by itself. */
  limits: AttributeLimits | undefined;
  /** Takes a span that has ended, for export. */
  take(span: SpanRecord): void;
}

/** Infinity: no limit. */
export interface AttributeLimits {
  count: number;
  /** Characters of a text. */
  length: number;
}

const KINDS: Record<Kind, SpanKind> = {
  producer: SpanKind.PRODUCER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};
const UNSET = { code: SpanStatusCode.UNSET };
const FAILED = { code: SpanStatusCode.ERROR };
const NONE: never[] = [];
const NO_ATTRIBUTES = {};

/** A span that is sampled. It ends once. */
export class SpanRecord implements Span, ReadableSpan {
  readonly context: TraceContext;
  readonly parentSpanContext?: SpanContext;
  readonly kind: SpanKind;
  /** The bytes of its own ids begin at `idsAt`; those of the trace only if it has no parent. */
  readonly ids: Buffer;
  readonly idsAt: number;
  /** Name and, if there are no limits, attributes that other spans have too. */
  shape: SpanShape;
  /** In milliseconds since 1970. The end has a fraction. */
  readonly startMs = Date.now();
  endMs = 0;
  attributes: Attributes = NO_ATTRIBUTES;
  droppedAttributesCount = 0;
  status = UNSET;
  links: ReadableSpan['links'] = NONE;
  readonly #startedAt = performance.now();
  readonly #origin: SpanOrigin;

  /** `name`: unless it ends with a shape. The span has the present ids. */
  constructor(origin: SpanOrigin, kind: Kind, name: string, ids: SpanIds, parent: TraceContext | undefined) {
    this.ids = ids.bytes;
    this.idsAt = ids.at;
    this.context = parent
      ? { traceId: parent.traceId, spanId: ids.spanId, flags: TraceFlags.SAMPLED }
      : { traceId: ids.traceId, spanId: ids.spanId, flags: TraceFlags.SAMPLED, packedIds: ids.packed };
    if (parent) this.parentSpanContext = remote(parent);
    this.kind = KINDS[kind];
    this.shape = { name, attributes: NO_ATTRIBUTES };
    this.#origin = origin;
  }

  end({ shape = this.shape, attributes, error, link, endedAt = performance.now() }: SpanEnd): void {
    this.shape = shape;
    // Not by the clock, which may be set meanwhile.
    this.endMs = this.startMs + endedAt - this.#startedAt;
    const all = error === undefined ? attributes : { ...attributes, 'error.type': error };
    const { limits, take } = this.#origin;
    if (limits) this.#setWithin(limits, { ...shape.attributes, ...all });
    else this.attributes = all as Attributes;
    if (error !== undefined) this.status = FAILED;
    if (link) this.links = [{ context: remote(link) }];
    take(this);
  }

  #setWithin({ count, length }: AttributeLimits, attributes: SpanEnd['attributes']): void {
    const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
    const taken = given.slice(0, count);
    this.attributes = Object.fromEntries(
      taken.map(([key, value]) => [key, typeof value === 'string' ? value.slice(0, length) : value]),
    );
    this.droppedAttributesCount = given.length - taken.length;
    this.shape = { name: this.name, attributes: NO_ATTRIBUTES };
  }

  // What follows is for the SDK alone.
  get name(): string {
    return this.shape.name;
  }
  spanContext(): SpanContext {
    const { traceId, spanId, flags } = this.context;
    return { traceId, spanId, traceFlags: flags };
  }
  get resource(): ReadableSpan['resource'] {
    return this.#origin.resource;
  }
  get instrumentationScope(): ReadableSpan['instrumentationScope'] {
    return this.#origin.instrumentationScope;
  }
  get startTime(): HrTime {
    return millisToHrTime(this.startMs);
  }
  get endTime(): HrTime {
    return millisToHrTime(this.endMs);
  }
  get duration(): HrTime {
    return millisToHrTime(this.endMs - this.startMs);
  }
  get ended(): boolean {
    return this.endMs > 0;
  }
  get events(): never[] {
    return NONE;
  }
  get droppedEventsCount(): number {
    return 0;
  }
  get droppedLinksCount(): number {
    return 0;
  }
}

function remote({ traceId, spanId, flags }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: flags, isRemote: true };
}
