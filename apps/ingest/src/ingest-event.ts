/** Ingests an event: parse → match → store → make the deliveries and their jobs. routes.ts does the HTTP part. */
import { isDeepStrictEqual } from 'node:util';
import {
  AppError,
  type Environment,
  type Event,
  eventBody,
  eventIdIn,
  eventRef,
  type FieldError,
  type FieldErrors,
  isoInstant,
  nestsDeeper,
  newEventId,
  parseJson,
  partitionOf,
  publishedEventSchema,
  type SubscriptionEnvironment,
  searchTermsOf,
  sessionSnapshotSchema,
  type TraceContext,
  utcInstant,
} from '@posthorn/core';
import { fieldErrors } from '@posthorn/http';
import type { Clock, Tracing } from '@posthorn/runtime';
import {
  type CreatedDelivery,
  type FanOutContext,
  findMatches,
  MAX_DELIVERIES,
  type Match,
  type Matcher,
  makeDeliveries,
  type ReplicaWait,
  type StoredEvent,
  storeEvent,
  TooFewReplicas,
} from '@posthorn/store';
import { z } from 'zod';
import type { EventTurns } from './event-turns.ts';
import type { InFlight } from './in-flight.ts';
import type { PublisherQuota } from './publisher-quota.ts';
import type { SandboxFeed } from './sandbox-feed.ts';

export interface IngestContext extends FanOutContext {
  matcher: Matcher;
  clock: Clock;
  maxEventBytes: number;
  /** Whether new events are added to the search index (`EVENT_SEARCH`). */
  isSearchOn: boolean;
  /** See `createReplicaWait`; undefined if `ACK_REPLICAS` is 0. */
  replicaWait: ReplicaWait | undefined;
  sandboxFeed: Pick<SandboxFeed, 'published'>;
  quota: Pick<PublisherQuota, 'count'>;
  /** Spreads the work that blocks the event loop. */
  turns: EventTurns;
  /** What publishers have in flight to Redis. */
  inFlight: InFlight;
  /** Undefined if tracing is off. */
  tracing?: Tracing | undefined;
}

/** Without the unknown fields of `data`: copying very many of them would take longer than to parse them. */
const eventSchema = publishedEventSchema.extend({ data: z.object(sessionSnapshotSchema.shape) });

const MAX_ENVELOPE_BYTES = 512;
/** Deepest nesting of `data`, itself included. */
export const MAX_DATA_DEPTH = 64;
/** Comparing the content of smaller events takes less than a millisecond. */
const LARGE_CHARACTERS = 16 * 1024;
/** Redis takes about as long to store this many bytes as to make a delivery. */
const BYTES_OF_A_DELIVERY = 2_048;
/**
 * Share of `RETENTION_SUCCEEDED` for which a repeated event makes deliveries that are missing. Later, a delivery
 * without a record may be one that succeeded and expired.
 */
const FILLED_SHARE = 0.5;
/** After this many outdated matches, an event is matched once more and stored without the check for changes. */
const MAX_CHECKED_MATCHES = 2;

/**
 * `deliveries`: how many the event has. `conflict`: the id belongs to an event with other content in the same
 * environment.
 */
export type IngestResult =
  | { kind: 'accepted' | 'duplicate'; event: Event; deliveries: number }
  | { kind: 'conflict'; event: Event };

/** Who publishes: the name, and the environment that the key is for. */
interface Publisher {
  name: string;
  environment: SubscriptionEnvironment;
}

/**
 * Ingests one event from a publisher (interface 3). When it resolves, the event, its deliveries and their jobs are
 * stored, and the trace that it belongs to. Repeatable: with the same id and content it only adds what the first call
 * left out. Throws `AppError` for invalid fields, an environment that the key is not for, an event that is too large,
 * or too few replicas; rethrows Redis errors (`StorageUnavailable`).
 */
