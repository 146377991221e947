/** The publisher API (interface 3) over HTTP: one event, or a batch of them. */
import { AppError, publishedEventSchema } from '@posthorn/core';
import {
  type Admission,
  type Api,
  createBudget,
  principalOf,
  problemDocument,
  type RateLimit,
  toAppError,
} from '@posthorn/http';
import { z } from 'zod';
import { type IngestContext, type IngestResult, ingestEvent } from './ingest-event.ts';
import type { PublisherQuota } from './publisher-quota.ts';

interface PublisherKey {
  name: string;
  environment: 'sandbox' | 'production' | 'both';
  key: string;
}

/** A batch may be this many times as large as one event. */
const BATCH_FACTOR = 32;
const MAX_BATCH_EVENTS = 500;
/** No event is smaller, so a batch has at most so many of them. */
const SMALL_EVENT_BYTES = 90;
/**
 * Events in flight at once, over all calls: a few seconds' work. With more, every response would come too late, and publishers who repeat
 * what had no response would make it worse. One publisher alone may have half of them.
 */
const MAX_EVENTS_IN_FLIGHT = 12_000;
/** Bad fields that the response to one batch lists, over all of its events. */
const MAX_BATCH_FIELD_ERRORS = 500;
/** Events of one batch in hand at once: enough to share round trips, few enough to leave room for other calls. */
const BATCH_CONCURRENCY = 100;

const acceptedFields = {
  id: z.string(),
  duplicate: z.boolean().describe('The same event was accepted before'),
  deliveries: z.int().min(0),
};
const acceptedSchema = z.strictObject(acceptedFields).meta({ id: 'Accepted' });
const batchSchema = z.strictObject({
  events: z.array(z.unknown()).min(1).max(MAX_BATCH_EVENTS).describe('As for POST /v1/events'),
});
const batchAnswerSchema = z
  .strictObject({
    results: z.array(
      z.union([
        z.strictObject({ status: z.int(), ...acceptedFields }),
        z.strictObject({ status: z.int(), error: z.record(z.string(), z.unknown()) }),
      ]),
    ),
  })
  .meta({ id: 'BatchResults' });

export interface PublisherContext extends IngestContext {
  /** Events a key may publish in a second; undefined for no limit. */
  rateLimit: RateLimit | undefined;
  quota: PublisherQuota;
}

export function publisherRoutes(api: Api, context: PublisherContext): void {
  const inFlight = createBudget(MAX_EVENTS_IN_FLIGHT);
  const admit = (eventsIn: Admission['weigh']): Admission => ({ budget: inFlight, weigh: eventsIn });
  const events = api.tagged('Events');

  events.post('/v1/events', {
    summary: 'Publish an event',
    description: 'The response comes when the event and all its deliveries are stored.',
    body: publishedEventSchema,
    checksBody: true,
    maxBodyBytes: context.maxEventBytes,
    admission: admit(() => 1),
    responses: {
      202: { description: 'Accepted', schema: acceptedSchema },
      200: { description: 'Accepted before; nothing new was created', schema: acceptedSchema },
    },
    problems: [403, 409],
    async handle({ body, caller, response }) {
      await context.rateLimit?.consume(caller);
      const { status, ...accepted } = await publishOne(context, principalOf<PublisherKey>(response), body);
      response.status(status);
      return accepted;
    },
  });

  events.post('/v1/events/batch', {
    summary: `Publish up to ${MAX_BATCH_EVENTS} events`,
    description: 'Each event is accepted or refused on its own; the results are in the order of the events.',
    body: batchSchema,
    maxBodyBytes: BATCH_FACTOR * context.maxEventBytes,
    admission: admit((bytes) => Math.min(MAX_BATCH_EVENTS, Math.max(1, Math.ceil(bytes / SMALL_EVENT_BYTES)))),
    responses: { 200: { description: 'A result for each event', schema: batchAnswerSchema } },
    problems: [403, 409],
    async handle({ body, caller, response }) {
      await context.rateLimit?.consume(caller, body.events.length);
      const publisher = principalOf<PublisherKey>(response);
      // The same id twice in a batch must meet in order, so each id's events are taken one after the other.
      const results = await inOrderById(body.events, (event) => ingestOne(context, publisher, event));
      if (results.every(({ status }) => status === 503)) {
        throw new AppError('unavailable', 'None of the events was accepted; retry shortly.', { retryAfterS: 5 });
      }
      if (results.some(({ status }) => status === 503)) response.set('Retry-After', '5');
      return { results: serializeResults(results) };
    },
  });
}

