/** The routes of the publisher API (interface 3): publish one event, or a batch. */
import {
  AppError,
  EXAMPLE_EVENT,
  MAX_JSON_VALUES,
  parseTraceparent,
  publishedEventSchema,
  type TraceContext,
} from '@posthorn/core';
import {
  type Api,
  createBudget,
  parseFields,
  principalOf,
  problemDocument,
  problemSchema,
  type RateLimit,
  toAppError,
} from '@posthorn/http';
import { boundedLog, frequentLine, type LineValue, type Logger } from '@posthorn/runtime';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { IngestSettings } from './config.ts';
import { type IngestContext, type IngestResult, ingestEvent, MAX_DATA_DEPTH } from './ingest-event.ts';
import type { CountEvents } from './metrics.ts';
import { endWithError, endWithResult } from './publish-span.ts';
import type { PublisherQuota } from './publisher-quota.ts';

type PublisherKey = IngestSettings['PUBLISHER_KEYS'][number];

/** A batch may be this many times as large as one event. */
const BATCH_FACTOR = 32;
/** A batch may always be this large: enough for `MAX_BATCH_EVENTS` where an event may have at most 16 KB. */
const MIN_BATCH_LIMIT_BYTES = 8 * 1024 * 1024;
const MAX_BATCH_EVENTS = 500;
/** No valid event is smaller. This bounds the number of events in a batch whose size is known. */
const MIN_EVENT_BYTES = 81;
/**
 * Events in flight at once, over all calls: a few seconds of work. With more, every response would come too late, and
 * publishers that repeat their calls would make it worse. One publisher alone may have half of them.
 */
const MAX_EVENTS_IN_FLIGHT = 12_000;
/** Invalid fields that the response to one batch lists, over all of its events. */
const MAX_BATCH_FIELD_ERRORS = 500;
/** Events of one batch that are ingested at once: enough to share round trips, few enough not to delay other calls. */
const BATCH_CONCURRENCY = 100;

const acceptedFields = {
  id: z.string(),
  duplicate: z
    .boolean()
    .describe(
      'The same event was accepted before; seldom also for its first call, if a reply from the storage to that was lost',
    ),
  deliveries: z.int().min(0),
};
const acceptedSchema = z.strictObject(acceptedFields).meta({ id: 'Accepted' });
/** The batch as it is documented. Its events are checked one by one: an invalid one does not refuse the others. */
const batchSchema = z
  .strictObject({
    events: z.array(publishedEventSchema).min(1).max(MAX_BATCH_EVENTS).describe('As for POST /v1/events'),
    traceparents: z
      .array(z.string().nullable())
      .max(MAX_BATCH_EVENTS)
      .optional()
      .describe(
        'The `traceparent` of each event, in the same order; where it is null, missing or invalid, that of the call',
      ),
  })
  .meta({ examples: [{ events: [EXAMPLE_EVENT] }] });
const uncheckedBatchSchema = batchSchema.extend({ events: z.array(z.unknown()).min(1).max(MAX_BATCH_EVENTS) });
const batchResultsSchema = z
  .strictObject({
    results: z.array(
      z.union([
        z.strictObject({ status: z.int().describe('As for POST /v1/events: 202 or 200'), ...acceptedFields }),
        z.strictObject({ status: z.int().describe('As for POST /v1/events: 400 or more'), error: problemSchema }),
      ]),
    ),
  })
  .meta({ id: 'BatchResults' });

/** The fields of the line that ingest writes for each event, in their order; `plain`: our own words and ids. */
const INGESTED_FIELDS = {
  event_id: 'any',
  event_type: 'plain',
  environment: 'plain',
  publisher: 'any',
  outcome: 'plain',
  deliveries: 'any',
  trace_id: 'plain',
  span_id: 'plain',
} as const;

export interface PublisherContext extends IngestContext {
  logger: Logger;
  /** Limits how many events a key may publish in a second; undefined for no limit. */
  rateLimit: RateLimit | undefined;
  quota: PublisherQuota;
  countEvents: CountEvents;
}

/** What the routes share. */
interface RoutesContext extends PublisherContext {
  /** Writes the line of an event. */
  logIngested: (fields: Record<keyof typeof INGESTED_FIELDS, LineValue>) => void;
  /** Writes a line of an event in a batch that got 503. All do while Redis is away, and publishers repeat them. */
  logRefused: ReturnType<typeof boundedLog>;
  /** Writes a line of an event in a batch that got 500. */
  logFailed: ReturnType<typeof boundedLog>;
}

