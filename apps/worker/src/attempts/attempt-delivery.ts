/**
 * Makes one attempt of a delivery: load → sign → send → decide → record. packages/queue translates the outcome for
 * BullMQ.
 */
import {
  type Attempt,
  type DeliveryJob,
  decide,
  eventIdOf,
  formatTraceparent,
  MINUTE_MS,
  partitionOfId,
  type Verdict,
} from '@posthorn/core';
import type { JobOutcome } from '@posthorn/queue';
import type { Clock, Logger, Tracing } from '@posthorn/runtime';
import { errorOfOutcome, type Sender, type SendRequest, type SendResult } from '@posthorn/sender';
import { SealBroken } from '@posthorn/signing';
import {
  beginAttempt,
  endDeliveries,
  type JobToEnd,
  type Recorded,
  recordFailure,
  recordSuccess,
  type Store,
} from '@posthorn/store';
import type { AttemptCounts } from '../counts.ts';
import type { WorkerMetrics } from '../metrics.ts';
import type { Outages } from '../outage/network-outage.ts';
import { hostOf, ipOf } from '../slots/slot-keys.ts';
import type { FollowedBy, Slot, Slots } from '../slots/slots.ts';
import type { Tail } from '../tail.ts';
import { type AttemptInFlight, type TakenJob, traceOf } from './attempt-in-flight.ts';
import { endAttemptSpan, startAttemptSpan } from './attempt-span.ts';
import type { EventBodies, EventToSend, NothingToSend } from './event-bodies.ts';
import { type AttemptedLine, reportAttempt } from './report-attempt.ts';
import type { RequestSigner } from './sign-request.ts';
import type { SucceededEvents } from './succeeded-events.ts';
import type { UnreadableSecrets } from './unreadable-secrets.ts';
import { untilStored } from './until-stored.ts';

export interface AttemptContext {
  store: Store;
  sender: Sender;
  signRequest: RequestSigner;
  unreadableSecrets: UnreadableSecrets;
  eventBodies: EventBodies;
  slots: Slots;
  outages: Pick<Outages, 'current' | 'endedAtMs' | 'isOurs'>;
  metrics: WorkerMetrics;
  counts: AttemptCounts;
  succeededEvents: SucceededEvents;
  tail: Pick<Tail, 'attempted'>;
  clock: Clock;
  logger: Logger;
  /** Writes the line of an attempt. */
  logAttempted: AttemptedLine;
  retryDelaysMs: readonly number[];
  limits: { pauseAfter: number; maxAttempts: number };
  /** Bytes of a failed response's body that are kept; 0: nothing of the response is kept. */
  excerptBytes: number;
  /** Whether receivers get the header `traceparent`. */
  sendsTraceparent: boolean;
  /** Undefined if tracing is off. */
  tracing?: Tracing | undefined;
  /** Fires when the process stops and its attempts must give up. */
  giveUp: AbortSignal;
  /** Reports errors of background work that no attempt waits for. */
  onError: (error: Error) => void;
}

/** The outcome of a job (`no_slot`: its host or IP has no free slot) and of its attempt. */
export interface Attempted {
  outcome: JobOutcome | 'no_slot';
  /** Undefined: no attempt was made, or it is not counted. */
  counted?: {
    failed: boolean;
    /** How many deliveries of its address are parked. */
    parked: number;
    followedBy: FollowedBy | undefined;
  };
}

/** Delay after which the job of an uncounted attempt comes back, perhaps to a worker without an outage. */
const AFTER_OUTAGE_MS = 1_000;

/** A delivery as young as this waits for an event that is gone. The client of publishers repeats for ten minutes. */
const AWAIT_EVENT_MS = 15 * MINUTE_MS;
/** The first pause before such an event is looked for again; later ones are as long as the delivery is old. */
const LOOK_AGAIN_MS = 1_000;

export function afterOutage({ clock }: Pick<AttemptContext, 'clock'>): JobOutcome {
  return { kind: 'snoozed', untilMs: clock.now() + AFTER_OUTAGE_MS };
}

/**
 * Makes and records one attempt for the delivery of a job, if one is due (specification 3.1). A failed attempt is an
 * outcome, not an error. An attempt that is aborted because the process stops, or that failed because of an outage of
 * this process, is not counted.
 */
