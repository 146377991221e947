/** Reads from a request which failed deliveries a bulk replay covers. */
import type { failedDeliveriesQuerySchema } from '@posthorn/operator-api';
import type { ReplayScope } from '@posthorn/store';
import type { z } from 'zod';

/**
 * The scope of a bulk replay, of whichever address. Without an end, all that had failed when the replay began. The
 * compiler checks that it uses each field of `failed-deliveries`, which are those of every replay.
 */
export function replayScopeOf(
  fields: z.output<typeof failedDeliveriesQuerySchema>,
): Omit<ReplayScope, 'subscriptionId'> {
  const { from = 0, to = Number.MAX_SAFE_INTEGER, event_type, error, failed_from, failed_to, ...unused } = fields;
  unused satisfies Record<string, never>;
  return {
    fromMs: from,
    toMs: to,
    filter: {
      eventType: event_type ?? null,
      error: error ?? null,
      failedFromMs: failed_from ?? null,
      failedToMs: failed_to ?? null,
    },
  };
}
