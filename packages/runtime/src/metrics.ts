/** The metrics that every app has: those of its process, and those of the whole installation, read from Redis. */
import { MINUTE_MS, withTimeLimit } from '@posthorn/core';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Logger } from './logger.ts';
import { createSeldom } from './seldom.ts';
import { shareResult } from './shared-result.ts';
import { version } from './version.ts';

/**
 * Time limit for reading from Redis. It is shorter than that of a scrape, so that the other metrics still arrive in
 * time.
 */
const READ_TIMEOUT_MS = 1_500;
/**
 * How often the event loop's lag is sampled. At prom-client's default of 10 ms a process with nothing to do spends most
 * of its CPU on that. The metrics `nodejs_eventloop_lag_…` include this interval.
 */
const LAG_SAMPLE_MS = 50;

/** Returns a registry with the metrics of the process itself. */
export function createMetrics(app: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; the label has the version',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}

/** The state of the whole installation. Every process reports the same, but for its own clock. */
interface Installation {
  /** Jobs by state of the queue. */
  jobs: Record<string, number>;
  deliveries: Record<string, number>;
  subscriptions: Record<string, number>;
  /** Addresses whose attempts fail now, and those of them whose attempts began to fail in the last 6 hours. */
  failingAddresses: number;
  newlyFailingAddresses: number;
  /** How long the address that was paused first has been paused; 0 if none is. */
  oldestPauseAgeMs: number;
  /**
   * How long the oldest delivery without an attempt has waited, since its release if it was held; 0 if there is none.
   */
  oldestPendingAgeMs: number;
  /** How long the oldest notice has waited to be accepted; 0 if none waits. */
  oldestNoticeAgeMs: number;
  /** Workers with a recent heartbeat. */
  workers: number;
  /** All partitions, and those that take no writes. */
  partitions: number;
  refusingPartitions: number;
  /** The stored format in force, and the one that it becomes after an upgrade. */
  format: { current: number; newest: number };
  /** Memory that the Redis servers use and may use; null where they do not report it. */
  usedBytes: number | null;
  capacityBytes: number | null;
  /** The Redis master that uses the largest share of its memory; null where none reports it. */
  fullest: { share: number } | null;
  /** Whether Redis may lose accepted events, by reason; null where it does not report it. */
  unsafe: Record<string, boolean> | null;
  /** This process's clock minus that of Redis. */
  clockOffsetMs: number;
}

interface InstallationGauge {
  name: string;
  help: string;
  /** With it, `read` returns a sample for each value of the label. */
  label?: string;
  /** Null: there is no sample. */
  read: (now: Installation) => Record<string, number> | number | null;
}

const INSTALLATION_GAUGES: InstallationGauge[] = [
  {
    name: 'posthorn_queue_jobs',
    help: 'Jobs in the queue, by state',
    label: 'state',
    read: ({ jobs }) => jobs,
  },
  {
    name: 'posthorn_deliveries',
    help: 'Deliveries kept, by status',
    label: 'status',
    read: ({ deliveries }) => deliveries,
  },
  {
    name: 'posthorn_subscriptions',
    help: 'Subscriptions, by status',
    label: 'status',
    read: ({ subscriptions }) => subscriptions,
  },
  {
    name: 'posthorn_paused_addresses',
    help: 'Addresses that are paused',
    read: ({ subscriptions }) => subscriptions.paused ?? 0,
  },
  {
    name: 'posthorn_failing_addresses',
    help: 'Addresses whose attempts fail, whatever their status',
    read: ({ failingAddresses }) => failingAddresses,
  },
  {
    name: 'posthorn_newly_failing_addresses',
    help: 'Addresses whose attempts began to fail in the last 6 hours and still do, whatever their status',
    read: ({ newlyFailingAddresses }) => newlyFailingAddresses,
  },
  {
    name: 'posthorn_oldest_pause_age_seconds',
    help: 'Age of the oldest pause of an address (of the first 100 of each partition); 0 if none is paused',
    read: ({ oldestPauseAgeMs }) => oldestPauseAgeMs / 1000,
  },
  {
    name: 'posthorn_oldest_pending_age_seconds',
    help: 'Age of the oldest delivery without an attempt, since its release if it was held (then of the first 100 made); 0 if there is none',
    read: ({ oldestPendingAgeMs }) => oldestPendingAgeMs / 1000,
  },
  {
    name: 'posthorn_oldest_notice_age_seconds',
    help: 'Age of the oldest notice that NOTICE_URL has not accepted yet; 0 if none waits',
    read: ({ oldestNoticeAgeMs }) => oldestNoticeAgeMs / 1000,
  },
  {
    name: 'posthorn_workers',
    help: 'Workers with a heartbeat in the last 10 seconds',
    read: ({ workers }) => workers,
  },
  {
    name: 'posthorn_partitions',
    help: 'PARTITIONS: in each, one worker at a time does maintenance',
    read: ({ partitions }) => partitions,
  },
  {
    name: 'posthorn_partitions_refusing_writes',
    help: 'Partitions whose Redis replies, but refuses writes',
    read: ({ refusingPartitions }) => refusingPartitions,
  },
  {
    name: 'posthorn_stored_format',
    help: 'The stored format: in force, and what it becomes after an upgrade',
    label: 'state',
    read: ({ format }) => ({ current: format.current, newest: format.newest }),
  },
  {
    name: 'posthorn_redis_memory_used_bytes',
    help: 'Memory that Redis uses, all masters together',
    read: ({ usedBytes }) => usedBytes,
  },
  {
    name: 'posthorn_redis_memory_capacity_bytes',
    help: 'Memory that Redis may use: maxmemory, or that of its machines; absent where Redis does not report it',
    read: ({ capacityBytes }) => capacityBytes,
  },
  {
    name: 'posthorn_redis_memory_used_ratio',
    help: 'Share of its memory that Redis uses, of several masters the fullest one; absent where Redis does not report it',
    read: ({ fullest }) => fullest?.share ?? null,
  },
  {
    name: 'posthorn_redis_unsafe',
    help: '1 where Redis may lose accepted events, of several masters any, by reason; absent where Redis does not report it',
    label: 'reason',
    read: ({ unsafe }) =>
      unsafe && Object.fromEntries(Object.entries(unsafe).map(([reason, isSo]) => [reason, Number(isSo)])),
  },
  {
    name: 'posthorn_clock_offset_seconds',
    help: 'The clock of this process minus that of Redis',
    read: ({ clockOffsetMs }) => clockOffsetMs / 1000,
  },
];

/**
 * Registers gauges of the installation, which is read from Redis once per scrape. A scrape lacks them if the storage is
 * not open yet, or they can't be read in time; the log says why.
 */
export function registerInstallation(
  registry: Registry,
  { isOpen, read }: { isOpen: () => boolean; read: () => Promise<Installation> },
  logger: Logger,
): void {
  // All gauges and scrapes share a read that is in progress, so that reads do not pile up while Redis is unavailable.
  const readOnce = shareResult(read, 0);
  const mayLog = createSeldom({ everyMs: MINUTE_MS });
  const installation = async (): Promise<Installation | undefined> => {
    if (!isOpen()) return undefined;
    try {
      return await withTimeLimit(READ_TIMEOUT_MS, readOnce());
    } catch (err) {
      // This process has metrics of its own, which must not be missing whatever is wrong in Redis.
      if (mayLog()) logger.warn({ err }, 'metrics.not_read');
      return undefined;
    }
  };
  new Gauge({
    name: 'posthorn_redis_up',
    help: '1 if the metrics read from Redis could be read in time for this scrape; otherwise 0, and they are absent',
    registers: [registry],
    async collect() {
      this.set((await installation()) ? 1 : 0);
    },
  });
  for (const gauge of INSTALLATION_GAUGES) registerGauge(registry, gauge, installation);
}

function registerGauge(
  registry: Registry,
  { name, help, label = '', read }: InstallationGauge,
  installation: () => Promise<Installation | undefined>,
): void {
  new Gauge({
    name,
    help,
    labelNames: label ? [label] : [],
    registers: [registry],
    async collect() {
      const now = await installation();
      this.reset();
      // Without labels, `reset` leaves a sample of 0.
      this.remove({});
      if (!now) return;
      const values = read(now);
      if (values === null) return;
      if (typeof values === 'number') this.set(values);
      else for (const [value, count] of Object.entries(values)) this.set({ [label]: value }, count);
    },
  });
}
