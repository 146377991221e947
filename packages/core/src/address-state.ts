/** The state machine of a subscription's address (specification 3.2), and how each event changes it. */
import { AppError } from './errors.ts';
import type { StatusReason, SubscriptionStatus } from './subscription.ts';

export interface AddressState {
  status: SubscriptionStatus;
  /** Why it has its status, or why its last validation left it as it was; null where there is nothing to explain. */
  statusReason: StatusReason | null;
  /** Deliveries that failed since the last success, resume or new url. */
  consecutiveFailures: number;
  /** Whether events are kept for it: from its first successful validation on, whatever its status. */
  takesEvents: boolean;
}

/** A new address, which is not validated yet. */
export const NEW_ADDRESS: Readonly<AddressState> = {
  status: 'awaiting_validation',
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
  /** A delivery ended after its last attempt. `pauseAfter` is the number of consecutive failures that pauses an address. */
  | { kind: 'delivery_failed'; pauseAfter: number }
  | { kind: 'delivery_succeeded' };

/**
 * The state after an event; the other fields of `now` stay as they are. Returns `now` itself if the address is already paused.
 * Throws `AppError` `conflict` if an operator may not pause or resume an address with this status.
 *
 * | status \ event      | acceptable | refused | unreachable | url_changed         | paused | resumed | delivery_failed      |
 * | ------------------- | ---------- | ------- | ----------- | ------------------- | ------ | ------- | -------------------- |
 * | awaiting_validation | active     | refused | same        | same                | throws | throws  | same                 |
 * | active              | same       | refused | same        | awaiting_validation | paused | same    | paused, at the limit |
 * | paused              | same       | refused | same        | awaiting_validation | same   | active  | same                 |
 * | refused             | active     | same    | same        | awaiting_validation | throws | throws  | same                 |
 *
 * "same" means the same status. A failed delivery still raises the count of consecutive failures; one that succeeds resets it and changes
 * nothing else. The script `recordAttempt` of packages/store mirrors these two events, since they must be one step with the record of the
 * attempt; a test there compares the two.
 */
export function nextAddressState<T extends AddressState>(now: T, event: AddressEvent): T {
  switch (event.kind) {
    case 'acceptable':
      return now.status === 'paused' ? now : { ...now, status: 'active', statusReason: null, takesEvents: true };
    case 'refused':
      return { ...now, status: 'refused', statusReason: event.reason };
    case 'unreachable':
      return { ...now, statusReason: 'unreachable' };
    case 'url_changed':
      // What is known of the old address says nothing about the new one.
      return { ...now, ...NEW_ADDRESS, takesEvents: now.takesEvents };
    case 'paused':
      if (now.status === 'paused') return now;
      if (now.status === 'active') return { ...now, status: 'paused', statusReason: 'operator' };
      throw new AppError('conflict', `Only an active address can be paused; this one is ${now.status}.`);
    case 'resumed':
      if (now.status === 'paused' || now.status === 'active')
        return { ...now, status: 'active', statusReason: null, consecutiveFailures: 0 };
      throw new AppError('conflict', `Only a paused address can be resumed; this one is ${now.status}. Validate it.`);
    case 'delivery_failed': {
      const consecutiveFailures = now.consecutiveFailures + 1;
      const pauses = now.status === 'active' && consecutiveFailures >= event.pauseAfter;
      return pauses
        ? { ...now, status: 'paused', statusReason: 'consecutive_failures', consecutiveFailures }
        : { ...now, consecutiveFailures };
    }
    case 'delivery_succeeded':
      return { ...now, consecutiveFailures: 0 };
    default:
      return event satisfies never;
  }
}