export function publisherRoutes(api: Api, publisherContext: PublisherContext): void {
  const { logger } = publisherContext;
  const context: RoutesContext = {
    ...publisherContext,
    logIngested: frequentLine(logger, 'event.ingested', INGESTED_FIELDS),
    logRefused: boundedLog((fields) => logger.warn(fields, 'event.ingest_failed')),
    logFailed: boundedLog((fields) => logger.error(fields, 'event.ingest_failed')),
  };
  const budget = createBudget(MAX_EVENTS_IN_FLIGHT);
  const turnFor = (publisher: string) => context.turns.turnFor(publisher);
  const events = api.tagged('Events');

  events.post('/v1/events', {
    summary: 'Publish an event',
    description:
      'The response comes when the event and all its deliveries are stored. After 429, 503 or no response, publish the event again under the same id, ' +
      'not before `Retry-After` has passed: it is delivered once. Posthorn knows an id for as long as the event is kept: `RETENTION_SUCCEEDED` (7 days by default) after it was accepted or its last ' +
      'delivery succeeded, at least `RETENTION` (30 days) if a delivery has not. After that, the same id is a new event. ' +
      `Objects and arrays in \`data\` may nest ${MAX_DATA_DEPTH} levels deep. ` +
      'Receivers get `data` as compact JSON, with each value as it was sent. In an object, keys that are whole numbers come first, in rising order; of a repeated key only the last value is kept.',
    body: publishedEventSchema,
    checksBody: true,
    maxBodyBytes: context.maxEventBytes,
    maxBodyBytesSetting: 'MAX_EVENT_BYTES',
    bodyBudget: { budget, weigh: () => 1 },
    turnFor,
    responses: {
      202: { description: 'Accepted', schema: acceptedSchema },
      200: { description: 'Accepted before; nothing new was created', schema: acceptedSchema },
    },
    problems: ['forbidden_environment', 'conflict', 'quota_exceeded'],
    async handle({ body, caller, request, response }) {
      try {
        if (context.rateLimit) await context.rateLimit.consume(caller);
        const { status, ...accepted } = await publish(context, callOf(request, response), body);
        context.countEvents(caller, status);
        response.status(status);
        return accepted;
      } catch (error) {
        context.countEvents(caller, toAppError(error).status);
        throw error;
      }
    },
  });

  events.post('/v1/events/batch', {
    summary: `Publish up to ${MAX_BATCH_EVENTS} events`,
    description: `Each event is accepted or refused on its own; the results are in the order of the events. A body may have at most ${MAX_JSON_VALUES} JSON values in all, and 8 MiB; with a larger \`MAX_EVENT_BYTES\`, ${BATCH_FACTOR} times that, at most 16 MiB.`,
    body: batchSchema,
    checksBody: true,
    maxBodyBytes: Math.max(BATCH_FACTOR * context.maxEventBytes, MIN_BATCH_LIMIT_BYTES),
    bodyBudget: { budget, weigh: (bytes) => Math.min(MAX_BATCH_EVENTS, Math.ceil(bytes / MIN_EVENT_BYTES) || 1) },
    turnFor,
    responses: { 200: { description: 'A result for each event', schema: batchResultsSchema } },
    async handle({ body: unchecked, caller, request, response }) {
      const body = parseFields(uncheckedBatchSchema, unchecked, 'The body');
      const { length } = body.events;
      await context.rateLimit?.consume(caller, length).catch((error: unknown) => {
        context.countEvents(caller, toAppError(error).status, length);
        throw error;
      });
      const call = callOf(request, response);
      const results = await inOrderById(body.events, (event, i) =>
        publishInBatch(context, { ...call, trace: parseTraceparent(body.traceparents?.[i]) ?? call.trace }, event),
      );
      for (const { status } of results) context.countEvents(caller, status);
      if (results.every(({ status }) => status === 503)) {
        // For the log: why, of one of them.
        const cause = results.find((result) => result instanceof AppError)?.cause;
        throw new AppError('unavailable', 'None of the events is known to be accepted; retry shortly.', {
          cause,
          retryAfterS: 5,
        });
      }
      const waitsS = results.map((result) => (result instanceof AppError && result.retryAfterS) || 0);
      const retryAfterS = Math.max(...waitsS);
      if (retryAfterS > 0) response.set('Retry-After', String(retryAfterS));
      return { results: serializeResults(results) };
    },
  });
}

