/** The span of a publication: an event comes in. Its context is stored with the event, so that every attempt is within it. */
import { toAppError } from '@posthorn/http';
import type { Span } from '@posthorn/runtime';
import type { IngestResult } from './ingest-event.ts';

/** Resolves or rejects as `ingesting` does, and ends the span with its result. */
export async function endWith(span: Span, publisher: string, ingesting: Promise<IngestResult>): Promise<IngestResult> {
  const operation = {
    'messaging.system': 'posthorn',
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    'posthorn.publisher': publisher,
  };
  try {
    const result = await ingesting;
    const { kind, event } = result;
    span.end({
      name: `publish ${event.type}`,
      attributes: {
        ...operation,
        'messaging.destination.name': event.type,
        'messaging.message.id': event.id,
        'posthorn.environment': event.environment,
        'posthorn.outcome': kind,
        'posthorn.deliveries': kind === 'conflict' ? undefined : result.deliveries,
      },
      error: kind === 'conflict' ? kind : undefined,
    });
    return result;
  } catch (error) {
    span.end({ attributes: operation, error: toAppError(error).code });
    throw error;
  }
}
