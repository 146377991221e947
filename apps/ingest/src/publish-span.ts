/** The span of a publication: an event comes in. Its context is stored with the event, so that every attempt is within it. */
import { toAppError } from '@posthorn/http';
import type { CommonAttributes, Span } from '@posthorn/runtime';
import type { IngestResult } from './ingest-event.ts';

const OPERATION = {
  'messaging.system': 'posthorn',
  'messaging.operation.name': 'publish',
  'messaging.operation.type': 'send',
};

interface OfResult {
  name: string;
  common: readonly CommonAttributes[];
}

/** What the spans of most events have in common, all but the id: their publisher, type, environment, outcome and number of deliveries are few. */
const ofResults = new Map<string, OfResult>();
/** Of further ones, each is made again. */
const MAX_RESULTS = 1_000;

/** Ends the span of an event with the result. */
export function endWithResult(span: Span, publisher: string, result: IngestResult): void {
  const { name, common } = ofResult(publisher, result);
  const attributes = { 'messaging.message.id': result.event.id };
  span.end({ name, common, attributes, error: result.kind === 'conflict' ? result.kind : undefined });
}

function ofResult(publisher: string, result: IngestResult): OfResult {
  const { kind, event } = result;
  const deliveries = kind === 'conflict' ? undefined : result.deliveries;
  const key = `${event.type} ${event.environment} ${kind} ${deliveries} ${publisher}`;
  let known = ofResults.get(key);
  if (!known) {
    const attributes = {
      ...OPERATION,
      'posthorn.publisher': publisher,
      'messaging.destination.name': event.type,
      'posthorn.environment': event.environment,
      'posthorn.outcome': kind,
      ...(deliveries !== undefined && { 'posthorn.deliveries': deliveries }),
    };
    known = { name: `publish ${event.type}`, common: [{ attributes }] };
    if (ofResults.size < MAX_RESULTS) ofResults.set(key, known);
  }
  return known;
}

/** Ends the span of an event that was not accepted. */
export function endWithError(span: Span, publisher: string, error: unknown): void {
  const attributes = { ...OPERATION, 'posthorn.publisher': publisher };
  span.end({ attributes, error: toAppError(error).code });
}