export async function ingestEvent(
  context: IngestContext,
  input: unknown,
  publisher: Publisher,
  trace?: TraceContext,
): Promise<IngestResult> {
  const nowMs = context.clock.now();
  const parsed = parseEvent(input, nowMs, context.maxEventBytes);
  const { event } = parsed;
  checkEnvironment(event.environment, publisher.environment);
  const matched = context.matcher.match(event);
  const match = matched instanceof Promise ? await matched : matched;
  const deliveries = Math.min(match.subscriptionIds.length, MAX_DELIVERIES);
  const weight = 1 + deliveries + Math.floor(event.dataJson.length / BYTES_OF_A_DELIVERY);
  const { store } = context;
  if (!parsed.hadId) event.id = besideItsDelivery(event.id, match, store.partitions);
  // One node of a Cluster that does not reply delays only its own partitions.
  const partition = store.spansPartitions ? 0 : partitionOf(event.id, store.partitions);
  const line = context.inFlight.lineOf(publisher.name, partition);
  const turn = line.begin(weight);
  if (turn) await turn;
  const untilReplicated = context.replicaWait?.begin();
  let outcome: IngestResult;
  let written: StoredEvent;
  try {
    const { stored, result } = await matchAndStore(context, parsed, match, nowMs, trace);
    written = 'created' in result ? stored : result.kept;
    // Before anything else can fail: the event takes memory whatever the publisher is told, and its repeats are not
    // new.
    if ('created' in result) context.quota.count(publisher.name, event, stored.subscriptionIds.length);
    const completing =
      'created' in result
        ? completeNew(context, stored, result.created)
        : completeRepeated(context, parsed, publisher.name, result.kept, nowMs);
    outcome = completing instanceof Promise ? await completing : completing;
  } catch (error) {
    line.fail(error);
    throw error;
  } finally {
    line.end(weight);
  }
  if (untilReplicated && outcome.kind !== 'conflict') await untilReplicated(written).catch(refuseUnreplicated);
  return outcome;
}

/**
 * Returns an id in the partition of the event's only delivery, so that both become one record (docs/architecture.md,
 * Joint records). With no delivery, or with several, returns the new id unchanged.
 */
function besideItsDelivery(newId: string, { subscriptionIds: [only, another] }: Match, partitions: number): string {
  const isOne = only !== undefined && another === undefined;
  return isOne && partitions > 1 ? eventIdIn(partitionOf(only, partitions), partitions, newId) : newId;
}

/** Makes the deliveries of a new event that were not made in the step that stored it. */
function completeNew(
  context: IngestContext,
  stored: StoredEvent,
  created: readonly CreatedDelivery[],
): IngestResult | Promise<IngestResult> {
  const { event } = stored;
  context.sandboxFeed.published(event);
  const made = makeDeliveries(context, stored, created);
  if (typeof made === 'number') return { kind: 'accepted', event, deliveries: made };
  return made.then((deliveries) => ({ kind: 'accepted', event, deliveries }));
}

/** Compares an event with the one that has its id, and makes what an interrupted call left out. */
async function completeRepeated(
  context: IngestContext,
  { event, hadCreatedAt }: ReturnType<typeof parseEvent>,
  publisher: string,
  kept: StoredEvent,
  nowMs: number,
): Promise<IngestResult> {
  // Comparing the content of large events blocks the event loop for many milliseconds.
  if (kept.event.dataJson.length > LARGE_CHARACTERS) await context.turns.turnFor(publisher);
  if (!isSameEvent(kept, event, hadCreatedAt)) return { kind: 'conflict', event };
  // It was accepted in this millisecond: the reply to the first try of this call was lost.
  if (kept.acceptedAtMs === nowMs) {
    context.quota.count(publisher, event, kept.subscriptionIds.length);
    context.sandboxFeed.published(event);
  }
  // Deliveries of an erased event could not be sent any more.
  const areMade =
    kept.erasedAtMs !== undefined || nowMs - kept.acceptedAtMs > FILLED_SHARE * context.store.succeededRetentionMs;
  const deliveries = areMade ? kept.subscriptionIds.length : await makeDeliveries(context, kept);
  return { kind: 'duplicate', event, deliveries };
}