type BatchResult = Awaited<ReturnType<typeof publish>> | AppError;

/** Who calls, and the span that the call belongs to, if the publisher sent one. */
interface Call {
  publisher: PublisherKey;
  trace: TraceContext | undefined;
}

function callOf({ headers }: Request, response: Response): Call {
  return { publisher: principalOf<PublisherKey>(response), trace: parseTraceparent(headers.traceparent) };
}

/** Ingests an event and returns the fields of the response. Throws `AppError` if the event is not accepted. */
async function publish(context: RoutesContext, call: Call, event: unknown) {
  const { publisher } = call;
  context.quota.check(publisher.name);
  const span = context.tracing?.startSpan(call.trace);
  const trace = span ?? call.trace;
  let result: IngestResult;
  try {
    const turn = context.turns.turnFor(publisher.name);
    if (turn) await turn;
    result = await ingestEvent(context, event, publisher, trace);
  } catch (error) {
    if (span) endWithError(span, publisher.name, error);
    throw error;
  }
  if (span) endWithResult(span, publisher.name, result);
  logResult(context, { publisher, trace }, result, span?.spanId);
  const { id } = result.event;
  if (result.kind === 'conflict') {
    throw new AppError('conflict', `An event with the id ${id} and other content was accepted before.`);
  }
  const { deliveries } = result;
  const duplicate = result.kind === 'duplicate';
  return { status: duplicate ? 200 : 202, id, duplicate, deliveries };
}

async function publishInBatch(context: RoutesContext, call: Call, event: unknown): Promise<BatchResult> {
  try {
    return await publish(context, call, event);
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.status >= 500) {
      const { publisher, trace } = call;
      const line = { err: error.cause, event_id: idOf(event), publisher: publisher.name, trace_id: trace?.traceId };
      if (error.status === 500) context.logFailed(line);
      else context.logRefused(line);
    }
    return error;
  }
}

/** The id in what a publisher sent as an event: both may be anything. */
function idOf(event: unknown): unknown {
  return (event as { id?: unknown } | null)?.id;
}

/** Ingests the events of a batch, several at once, those with the same id in turn. Returns the results in order. */
async function inOrderById(
  events: readonly unknown[],
  ingest: (event: unknown, i: number) => Promise<BatchResult>,
): Promise<BatchResult[]> {
  const results: BatchResult[] = [];
  const groups = Map.groupBy(events.keys(), (i) => idOf(events[i]) ?? Symbol('no id'));
  // All workers share this iterator: each group is taken once, in the order of the events.
  const queue = groups.values();
  // After a 503 the rest is not tried: each could wait for Redis, and the publisher has to repeat the batch.
  let unavailable: BatchResult | undefined;
  const work = async () => {
    for (const group of queue) {
      for (const i of group) {
        const result = unavailable ?? (await ingest(events[i], i));
        results[i] = result;
        if (result.status === 503) unavailable = result;
      }
    }
  };
  await Promise.all(Array.from({ length: BATCH_CONCURRENCY }, work));
  return results;
}

/** The results as the response has them, with at most `MAX_BATCH_FIELD_ERRORS` invalid fields in all. */
function serializeResults(results: readonly BatchResult[]) {
  let fieldsLeft = MAX_BATCH_FIELD_ERRORS;
  return results.map((result) => {
    if (!(result instanceof AppError)) return result;
    const error = problemDocument(result, fieldsLeft);
    fieldsLeft = Math.max(0, fieldsLeft - (result.fields?.listed.length ?? 0));
    return { status: result.status, error };
  });
}

/** Logs an event in one wide line. */
function logResult(
  { logIngested }: RoutesContext,
  { publisher, trace }: Call,
  result: IngestResult,
  spanId: string | undefined,
): void {
  const { id, type, environment } = result.event;
  logIngested({
    event_id: id,
    event_type: type,
    environment,
    publisher: publisher.name,
    outcome: result.kind,
    deliveries: result.kind === 'conflict' ? undefined : result.deliveries,
    trace_id: trace?.traceId,
    span_id: spanId,
  });
}
