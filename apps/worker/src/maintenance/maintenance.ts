/** Runs the maintenance duties: each is a service with its own interval, errors and metrics. */
import { StorageUnavailable, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { createRepeating, createSeldom, type Service, shareResult } from '@posthorn/runtime';
import { allPartitions, partitionsWithWork } from '@posthorn/store';
import { Counter, Gauge, type Registry } from 'prom-client';
import { advanceRetries } from './advance-retries.ts';
import { closeDeleted } from './close-deleted.ts';
import type { Duty, DutyContext } from './duty.ts';
import { eraseEvents } from './erase-events.ts';
import { expireHeld } from './expire-held.ts';
import { createLease, type Lease } from './lease.ts';
import { pruneIndexes } from './prune-indexes.ts';
import { raiseFormat } from './raise-format.ts';
import { releaseAtRate, releaseParked } from './release-lanes.ts';
import { rescueLostJobs } from './rescue-lost-jobs.ts';
import { runReplays } from './run-replays.ts';
import { sendTrials } from './send-trials.ts';

interface MaintenanceContext extends DutyContext {
  registry: Registry;
  /** Names this process in the leases. */
  holder: string;
}

const RENEW_EVERY_MS = 1_000;
/** How long the duties share one answer to the question where there is work. Shorter than any interval of a duty. */
const WORK_KNOWN_MS = 400;
/** How long a duty waits for one of several partitions before it goes to the next: a run takes far less. */
const MAX_WAIT_MS = 5_000;

/**
 * First those that run only where something waits (`onlyWithWork`), then, from `rescueLostJobs` on, those that run
 * everywhere: docs/architecture.md lists them in this order. None depends on the order.
 */
const DUTIES = [
  advanceRetries,
  releaseAtRate('held'),
  releaseAtRate('overdue'),
  releaseParked,
  sendTrials,
  runReplays,
  eraseEvents,
  closeDeleted,
  rescueLostJobs,
  expireHeld,
  pruneIndexes,
  raiseFormat,
];

export const createDuties = (context: DutyContext): Duty[] => DUTIES.map((create) => create(context));

/** The services of maintenance, in the order in which they start. None depends on the success of another. */
export function createMaintenance(context: MaintenanceContext): Service[] {
  const { store, logger, holder, registry } = context;
  const duties = createDuties(context);
  const partitions = allPartitions(store);
  const lease = createLease({
    store,
    logger,
    partitions,
    holder,
    duties: duties.map(({ name }) => name),
    elapsedMs: () => performance.now(),
  });
  const metrics = createMaintenanceMetrics(registry, () => partitions.filter(lease.holds).length);
  const leaseService = createRepeating({
    name: 'maintenance lease',
    everyMs: RENEW_EVERY_MS,
    onStart: lease.renew,
    run: lease.renew,
    onStop: lease.release,
    logger,
  });
  const withWork = shareResult(() => partitionsWithWork(store), WORK_KNOWN_MS);
  const services = duties.map((duty) => {
    const run = createDutyRunner(duty, { partitions, lease, withWork, metrics, logger });
    return createRepeating({ name: `maintenance ${duty.name}`, everyMs: duty.everyMs, run, logger });
  });
  return [leaseService, ...services];
}

function createMaintenanceMetrics(registry: Registry, countPartitions: () => number) {
  const registers = [registry];
  new Gauge({
    name: 'posthorn_maintenance_partitions',
    help: 'Partitions in which this process does maintenance',
    registers,
    collect() {
      this.set(countPartitions());
    },
  });
  const lastSuccess = new Gauge({
    name: 'posthorn_maintenance_last_success_timestamp_seconds',
    help: 'When a maintenance duty last succeeded in all partitions of this process; 0: never; absent where it has none',
    labelNames: ['duty'],
    registers,
  });
  const errors = new Counter({
    name: 'posthorn_maintenance_errors_total',
    help: 'Runs of a maintenance duty in a partition that failed',
    labelNames: ['duty'],
    registers,
  });
  return { lastSuccess, errors };
}

interface RunnerContext {
  partitions: readonly number[];
  lease: Lease;
  /** Resolves to the partitions in which something waits. */
  withWork: () => Promise<ReadonlySet<number>>;
  metrics: ReturnType<typeof createMaintenanceMetrics>;
  logger: DutyContext['logger'];
}

/**
 * Returns a function that runs a duty in each partition of this process. A partition that fails, or whose master does
 * not reply, does not stop the others. While its last run has not ended, a partition is skipped and counted as failed.
 */
function createDutyRunner(duty: Duty, { partitions, lease, withWork, metrics, logger }: RunnerContext) {
  const { lastSuccess, errors } = metrics;
  const labels = { duty: duty.name };
  // The metric counts every error.
  const mayLog = createSeldom();
  const logFailure = (err: unknown, partition: number) => {
    if (!mayLog()) return;
    const level = err instanceof StorageUnavailable || err instanceof TimeLimitExceeded ? 'warn' : 'error';
    logger[level]({ err, ...labels, partition }, 'maintenance.failed');
  };
  errors.inc(labels, 0);
  const underWay = new Set<number>();
  const runIn = async (partition: number) => {
    underWay.add(partition);
    const run = duty.run(partition).finally(() => underWay.delete(partition));
    await (partitions.length === 1 ? run : withTimeLimit(MAX_WAIT_MS, run));
  };
  return async () => {
    let runs = 0;
    let failures = 0;
    for (const partition of partitions) {
      if (!lease.holds(partition)) continue;
      runs += 1;
      try {
        if (underWay.has(partition)) throw new StorageUnavailable('Its last run has not ended');
        if (!duty.onlyWithWork || (await withWork()).has(partition)) await runIn(partition);
        lease.succeeded(duty.name, partition);
      } catch (err) {
        failures += 1;
        errors.inc(labels);
        logFailure(err, partition);
      }
    }
    if (runs === 0) lastSuccess.remove(labels);
    else if (failures === 0) lastSuccess.setToCurrentTime(labels);
    // Adds the sample if there is none: a duty that has never succeeded has 0.
    else lastSuccess.inc(labels, 0);
  };
}