/** Stores an event with what it matched. Where subscriptions have changed since, matches it again. */
async function matchAndStore(
  { store, matcher, isSearchOn }: IngestContext,
  { event, hadId, searchTerms }: ReturnType<typeof parseEvent>,
  firstMatch: Match,
  acceptedAtMs: number,
  trace: TraceContext | undefined,
) {
  const ref = eventRef(event);
  const options = { withDeliveries: true, searchTerms: isSearchOn ? searchTerms : [] };
  let match = firstMatch;
  for (let tries = 0; tries < MAX_CHECKED_MATCHES; tries++) {
    if (tries > 0) match = await matcher.match(event, match);
    const stored = { ref, event, acceptedAtMs, trace, subscriptionIds: match.subscriptionIds };
    // The id counts as new only in the first try: a script that was sent twice may have stored the event the first time
    // and returned `outdated` the second time.
    const result = await storeEvent(store, stored, { ...options, isNewId: !hadId && tries === 0, match });
    if (result !== 'outdated') return { stored, result };
  }
  const stored = { ref, event, acceptedAtMs, trace, subscriptionIds: await findMatches(store, event) };
  return { stored, result: await storeEvent(store, stored, options) };
}

function refuseUnreplicated(cause: Error): never {
  if (!(cause instanceof TooFewReplicas)) throw cause;
  const detail =
    'Too few replicas of Redis acknowledged the event, so it may still be lost. Publish it again with the same id.';
  throw new AppError('unavailable', detail, { cause, retryAfterS: 5 });
}

function parseEvent(input: unknown, nowMs: number, maxBytes: number) {
  const parsed = eventSchema.safeParse(input);
  if (!parsed.success) {
    throw invalidEvent(fieldErrors(parsed.error));
  }
  const { id, type, created_at, environment } = parsed.data;
  const event: Event = {
    id: id ?? newEventId(nowMs),
    type,
    createdAt: (created_at === undefined ? undefined : utcInstant(created_at)) ?? isoInstant(nowMs),
    environment,
    // From the input, not from the parsed result: unknown fields stay as the publisher sent them.
    dataJson: JSON.stringify((input as { data: unknown }).data),
  };
  // UTF-8 takes at most three bytes for a unit of UTF-16; what is around the data has less than `MAX_ENVELOPE_BYTES`.
  const isPerhapsTooLarge = 3 * event.dataJson.length + MAX_ENVELOPE_BYTES > maxBytes;
  if (isPerhapsTooLarge && Buffer.byteLength(eventBody(event)) > maxBytes) {
    throw new AppError('body_too_large', `The event is larger than ${maxBytes} bytes (MAX_EVENT_BYTES).`);
  }
  if (nestsDeeper(event.dataJson, MAX_DATA_DEPTH)) {
    throw invalidEvent([{ path: 'data', message: `Must not nest deeper than ${MAX_DATA_DEPTH} levels` }]);
  }
  return {
    event,
    searchTerms: searchTermsOf(parsed.data.data),
    hadId: id !== undefined,
    hadCreatedAt: created_at !== undefined,
  };
}

function invalidEvent(fields: FieldError[] | FieldErrors): AppError {
  return new AppError('invalid_fields', 'The event is not valid.', { fields });
}

function checkEnvironment(environment: Environment, keyEnvironment: SubscriptionEnvironment): void {
  if (keyEnvironment !== 'both' && keyEnvironment !== environment) {
    throw new AppError('forbidden_environment', `This key publishes to ${keyEnvironment}, not to ${environment}.`);
  }
}

/**
 * Compares the content, whatever the order of keys: data of another length as JSON are others. (Of a large kept event
 * whose data differ like that, Redis returns none, so that small repeats of large events cost little.) A repeat without
 * `created_at` matches any time of the stored event. The payload of an erased event is gone, so any payload matches it.
 */
function isSameEvent({ event: kept, erasedAtMs }: StoredEvent, event: Event, hadCreatedAt: boolean): boolean {
  return (
    kept.type === event.type &&
    (!hadCreatedAt || kept.createdAt === event.createdAt) &&
    (erasedAtMs !== undefined ||
      kept.dataJson === event.dataJson ||
      (kept.dataJson.length === event.dataJson.length &&
        isDeepStrictEqual(parseJson(kept.dataJson), parseJson(event.dataJson))))
  );
}
