/**
 * The span of an attempt: an HTTP request to a receiver, and the sending of a message, in the terms of OpenTelemetry's
 * conventions.
 */
import type { Attempt, Environment, TraceContext } from '@posthorn/core';
import type { Span, SpanShape, Tracing } from '@posthorn/runtime';
import type { SendResult } from '@posthorn/sender';
import type { BegunAttempt } from '@posthorn/store';
import type { AttemptInFlight } from './attempt-in-flight.ts';

/** The attributes that differ from attempt to attempt. */
const VARYING = [
  'messaging.message.id',
  'http.response.status_code',
  'http.request.resend_count',
  'network.peer.address',
  'posthorn.delivery.id',
  'posthorn.replay',
];

/** What the spans of a subscription have in common: by subscription id, then by environment and event type. */
const ofSubscriptions = new Map<string, { url: string; shapes: Record<Environment, Map<string, SpanShape>> }>();
/**
 * Beyond this number of shapes the cache is emptied: that costs less than to track the last use for each span. With the
 * spans that the tracer keeps of it, a shape takes about 3 KB, and a subscription may have 20 shapes.
 */
const MAX_SHAPES = 4_000;
let shapeCount = 0;

function shapeOf({ subscriptionId, url, environment, eventType }: BegunAttempt): SpanShape {
  if (shapeCount > MAX_SHAPES) {
    ofSubscriptions.clear();
    shapeCount = 0;
  }
  let known = ofSubscriptions.get(subscriptionId);
  if (known?.url !== url) {
    known = { url, shapes: { sandbox: new Map(), production: new Map() } };
    ofSubscriptions.set(subscriptionId, known);
  }
  const shapes = known.shapes[environment];
  let shape = shapes.get(eventType);
  if (!shape) {
    const attributes = {
      'messaging.system': 'posthorn',
      'messaging.operation.name': 'deliver',
      'messaging.operation.type': 'send',
      'messaging.destination.name': eventType,
      'http.request.method': 'POST',
      ...attributesOfUrl(url),
      'posthorn.subscription.id': subscriptionId,
      'posthorn.environment': environment,
    };
    shape = { kind: 'client', name: `deliver ${eventType}`, attributes, varying: VARYING };
    shapes.set(eventType, shape);
    shapeCount += 1;
  }
  return shape;
}

function attributesOfUrl(text: string): Record<string, string | number> {
  const url = URL.parse(text);
  if (!url) return {};
  return {
    // Leaves out what may be secret: user, password, path, query. The log has no url either.
    'url.full': `${url.origin}/`,
    'server.address': url.hostname,
    'server.port': url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
  };
}

/** Starts the span of an attempt in the trace of its event; undefined without a sampled trace, or if tracing is off. */
export function startAttemptSpan(tracing: Tracing | undefined, trace: TraceContext | undefined): Span | undefined {
  return tracing && trace && tracing.startSpan(trace);
}

/**
 * Ends the span, if the attempt has one. `error`: the attempt's error, or why it is not counted. `endedAt`: when the
 * result was known, from `performance.now()`.
 */
export function endAttemptSpan(
  { span, job, event, begun }: Pick<AttemptInFlight, 'span' | 'job' | 'event' | 'begun'>,
  result: SendResult,
  error: Attempt['error'] | 'aborted' | 'outage',
  endedAt?: number,
): void {
  if (!span) return;
  const statusCode = result.kind === 'responded' ? result.statusCode : undefined;
  span.end({
    shape: shapeOf(begun),
    values: [
      event.id,
      statusCode,
      begun.attemptNumber > 1 ? begun.attemptNumber - 1 : undefined,
      result.ip ?? undefined,
      job.deliveryId,
      begun.isReplay || undefined,
    ],
    // By OpenTelemetry's HTTP conventions, the error of a response is its status code.
    error: error === null ? undefined : error === 'status' ? String(statusCode) : error,
    endedAt,
  });
}
