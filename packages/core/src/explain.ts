/** Explains in a sentence what became of one event at one address, and what to do about it. */
import { DAY_MS, utcText } from './basics/time.ts';
import { type AttemptError, type Delivery, isFinished } from './delivery.ts';
import type { Environment, EventType } from './event.ts';
import { topicsOfEvent, topicsOfSubscription } from './match.ts';
import type { StatusReason, Subscription } from './subscription.ts';

/** What can have become of an event at an address. The first five have a delivery, the others have none. */
export const EXPLANATIONS = [
  'delivered',
  'failed',
  'waiting_for_retry',
  'pending',
  'held',
  'no_event',
  'no_subscription',
  'test_of_another',
  'other_environment',
  'other_type',
  'created_later',
  'not_validated',
  'changed_later',
  'being_made',
  'no_longer_kept',
] as const;
type ExplanationReason = (typeof EXPLANATIONS)[number];

/** What is known of an event and an address. Times are in milliseconds since 1970. */
export interface Case {
  event: CaseEvent | undefined;
  subscription: CaseSubscription | undefined;
  /** The newest delivery of the event to the address, replays included. */
  delivery: Delivery | undefined;
  /** The lane in which the delivery waits without a job. */
  lane: 'parked' | 'overdue' | undefined;
  /** When the address was paused; when the subscription was deleted; its first change after the event was accepted. */
  pausedAtMs: number | undefined;
  deletedAtMs: number | undefined;
  changed: { atMs: number; operator: string | null } | undefined;
  /** How long events are kept, and how long those whose deliveries have all succeeded. */
  retentionMs: number;
  succeededRetentionMs: number;
  nowMs: number;
}
interface CaseEvent {
  type: EventType;
  environment: Environment;
  acceptedAtMs: number;
  /** Whether the subscription matched the event when that was accepted. */
  isMatched: boolean;
}
type CaseSubscription = Pick<
  Subscription,
  'status' | 'resuming' | 'statusReason' | 'takesEvents' | 'eventTypes' | 'environment' | 'createdAtMs'
>;

export interface Explanation {
  reason: ExplanationReason;
  answer: string;
  /** What an operator can do; null where there is nothing to do. */
  nextStep: string | null;
  /** Since when it is so; null where that is not known. */
  sinceMs: number | null;
  /** When the next attempt is due; null where none is planned. */
  dueAtMs: number | null;
}

/** A fan-out that takes longer was interrupted; ingest repeats it within 20 s. */
const FAN_OUT_MS = 60_000;

/** Explains a case. The first thing that is true decides, in the order in which Posthorn itself decides. */
export function explain(facts: Case): Explanation {
  const { delivery } = facts;
  if (delivery === undefined) return explainAbsence(facts);
  if (delivery.status === 'held') return explainHeld(facts, delivery);
  return isFinished(delivery.status) ? explainEnd(facts, delivery) : explainWaiting(facts, delivery);
}

function explainAbsence(facts: Case): Explanation {
  const { event, subscription, deletedAtMs, nowMs } = facts;
  if (!event) {
    const kept = keptFor(facts);
    return because('no_event', `No event with this id is stored: it was never accepted, or it has expired. ${kept}`, {
      nextStep: 'Compare the id with the one that the publisher sent, and the environment of its key.',
    });
  }
  if (!subscription) {
    const gone = deletedAtMs === undefined ? 'There is no such subscription (any more).' : undefined;
    return because('no_subscription', gone ?? `The subscription was deleted at ${at(deletedAtMs)}.`, {
      sinceMs: deletedAtMs,
    });
  }
  if (!event.isMatched) return explainMismatch(facts, event, subscription);
  if (nowMs - event.acceptedAtMs < FAN_OUT_MS)
    return because('being_made', 'The event was accepted just now; its delivery is being made.', {
      sinceMs: event.acceptedAtMs,
    });
  return because('no_longer_kept', 'The event was sent to this address, but its delivery is no longer kept.', {
    sinceMs: event.acceptedAtMs,
  });
}

