/** Reads from a request which failed deliveries a bulk replay covers. */
import type { EventType, FailureReason } from '@posthorn/core';
import type { ReplayScope } from '@posthorn/store';

interface ScopeFields {
  from?: number | undefined;
  to?: number | undefined;
  event_type?: EventType | undefined;
  error?: FailureReason | undefined;
  failed_from?: number | undefined;
  failed_to?: number | undefined;
}

/** The scope of a bulk replay, of whichever address. Without an end, all that had failed when the replay began. */
export function replayScopeOf(fields: ScopeFields): Omit<ReplayScope, 'subscriptionId'> {
  return {
    fromMs: fields.from ?? 0,
    toMs: fields.to ?? Number.MAX_SAFE_INTEGER,
    filter: {
      eventType: fields.event_type ?? null,
      error: fields.error ?? null,
      failedFromMs: fields.failed_from ?? null,
      failedToMs: fields.failed_to ?? null,
    },
  };
}
