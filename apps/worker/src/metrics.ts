/** The metrics of a worker's attempts: outcomes, durations, and the time from acceptance to arrival. */
import type { Attempt, FailureReason, NoticeType, Verdict } from '@posthorn/core';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface WorkerMetrics {
  attempted(attempt: Attempt, verdict: Verdict, createdAtMs: number): void;
  failed(reason: FailureReason): void;
  paused(): void;
  notice(type: NoticeType): void;
  /** An attempt that failed because of an outage of this process. */
  notCounted(): void;
  outage(isOn: boolean): void;
}

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: 'posthorn_attempts_total',
    help: 'Attempts made, by outcome: succeeded, or the error',
    labelNames: ['outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'posthorn_attempt_duration_seconds',
    help: 'From the start of an attempt to its outcome',
    labelNames: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10],
    registers,
  });
  const arrival = new Histogram({
    name: 'posthorn_delivery_latency_seconds',
    help: 'From acceptance of the event to a successful attempt',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 43_200],
    registers,
  });
  const failed = new Counter({
    name: 'posthorn_deliveries_failed_total',
    help: 'Deliveries that failed for good, by reason',
    labelNames: ['reason'],
    registers,
  });
  const paused = new Counter({
    name: 'posthorn_addresses_paused_total',
    help: 'Addresses paused after consecutive failures',
    registers,
  });
  const notices = new Counter({
    name: 'posthorn_notices_total',
    help: 'Notices sent, by type',
    labelNames: ['type'],
    registers,
  });
  const notCounted = new Counter({
    name: 'posthorn_attempts_not_counted_total',
    help: 'Attempts not counted because this worker could not reach anything',
    registers,
  });
  const outage = new Gauge({
    name: 'posthorn_outage',
    help: '1 while this worker can reach nothing and makes no attempts',
    registers,
  });
  return {
    attempted(attempt, verdict, createdAtMs) {
      const outcome = attempt.error ?? 'succeeded';
      attempts.inc({ outcome });
      duration.observe({ outcome }, attempt.durationMs / 1000);
      if (verdict.kind === 'succeeded')
        arrival.observe((attempt.startedAtMs + attempt.durationMs - createdAtMs) / 1000);
    },
    failed: (reason) => failed.inc({ reason }),
    paused: () => paused.inc(),
    notice: (type) => notices.inc({ type }),
    notCounted: () => notCounted.inc(),
    outage: (isOn) => outage.set(Number(isOn)),
  };
}