function explainMismatch(facts: Case, event: CaseEvent, subscription: CaseSubscription): Explanation {
  const { createdAtMs, environment, eventTypes, takesEvents } = subscription;
  const [ofAllTypes, ofItsType] = topicsOfEvent(event);
  const topics = topicsOfSubscription(subscription);
  if (event.type === 'webhook.test')
    return because('test_of_another', 'This is a test event. It went to one other address only.', {
      nextStep: 'Send this address a test delivery of its own.',
    });
  if (createdAtMs > event.acceptedAtMs) {
    const times = `The event was accepted at ${at(event.acceptedAtMs)}, the subscription was created at ${at(createdAtMs)}.`;
    return because('created_later', `The subscription did not exist yet. ${times}`, { sinceMs: createdAtMs });
  }
  if (environment !== 'both' && environment !== event.environment)
    return because('other_environment', `It receives ${environment} events; this is a ${event.environment} event.`, {
      nextStep: 'Change its environment to receive such events from now on.',
    });
  if (!topics.includes(ofAllTypes) && !topics.includes(ofItsType))
    return because('other_type', `It did not select ${event.type}. It receives ${[eventTypes].flat().join(', ')}.`, {
      nextStep: `Add ${event.type} to its event types to receive such events from now on.`,
    });
  if (!takesEvents)
    return because('not_validated', `Its address has never been validated, so it receives no events.${why(facts)}`, {
      nextStep: 'Validate the address. It receives the events that are accepted after that.',
    });
  const { changed } = facts;
  const by = changed && `, by ${changed.operator ?? 'Posthorn'}`;
  const when = changed ? ` It was validated or changed later: at ${at(changed.atMs)}${by}.` : '';
  return because('changed_later', `It matches such events now, but did not when the event was accepted.${when}`, {
    sinceMs: changed?.atMs,
  });
}

function explainHeld(facts: Case, delivery: Delivery): Explanation {
  const { subscription, pausedAtMs } = facts;
  const stop = inactivity(facts);
  const sinceMs = heldSinceMs(delivery, subscription?.status === 'paused' ? pausedAtMs : undefined);
  if (stop)
    return because('held', `Held since ${at(sinceMs)}, because its address ${stop.what}.${why(facts)}`, {
      nextStep: stop.nextStep,
      sinceMs,
    });
  const answer = subscription?.resuming
    ? 'Its address was resumed. One held delivery is sent first; the others follow if it succeeds.'
    : 'Its address was resumed. Held deliveries are being released, oldest first.';
  return because('held', answer, { sinceMs });
}

/** Why nothing is sent to the address, and what to do about it; undefined for an active one. */
function inactivity({ subscription, pausedAtMs }: Case): { what: string; nextStep: string } | undefined {
  switch (subscription?.status) {
    case 'paused':
      return {
        what: `is paused${pausedAtMs === undefined ? '' : ` since ${at(pausedAtMs)}`}`,
        nextStep: 'Resume the address when its receiver works: held deliveries are sent then.',
      };
    case 'awaiting_validation':
    case 'refused':
      return {
        what: subscription.status === 'refused' ? 'was refused' : 'is not validated',
        nextStep: 'Correct the url if it is wrong, then validate the address: held deliveries are sent then.',
      };
    default:
      return undefined;
  }
}

/** A delivery is held from its creation, from its last attempt, or from the pause of its address on. */
function heldSinceMs({ createdAtMs, attempts }: Delivery, pausedAtMs = 0): number {
  const last = attempts.at(-1);
  const own = last === undefined ? createdAtMs : last.startedAtMs + last.durationMs;
  return Math.max(own, pausedAtMs);
}

function explainEnd({ event }: Pick<Case, 'event'>, delivery: Delivery): Explanation {
  const explanation = explainOutcome(delivery, event !== undefined);
  if (!delivery.erased || delivery.failureReason === 'erased') return explanation;
  const answer = `${explanation.answer} Its payload has been erased since.`;
  return { ...explanation, answer, nextStep: null };
}

function explainOutcome(delivery: Delivery, hasEvent: boolean): Explanation {
  const { status, attemptCount, failureReason, finishedAtMs: sinceMs } = delivery;
  const time = sinceMs === null ? '' : ` at ${at(sinceMs)}`;
  if (status === 'succeeded') {
    const code = delivery.attempts.at(-1)?.statusCode;
    return because('delivered', `Delivered${time}: attempt ${attemptCount}, response status ${code ?? 'unknown'}.`, {
      sinceMs,
    });
  }
  const ended = (answer: string, nextStep?: string) => because('failed', answer, { nextStep, sinceMs });
  switch (failureReason) {
    case null:
      return ended(`Ended${time}, without a success: unknown.`);
    case 'subscription_deleted':
      return ended(`Failed${time}, because its subscription was deleted.`);
    case 'erased':
      return ended(`Ended${time} without a success, because its payload was erased.`);
    case 'cancelled':
      return ended(`Ended${time} without a success, because its bulk replay was cancelled.`);
    case 'expired':
      if (hasEvent)
        return ended(
          `Failed${time}, because its address was not active for the whole retention.`,
          'Replay it once the address is active.',
        );
      return ended(
        `Failed${time}, because its event is not stored any more: a failover may have lost it.`,
        'Publish the event again.',
      );
    default: {
      failureReason satisfies AttemptError;
      const attempts = `${attemptCount} ${attemptCount === 1 ? 'attempt' : 'attempts'}`;
      return ended(`Failed${time}, after ${attempts}. ${lastFailure(delivery)}`, 'Replay it when the receiver works.');
    }
  }
}

