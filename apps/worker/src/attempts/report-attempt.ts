/** Reports an attempt that was recorded: one wide line in the log, metrics, statistics, and the live tail. */
import { type Attempt, errorLabel, type Verdict } from '@posthorn/core';
import { frequentLine, type Logger } from '@posthorn/runtime';
import type { SendResult } from '@posthorn/sender';
import type { AttemptCounts } from '../counts.ts';
import type { WorkerMetrics } from '../metrics.ts';
import type { Tail } from '../tail.ts';
import { type AttemptInFlight, traceOf } from './attempt-in-flight.ts';

/** The fields of the line that is written for each attempt, in their order; `plain`: our own words and ids. */
const ATTEMPTED_FIELDS = {
  delivery_id: 'plain',
  event_id: 'any',
  event_type: 'plain',
  environment: 'plain',
  subscription_id: 'plain',
  attempt: 'any',
  status_code: 'any',
  error: 'plain',
  detail: 'any',
  ip: 'any',
  duration_ms: 'any',
  delivery_status: 'plain',
  next_attempt_at: 'plain',
  trace_id: 'plain',
  span_id: 'plain',
} as const;
export type AttemptedLine = ReturnType<typeof attemptedLine>;

/** Returns a function that writes these lines. */
export function attemptedLine(logger: Logger) {
  return frequentLine(logger, 'delivery.attempted', ATTEMPTED_FIELDS);
}

interface ReportContext {
  logAttempted: AttemptedLine;
  metrics: WorkerMetrics;
  counts: AttemptCounts;
  tail: Pick<Tail, 'attempted'>;
}

/** Logs an attempt in one wide line and counts it in metrics and statistics. */
export function reportAttempt(
  { logAttempted, metrics, counts, tail }: ReportContext,
  inFlight: Pick<AttemptInFlight, 'job' | 'begun' | 'event' | 'span'>,
  attempt: Attempt,
  verdict: Verdict,
  result: SendResult,
): void {
  const { job, begun, event, span } = inFlight;
  metrics.attempted(attempt, verdict, begun, job.generation);
  counts.attempted(job.deliveryId, begun, attempt, labelOf(attempt, result));
  const status = verdict.kind === 'retry' ? 'waiting_for_retry' : verdict.kind;
  tail.attempted(job.deliveryId, begun, attempt, status);
  logAttempted({
    delivery_id: job.deliveryId,
    event_id: event.id,
    event_type: begun.eventType,
    environment: begun.environment,
    subscription_id: begun.subscriptionId,
    attempt: attempt.number,
    status_code: attempt.statusCode,
    error: attempt.error,
    detail: result.kind === 'connection_failed' ? result.detail : undefined,
    ip: result.ip ?? undefined,
    duration_ms: attempt.durationMs,
    delivery_status: status,
    next_attempt_at: verdict.kind === 'retry' ? new Date(verdict.nextAttemptAtMs).toISOString() : undefined,
    trace_id: traceOf(inFlight)?.traceId,
    span_id: span?.spanId,
  });
  if (verdict.kind === 'failed') metrics.failed(verdict.reason);
}

/** The error in words; empty if the attempt succeeded. */
function labelOf({ error, statusCode }: Attempt, result: SendResult): string {
  if (error === null) return '';
  const code =
    result.kind === 'connection_failed' ? result.detail : result.kind === 'address_blocked' ? result.reason : undefined;
  return errorLabel(error, statusCode, code);
}
