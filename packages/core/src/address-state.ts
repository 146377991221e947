/** The state machine of a subscription's address (specification 3.2), and how each event changes it. */
import { AppError } from './errors.ts';
import type { StatusReason, SubscriptionStatus } from './subscription.ts';

export interface AddressState {
  status: SubscriptionStatus;
  /**
   * Whether it was resumed and its trial is not over: one held delivery goes first, all others are held until it
   * succeeds. Only an active address can be resuming.
   */
  resuming: boolean;
  /**
   * Why it has its status, or why its last validation left it as it was; null where there is nothing to explain. While
   * it is resuming: why it was paused.
   */
  statusReason: StatusReason | null;
  /**
   * Deliveries that failed while it was active, since the last success, resume or new url. A resume counts once its
   * trial has succeeded.
   */
  consecutiveFailures: number;
  /** Whether events are kept for it: from its first successful validation on, whatever its status. */
  takesEvents: boolean;
}

/** A new address, which is not validated yet. */
export const NEW_ADDRESS: Readonly<AddressState> = {
  status: 'awaiting_validation',
  resuming: false,
  statusReason: null,
  consecutiveFailures: 0,
  takesEvents: false,
};

/** What a validation found. */
export type AddressFinding =
  | { kind: 'acceptable' }
  | { kind: 'refused'; reason: Extract<StatusReason, 'private_address' | 'local_address' | 'redirect'> }
  | { kind: 'unreachable' };

export type AddressEvent =
  | AddressFinding
  | { kind: 'url_changed' }
  /** By an operator. */
  | { kind: 'paused' | 'resumed' }
  /**
   * A delivery ended after its last attempt. `pauseAfter` is the number of consecutive failures that pauses an address.
   */
  | { kind: 'delivery_failed'; pauseAfter: number }
  | { kind: 'delivery_succeeded' }
  /** The trial of a resume had its attempt; it has also succeeded if nothing was held. */
  | { kind: 'trial_succeeded' | 'trial_failed' };

/**
 * The state after an event; the other fields of `now` stay as they are. Returns `now` itself if the address is already
 * paused, or already resuming. Throws `AppError` `conflict` if an operator may not pause or resume an address with this
 * status.
 *
 * | status \ event      | acceptable | refused | url_changed         | paused | resumed  | delivery_failed      | trial_succeeded | trial_failed |
 * | ------------------- | ---------- | ------- | ------------------- | ------ | -------- | -------------------- | --------------- | ------------ |
 * | awaiting_validation | active     | refused | same                | throws | throws   | same                 | same            | same         |
 * | active              | same       | refused | awaiting_validation | paused | same     | paused, at the limit | same            | same         |
 * | active, resuming    | same       | refused | awaiting_validation | paused | same     | same                 | active          | paused       |
 * | paused              | same       | refused | awaiting_validation | same   | resuming | same                 | same            | same         |
 * | refused             | active     | same    | awaiting_validation | throws | throws   | same                 | same            | same         |
 *
 * "same" means the same status; `unreachable` changes none. A failed delivery raises the count of consecutive failures,
 * up to the limit, only while the address is active and not resuming; one that succeeds resets it and changes nothing
 * else. The scripts of packages/store that record attempts mirror the last three events, since they must be one step
 * with the record; a test there compares the two.
 */
export function nextAddressState<T extends AddressState>(now: T, event: AddressEvent): T {
  switch (event.kind) {
    case 'acceptable':
      return now.status === 'paused' || now.resuming
        ? now
        : { ...now, status: 'active', statusReason: null, takesEvents: true };
    case 'refused':
      return { ...now, status: 'refused', resuming: false, statusReason: event.reason };
    case 'unreachable':
      // The reason of another status is what led to it.
      return now.status === 'awaiting_validation' ? { ...now, statusReason: 'unreachable' } : now;
    case 'url_changed':
      // What is known of the old address says nothing about the new one.
      return { ...now, ...NEW_ADDRESS, takesEvents: now.takesEvents };
    case 'paused':
      if (now.status === 'paused') return now;
      if (now.status === 'active') return { ...now, status: 'paused', resuming: false, statusReason: 'operator' };
      throw new AppError('conflict', `Only an active address can be paused; this one is ${now.status}.`);
    case 'resumed':
      return resumed(now);
    case 'delivery_failed': {
      if (now.status !== 'active' || now.resuming) return now;
      const consecutiveFailures = Math.min(now.consecutiveFailures + 1, event.pauseAfter);
      return consecutiveFailures === event.pauseAfter
        ? { ...now, status: 'paused', statusReason: 'consecutive_failures', consecutiveFailures }
        : { ...now, consecutiveFailures };
    }
    case 'delivery_succeeded':
      return { ...now, consecutiveFailures: 0 };
    case 'trial_succeeded':
      return now.resuming ? { ...now, resuming: false, statusReason: null, consecutiveFailures: 0 } : now;
    case 'trial_failed':
      return now.resuming ? { ...now, status: 'paused', resuming: false } : now;
    default:
      return event satisfies never;
  }
}

/**
 * The reason and the count of a paused address are kept until the trial has succeeded, because its failure brings them
 * back.
 */
function resumed<T extends AddressState>(now: T): T {
  if (now.resuming) return now;
  if (now.status === 'paused') return { ...now, status: 'active', resuming: true };
  if (now.status === 'active') return { ...now, statusReason: null, consecutiveFailures: 0 };
  throw new AppError('conflict', `Only a paused address can be resumed; this one is ${now.status}. Validate it.`);
}