/** With a free worker, a first attempt starts far sooner. */
const LATE_MS = 10_000;

function explainWaiting(facts: Case, delivery: Delivery): Explanation {
  const { lane, nowMs } = facts;
  const { attemptCount, maxAttempts, nextAttemptAtMs: dueAtMs, createdAtMs } = delivery;
  const waits =
    lane === 'parked'
      ? 'It waits behind other deliveries to this address, because all slots of the address are taken.'
      : lane === 'overdue'
        ? 'It is overdue, and waits in the lane of overdue deliveries to this address.'
        : 'It waits for a worker, or is being sent.';
  if (attemptCount === 0) {
    const isLate = lane === undefined && nowMs - createdAtMs > LATE_MS;
    return because('pending', `Not attempted yet. ${waits}`, {
      ...(isLate && {
        nextStep:
          'See on the overview whether workers are running and keep up. If so, look for secret.unreadable in their logs.',
      }),
      sinceMs: createdAtMs,
    });
  }
  const last = delivery.attempts.at(-1);
  const sinceMs = last && last.startedAtMs + last.durationMs;
  const next = dueAtMs !== null && dueAtMs > nowMs ? `Attempt ${attemptCount + 1} is due at ${at(dueAtMs)}.` : waits;
  const answer = `Attempt ${attemptCount} of ${maxAttempts} failed. ${lastFailure(delivery)} ${next}`;
  const stop = inactivity(facts);
  return because('waiting_for_retry', stop ? `${answer} Its address ${stop.what}, so it is held then.` : answer, {
    nextStep:
      stop?.nextStep ?? 'Nothing, if the receiver works again by then. If it works already, try the delivery now.',
    sinceMs,
    dueAtMs,
  });
}

const attemptFailures: Record<AttemptError, string> = {
  timeout: 'No response came within the time limit',
  redirect: 'The response was a redirect',
  status: 'The response had an error status',
  address_blocked: 'The name resolved to a private or local address',
  dns: 'The name could not be resolved',
  connection: 'The connection failed',
  tls: 'TLS failed: the certificate was not valid, or the receiver refused the handshake',
};

function lastFailure({ attempts }: Delivery): string {
  const { error = null, statusCode = null } = attempts.at(-1) ?? {};
  if (error === null) return 'Its last attempt is not known.';
  return `${attemptFailures[error]}${statusCode === null ? '' : ` (${statusCode})`}.`;
}

const statusReasons: Record<StatusReason, string> = {
  private_address: 'The address is private.',
  local_address: 'The address is local.',
  redirect: 'It responded to the validation with a redirect.',
  unreachable: 'It could not be reached at the last validation.',
  consecutive_failures: 'Too many consecutive deliveries failed.',
  operator: 'An operator paused it.',
};

function why({ subscription }: Case): string {
  return subscription?.statusReason ? ` ${statusReasons[subscription.statusReason]}` : '';
}

function because(
  reason: ExplanationReason,
  answer: string,
  more: { nextStep?: string | undefined; sinceMs?: number | null | undefined; dueAtMs?: number | null } = {},
): Explanation {
  const { nextStep = null, sinceMs = null, dueAtMs = null } = more;
  return { reason, answer, nextStep, sinceMs, dueAtMs };
}

function at(ms: number | undefined): string {
  return ms === undefined ? 'an unknown time' : utcText(ms);
}

function keptFor({ retentionMs, succeededRetentionMs }: Case): string {
  const general = `Events are kept for ${days(retentionMs)}`;
  if (succeededRetentionMs === retentionMs) return `${general}.`;
  return `${general}, or for ${days(succeededRetentionMs)} if all their deliveries have succeeded or they matched no subscription.`;
}

function days(ms: number): string {
  const count = Math.round(ms / DAY_MS);
  if (count < 1) return 'less than a day';
  return count === 1 ? 'a day' : `${count} days`;
}
