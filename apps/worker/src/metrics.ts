/** The metrics of a worker's attempts: outcomes, durations, and the time from acceptance to arrival. */
import { type Attempt, type FailureReason, type NoticeType, releasedAtMs, type Verdict } from '@posthorn/core';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

export function createWorkerMetrics(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const attempts = counter('posthorn_attempts_total', 'Attempts made, by outcome: succeeded, or the error', [
    'outcome',
  ]);
  const duration = new Histogram({
    name: 'posthorn_attempt_duration_seconds',
    help: 'From the start of an attempt to its outcome',
    labelNames: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10],
    registers,
  });
  const arrival = new Histogram({
    name: 'posthorn_delivery_latency_seconds',
    help: 'From acceptance of the event (of a replay: from its creation) to a successful attempt',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 43_200],
    registers,
  });
  const firstAttempt = new Histogram({
    name: 'posthorn_first_attempt_delay_seconds',
    help: 'From acceptance of the event to the start of the first attempt, of deliveries that were never held and are no replays. Includes the wait for a slot of their own address',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800],
    registers,
  });
  const lateness = new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'From the time at which a retry was due to its start, also if it was overdue and released at RELEASE_RATE; of deliveries that were not held meanwhile',
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200],
    registers,
  });
  const failed = counter(
    'posthorn_deliveries_failed_total',
    'Deliveries that failed at their last attempt, by its error. Those that end without one, as expired for example, are not counted',
    ['reason'],
  );
  const paused = counter('posthorn_addresses_paused_total', 'Addresses paused after consecutive failures');
  const notices = counter(
    'posthorn_notices_total',
    'Notices logged, by type, accepted by NOTICE_URL or not; those that wait, again by the next worker that sends them',
    ['type'],
  );
  const givenUp = counter(
    'posthorn_notices_given_up_total',
    'Notices dropped because NOTICE_URL did not accept them for a day, or because too many waited',
  );
  const notCounted = counter(
    'posthorn_attempts_not_counted_total',
    'Attempts not counted because this worker could reach nothing, or open no socket',
  );
  const outage = new Gauge({
    name: 'posthorn_outage',
    help: '1 while this worker can reach nothing and makes no attempts',
    registers,
  });
  return {
    attempted(
      attempt: Attempt,
      verdict: Verdict,
      { createdAtMs, dueAtMs, isReplay }: { createdAtMs: number; dueAtMs: number | null; isReplay: boolean },
      generation: number,
    ): void {
      const outcome = attempt.error ?? 'succeeded';
      attempts.inc({ outcome });
      duration.observe({ outcome }, attempt.durationMs / 1000);
      if (attempt.number === 1) {
        const wasSentAsAccepted = !isReplay && releasedAtMs(generation) === undefined;
        if (wasSentAsAccepted) firstAttempt.observe(secondsFrom(createdAtMs, attempt.startedAtMs));
      } else if (dueAtMs !== null) lateness.observe(secondsFrom(dueAtMs, attempt.startedAtMs));
      if (verdict.kind === 'succeeded')
        arrival.observe(secondsFrom(createdAtMs, attempt.startedAtMs + attempt.durationMs));
    },
    failed: (reason: FailureReason) => failed.inc({ reason }),
    paused: () => paused.inc(),
    notice: (type: NoticeType) => notices.inc({ type }),
    noticeGivenUp: (count = 1) => givenUp.inc(count),
    /** Counts an attempt that failed because of this process. */
    notCounted: () => notCounted.inc(),
    outage: (isOn: boolean) => outage.set(Number(isOn)),
  };
}

/** Returns 0 if the start is in the future, by a clock of another process: the sum of a histogram must not decrease. */
function secondsFrom(startMs: number, endMs: number): number {
  return Math.max(0, endMs - startMs) / 1000;
}
