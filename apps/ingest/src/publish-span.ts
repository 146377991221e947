/** The span of a publication: an event comes in. Its context is stored with the event, so that every attempt is within it. */
import { toAppError } from '@posthorn/http';
import type { CommonAttributes, Span } from '@posthorn/runtime';
import type { IngestResult } from './ingest-event.ts';

const operation: CommonAttributes = {
  attributes: {
    'messaging.system': 'posthorn',
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
  },
};
/** By event type and by the name of a publisher, both of which are few. */
const ofTypes = new Map<string, CommonAttributes>();
const ofPublishers = new Map<string, CommonAttributes>();

/** Resolves or rejects as `ingesting` does, and ends the span with its result. */
export async function endWith(span: Span, publisher: string, ingesting: Promise<IngestResult>): Promise<IngestResult> {
  const ofPublisher = common(ofPublishers, 'posthorn.publisher', publisher);
  try {
    const result = await ingesting;
    const { kind, event } = result;
    span.end({
      name: `publish ${event.type}`,
      common: [operation, ofPublisher, common(ofTypes, 'messaging.destination.name', event.type)],
      attributes: {
        'messaging.message.id': event.id,
        'posthorn.environment': event.environment,
        'posthorn.outcome': kind,
        'posthorn.deliveries': kind === 'conflict' ? undefined : result.deliveries,
      },
      error: kind === 'conflict' ? kind : undefined,
    });
    return result;
  } catch (error) {
    span.end({ common: [operation, ofPublisher], attributes: {}, error: toAppError(error).code });
    throw error;
  }
}

function common(known: Map<string, CommonAttributes>, key: string, value: string): CommonAttributes {
  let found = known.get(value);
  if (!found) {
    found = { attributes: { [key]: value } };
    known.set(value, found);
  }
  return found;
}
