/**
 * Maintenance duty: moves some retries ahead of first attempts, so that a queue that is never empty does not delay them
 * for ever.
 */
import type { Duty, DutyContext } from './duty.ts';

const MAX_RETRIES_PER_RUN = 100;

/** Two processes at once move at most twice as many retries; the order of the queue is all that changes. */
export const advanceRetries = ({ jobQueues }: DutyContext): Duty => ({
  name: 'advance_retries',
  everyMs: 1_000,
  onlyWithWork: true,
  run: (partition) => jobQueues.advanceRetries(partition, MAX_RETRIES_PER_RUN),
});