export async function attemptDelivery(
  context: AttemptContext,
  job: DeliveryJob,
  slot: Slot,
  taken: TakenJob,
): Promise<Attempted> {
  const { store, clock } = context;
  const { found } = taken;
  // The queue is paused; this job was fetched before.
  if (context.outages.current()) return { outcome: afterOutage(context) };
  const beginning = beginAttempt(store, job, clock.now(), context.outages.endedAtMs(), found);
  const loading = context.eventBodies.load(job.event, found?.event);
  // Usually neither is a promise, and `await` would waste a turn of the microtask queue.
  const needsRedis = beginning instanceof Promise || loading instanceof Promise;
  const [begun, event] = needsRedis ? await Promise.all([beginning, loading]) : ([beginning, loading] as const);
  switch (begun.kind) {
    case 'over':
    case 'superseded':
    case 'held':
    case 'overdue':
      return { outcome: { kind: 'done' } };
    case 'snoozed':
      return { outcome: { kind: 'snoozed', untilMs: begun.dueAtMs } };
    case 'subscription_deleted':
      return await endWithoutAttempt(
        context,
        job,
        'subscription_deleted',
        typeof event === 'string' ? undefined : event,
      );
    case 'attempt':
      if (event === 'expired' && mayComeBack(context, begun)) return { outcome: untilEventIsBack(context, begun) };
      if (typeof event === 'string') return await endWithoutAttempt(context, job, event);
      if (!context.slots.enterHost(slot, hostOf(begun.url))) return { outcome: 'no_slot' };
      return await sendAndRecord(context, {
        job,
        taken,
        slot,
        begun,
        event,
        startedAtMs: clock.now(),
        span: startAttemptSpan(context.tracing, event.trace),
      });
    default:
      return begun satisfies never;
  }
}

/**
 * Whether the event of a delivery may be stored again: a failover of one master of a Cluster has lost it, but not the
 * deliveries that others have. Its publisher got 503 and repeats it. If clocks differ, this delivery then counts as one
 * of the repeated event, so it must not have ended.
 */
function mayComeBack({ store, clock }: AttemptContext, { isReplay, createdAtMs }: AttemptInFlight['begun']): boolean {
  const isElsewhere = store.partitions > 1 && !store.spansPartitions;
  return isElsewhere && !isReplay && clock.now() - createdAtMs < AWAIT_EVENT_MS;
}

function untilEventIsBack({ clock }: AttemptContext, { createdAtMs }: AttemptInFlight['begun']): JobOutcome {
  const nowMs = clock.now();
  return { kind: 'snoozed', untilMs: nowMs + Math.max(LOOK_AGAIN_MS, nowMs - createdAtMs) };
}

async function sendAndRecord(context: AttemptContext, inFlight: AttemptInFlight): Promise<Attempted> {
  const { slots, outages, metrics, clock } = context;
  const { begun, taken, startedAtMs, event } = inFlight;
  const request = sign(context, inFlight);
  if (typeof request === 'number') return { outcome: { kind: 'snoozed', untilMs: request } };
  const sending = send(context, inFlight, request);
  context.counts.inFlight += 1;
  let result: SendResult;
  try {
    result = await sending;
  } finally {
    context.counts.inFlight -= 1;
  }
  slots.answered(inFlight.slot);
  if (result.kind === 'not_admitted') return { outcome: 'no_slot' };
  if (result.kind === 'aborted') {
    endAttemptSpan(inFlight, result, 'aborted');
    return { outcome: { kind: 'snoozed', untilMs: clock.now() } };
  }
  const endedAt = inFlight.span && performance.now();
  const endedAtMs = clock.now();
  const isOurs = outages.isOurs(result, begun.url, startedAtMs);
  if (typeof isOurs === 'boolean' ? isOurs : await isOursOrStopped(isOurs, context.giveUp)) {
    metrics.notCounted();
    endAttemptSpan(inFlight, result, 'outage', endedAt);
    return { outcome: afterOutage(context) };
  }
  const error = errorOfOutcome(result);
  endAttemptSpan(inFlight, result, error, endedAt);
  const attempt = attemptOf(inFlight, result, error, endedAtMs);
  const verdict = decide(attempt.number, error, context.retryDelaysMs, endedAtMs);
  // A failure must not be recorded while another worker makes the same attempt: that worker's success would not count.
  if (verdict.kind !== 'succeeded' && !(await stillHasJob(context, taken)))
    return { outcome: { kind: 'snoozed', untilMs: clock.now() } };
  const recorded = await record(context, inFlight, attempt, verdict, result.cameBack);
  if (recorded.kind === 'recorded') {
    reportAttempt(context, inFlight, attempt, verdict, result);
    if (recorded.paused) metrics.paused();
    if (verdict.kind === 'succeeded' && !begun.isReplay)
      context.succeededEvents.add(begun.event, begun.subscriptionId, event.positions);
  }
  // `repeated`: another worker got the job meanwhile and has recorded its attempt. This worker has lost the job's lock,
  // so BullMQ rejects the outcome.
  return {
    outcome: recorded.kind === 'over' ? { kind: 'done' } : outcomeOf(verdict, endedAtMs),
    counted: { failed: error !== null, parked: recorded.parked, followedBy: recorded.followedBy },
  };
}

/**
 * A probe of the network may take seconds. Once the process must stop, the attempt is not counted: it is made again.
 */
