/**
 * Ends the span of a publication. The context of the span is stored with the event, so that every attempt is within it.
 */
import { ENVIRONMENTS } from '@posthorn/core';
import { toAppError } from '@posthorn/http';
import type { Span, SpanShape } from '@posthorn/runtime';
import type { IngestResult } from './ingest-event.ts';

const OPERATION = {
  'messaging.system': 'posthorn',
  'messaging.operation.name': 'publish',
  'messaging.operation.type': 'send',
};

const VARYING = ['messaging.message.id'];

const OUTCOMES = ['accepted', 'duplicate', 'conflict'] as const satisfies IngestResult['kind'][];

/** What spans of similar events have in common: by publisher, by event type, and by a number made of the rest. */
const shapes = new Map<string, Map<string, Map<number, SpanShape>>>();
/** Shapes that are kept. Any further shape is made again for each event. */
const MAX_SHAPES = 1_000;
let shapeCount = 0;

/** Ends the span of an event with the result. */
export function endWithResult(span: Span, publisher: string, result: IngestResult): void {
  const shape = shapeOf(publisher, result);
  span.end({ shape, values: [result.event.id], error: result.kind === 'conflict' ? result.kind : undefined });
}

function shapeOf(publisher: string, result: IngestResult): SpanShape {
  const { kind, event } = result;
  const deliveries = kind === 'conflict' ? undefined : result.deliveries;
  // A number is a cheaper key than a text, which would have to be built and hashed for each event.
  const rest =
    ((deliveries ?? 0) * OUTCOMES.length + OUTCOMES.indexOf(kind)) * ENVIRONMENTS.length +
    ENVIRONMENTS.indexOf(event.environment);
  const ofType = shapes.get(publisher)?.get(event.type);
  const known = ofType?.get(rest);
  if (known) return known;
  const attributes = {
    ...OPERATION,
    'posthorn.publisher': publisher,
    'messaging.destination.name': event.type,
    'posthorn.environment': event.environment,
    'posthorn.outcome': kind,
    ...(deliveries !== undefined && { 'posthorn.deliveries': deliveries }),
  };
  const shape: SpanShape = { kind: 'producer', name: `publish ${event.type}`, attributes, varying: VARYING };
  if (shapeCount >= MAX_SHAPES) return shape;
  shapeCount += 1;
  const ofPublisher = shapes.get(publisher) ?? new Map<string, Map<number, SpanShape>>();
  shapes.set(publisher, ofPublisher);
  ofPublisher.set(event.type, (ofType ?? new Map<number, SpanShape>()).set(rest, shape));
  return shape;
}

/** Ends the span of an event that was not accepted. */
export function endWithError(span: Span, publisher: string, error: unknown): void {
  const attributes = { ...OPERATION, 'posthorn.publisher': publisher };
  const shape: SpanShape = { kind: 'producer', name: 'publish', attributes, varying: [] };
  span.end({ shape, values: [], error: toAppError(error).code });
}