type BatchResult = ReturnType<typeof answerOf> | AppError;

/** Throws `AppError` for whatever keeps the event from being accepted. */
async function publishOne(context: PublisherContext, publisher: PublisherKey, event: unknown) {
  context.quota.check(publisher.name);
  const result = await ingestEvent(context, event, publisher.environment);
  logIngested(context, publisher, result);
  if (result.kind === 'conflict') throw conflict(result.event.id);
  if (result.kind === 'accepted') {
    context.quota.count(publisher.name, Buffer.byteLength(result.event.dataJson), result.deliveries);
  }
  return answerOf(result);
}

async function ingestOne(context: PublisherContext, publisher: PublisherKey, event: unknown): Promise<BatchResult> {
  try {
    return await publishOne(context, publisher, event);
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.status >= 500)
      context.logger.warn({ err: error.cause, publisher: publisher.name }, 'event.ingest_failed');
    return error;
  }
}

async function inOrderById(
  events: unknown[],
  ingest: (event: unknown) => Promise<BatchResult>,
): Promise<BatchResult[]> {
  const results: BatchResult[] = new Array(events.length);
  const groups = new Map<unknown, number[]>();
  for (const [i, event] of events.entries()) {
    const id = (event as { id?: unknown } | null)?.id ?? Symbol('no id');
    groups.set(id, [...(groups.get(id) ?? []), i]);
  }
  const queue = [...groups.values()];
  // Once Redis is found away the rest is not tried: each try would be waited for, and the publisher has to come again anyway.
  let away: BatchResult | undefined;
  const work = async () => {
    for (let group = queue.pop(); group !== undefined; group = queue.pop()) {
      for (const i of group) {
        const result = away ?? (await ingest(events[i]));
        results[i] = result;
        if (result.status === 503) away = result;
      }
    }
  };
  await Promise.all(Array.from({ length: BATCH_CONCURRENCY }, work));
  return results;
}

/** The results as they are returned, with a bounded number of bad fields. */
function serializeResults(results: readonly BatchResult[]) {
  let fieldsLeft = MAX_BATCH_FIELD_ERRORS;
  return results.map((result) => {
    if (!(result instanceof AppError)) return result;
    const error = problemDocument(result, fieldsLeft);
    fieldsLeft = Math.max(0, fieldsLeft - (result.fields?.listed.length ?? 0));
    return { status: result.status, error };
  });
}

function answerOf(result: Exclude<IngestResult, { kind: 'conflict' }>) {
  const duplicate = result.kind === 'duplicate';
  return { status: duplicate ? 200 : 202, id: result.event.id, duplicate, deliveries: result.deliveries };
}

function conflict(id: string): AppError {
  return new AppError('conflict', `An event with the id ${id} and other content was accepted before.`);
}

/** The one wide log line of an event. */
function logIngested({ logger }: IngestContext, publisher: PublisherKey, result: IngestResult): void {
  const { id, type, environment } = result.event;
  logger.info(
    {
      event_id: id,
      event_type: type,
      environment,
      publisher: publisher.name,
      outcome: result.kind,
      deliveries: result.kind === 'conflict' ? undefined : result.deliveries,
    },
    'event.ingested',
  );
}