function isOursOrStopped(isOurs: Promise<boolean>, giveUp: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(true);
    if (giveUp.aborted) stop();
    giveUp.addEventListener('abort', stop, { once: true });
    isOurs.then(resolve, reject).finally(() => giveUp.removeEventListener('abort', stop));
  });
}

/** The attempt as it is recorded. */
function attemptOf(
  { begun, startedAtMs }: AttemptInFlight,
  result: SendResult,
  error: Attempt['error'],
  endedAtMs: number,
): Attempt {
  return {
    number: begun.attemptNumber,
    startedAtMs,
    // The clock may have stepped back.
    durationMs: Math.max(0, endedAtMs - startedAtMs),
    statusCode: result.kind === 'responded' ? result.statusCode : null,
    error,
  };
}

/** Returns the signed request of an attempt or, if no key opens the secret, the time to try again. */
function sign(context: AttemptContext, { job, begun, event, startedAtMs }: AttemptInFlight): SendRequest | number {
  try {
    return context.signRequest(job.deliveryId, begun, event, startedAtMs);
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    return context.unreadableSecrets.retryAtMs(begun.subscriptionId, error);
  }
}

function send(context: AttemptContext, inFlight: AttemptInFlight, request: SendRequest): Promise<SendResult> {
  const { claim } = inFlight.taken;
  const trace = context.sendsTraceparent ? traceOf(inFlight) : undefined;
  if (trace) request.headers.traceparent = formatTraceparent(trace);
  const admit = (ip: string) => context.slots.enterIp(inFlight.slot, ipOf(ip, inFlight.begun.url));
  const mayStart = () => claim.isSure();
  return context.sender.send({ ...request, admit, mayStart, excerptBytes: context.excerptBytes });
}

/** Asks Redis whether the job is still this worker's. */
function stillHasJob({ giveUp }: AttemptContext, { claim }: TakenJob): Promise<boolean> {
  return untilStored(() => claim.confirm(), giveUp);
}

/** Records an attempt. A success ends its job in the same step, and parked deliveries of its address may follow. */
function record(
  context: AttemptContext,
  inFlight: AttemptInFlight,
  attempt: Attempt,
  verdict: Verdict,
  cameBack: SendResult['cameBack'],
): Promise<Recorded & { followedBy?: FollowedBy }> {
  const { store, limits } = context;
  const { job, begun, taken } = inFlight;
  const delivery = { id: job.deliveryId, event: begun.event, createdAtMs: begun.createdAtMs };
  const recordAndEnd = async (lock: JobToEnd, room: number) => {
    const followUp = context.slots.followUpFor(inFlight.slot, room);
    const laneToken = followUp.kind === 'first' || followUp.kind === 'last' ? lock.laneToken : undefined;
    const howToEnd = { ...lock, laneToken, parkedFirst: followUp.kind === 'first' ? followUp.deliveries : undefined };
    const ended = await recordSuccess(store, { delivery, attempt, limits, cameBack, lock: howToEnd });
    // The consumer hands over no job that could not be read: a slot that is kept for one would stay in use for ever.
    return { ...ended, followedBy: { followUp, jobs: ended.parkedJobs.filter(({ error }) => !error) } };
  };
  const recordOnce = (): Promise<Recorded & { followedBy?: FollowedBy }> =>
    verdict.kind === 'succeeded'
      ? taken.end(recordAndEnd)
      : recordFailure(store, { delivery, attempt, verdict, limits, cameBack });
  return untilStored(recordOnce, context.giveUp);
}

function outcomeOf(verdict: Verdict, endedAtMs: number): JobOutcome {
  switch (verdict.kind) {
    case 'succeeded':
      return { kind: 'done' };
    case 'retry':
      return { kind: 'retry', endedAtMs, delayMs: verdict.nextAttemptAtMs - endedAtMs, reason: 'attempt failed' };
    case 'failed':
      return { kind: 'failed', reason: verdict.reason };
    default:
      return verdict satisfies never;
  }
}

async function endWithoutAttempt(
  context: AttemptContext,
  job: DeliveryJob,
  reason: NothingToSend | 'subscription_deleted',
  event?: EventToSend,
): Promise<Attempted> {
  const { store, clock, logger } = context;
  const partition = partitionOfId(job.deliveryId, store.partitions);
  const deliveries = [{ id: job.deliveryId, event: job.event }];
  // Not one that has replaced it since.
  const { generation } = job;
  await endDeliveries(store, { partition, deliveries, reason, nowMs: clock.now(), generation });
  logger.warn(
    { delivery_id: job.deliveryId, event_id: eventIdOf(job.event), reason, trace_id: event?.trace?.traceId },
    'delivery.ended_without_attempt',
  );
  return { outcome: { kind: 'done' } };
}
