/** A span that has ended, as the SDK's processor and exporters take it. */
import { type Attributes, type SpanContext, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { TraceContext } from '@posthorn/core';
import type { StartedSpan } from './started-span.ts';
import type { AttributeValue, SpanKind as Kind, SpanEnd } from './tracing.ts';

/** What the spans of a process have in common. */
export type SpanOrigin = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>;

/** Infinity: no limit. */
export interface AttributeLimits {
  count: number;
  /** Characters of a text. */
  length: number;
}

export const NO_LIMITS: AttributeLimits = { count: Number.POSITIVE_INFINITY, length: Number.POSITIVE_INFINITY };

/** The number of a kind; in protobuf, it is one more. */
export const KINDS: Record<Kind, SpanKind> = {
  producer: SpanKind.PRODUCER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
};

/** Returns the span for the SDK: its attributes within the limits, and without undefined values. */
export function spanRecord(
  { resource, instrumentationScope }: SpanOrigin,
  limits: AttributeLimits,
  span: StartedSpan,
  { shape, values, error, link }: SpanEnd,
): ReadableSpan {
  const { parent, startMs, endMs } = span;
  const varying = shape.varying.map((name, i) => [name, values[i]] as const);
  const given = [...Object.entries(shape.attributes), ...varying, ['error.type', error] as const].filter(isGiven);
  const taken = given.slice(0, limits.count);
  return {
    name: shape.name,
    kind: KINDS[shape.kind],
    spanContext: () => contextOf(span),
    ...(parent && { parentSpanContext: remote(parent) }),
    startTime: millisToHrTime(startMs),
    endTime: millisToHrTime(endMs),
    duration: millisToHrTime(endMs - startMs),
    ended: true,
    status: { code: error === undefined ? SpanStatusCode.UNSET : SpanStatusCode.ERROR },
    attributes: within(limits, taken),
    links: link ? [{ context: remote(link) }] : [],
    events: [],
    resource,
    instrumentationScope,
    droppedAttributesCount: given.length - taken.length,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function isGiven(entry: readonly [string, AttributeValue | undefined]): entry is [string, AttributeValue] {
  return entry[1] !== undefined;
}

function within({ length }: AttributeLimits, attributes: readonly [string, AttributeValue][]): Attributes {
  return Object.fromEntries(
    attributes.map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, length) : value]),
  );
}

const contextOf = ({ traceId, spanId, flags }: TraceContext): SpanContext => ({ traceId, spanId, traceFlags: flags });

const remote = (context: TraceContext): SpanContext => ({ ...contextOf(context), isRemote: true });
