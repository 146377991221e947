/** The metrics that every app has: those of its process, and the backlog in Redis. */
import { StorageUnavailable } from '@posthorn/core';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { version } from './settings.ts';
import { shareResult } from './shared-result.ts';
import { TimeLimitExceeded, withTimeLimit } from './time-limit.ts';

/** Time limit for reading the backlog. It is shorter than that of a scrape, so that the other metrics still arrive in time. */
const BACKLOG_TIMEOUT_MS = 1_500;

/** Returns a registry with the metrics of the process itself. */
export function createMetrics(app: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; the label has the version',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}

/** Counts of what is in Redis. Every process reports the same. */
export interface Backlog {
  /** Jobs by state of the queue. */
  jobs: Record<string, number>;
  deliveries: Record<string, number>;
  subscriptions: Record<string, number>;
  /** Addresses whose attempts fail now. */
  failingAddresses: number;
  /** Age of the oldest delivery without an attempt; 0 if there is none. */
  oldestPendingAgeMs: number;
}

/**
 * Registers gauges of the backlog, which is read from Redis once per scrape. A scrape lacks them if the storage is not open yet, or Redis
 * does not reply in time.
 */
export function registerBacklog(registry: Registry, isOpen: () => boolean, read: () => Promise<Backlog>): void {
  // All gauges and scrapes share a read that is in progress, so that reads do not pile up while Redis is unavailable.
  const readOnce = shareResult(read, 0);
  const backlog = async (): Promise<Backlog | undefined> => {
    if (!isOpen()) return undefined;
    try {
      return await withTimeLimit(BACKLOG_TIMEOUT_MS, readOnce());
    } catch (error) {
      if (error instanceof TimeLimitExceeded || error instanceof StorageUnavailable) return undefined;
      throw error;
    }
  };
  new Gauge({
    name: 'posthorn_redis_up',
    help: '1 if Redis replied in time for this scrape; otherwise 0, and metrics read from Redis are absent',
    registers: [registry],
    async collect() {
      this.set((await backlog()) ? 1 : 0);
    },
  });
  /** A gauge with one sample per label value, or one sample without a label. */
  const gauge = (
    name: string,
    help: string,
    labelNames: [string] | [],
    read: (now: Backlog) => Record<string, number> | number,
  ) => {
    const [label = ''] = labelNames;
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const now = await backlog();
        this.reset();
        // Without labels, `reset` leaves a sample of 0.
        this.remove({});
        if (!now) return;
        const values = read(now);
        if (typeof values === 'number') this.set(values);
        else for (const [value, count] of Object.entries(values)) this.set({ [label]: value }, count);
      },
    });
  };
  gauge('posthorn_queue_jobs', 'Jobs in the queue, by state', ['state'], (now) => now.jobs);
  gauge('posthorn_deliveries', 'Deliveries kept, by status', ['status'], (now) => now.deliveries);
  gauge('posthorn_subscriptions', 'Subscriptions, by status', ['status'], (now) => now.subscriptions);
  gauge('posthorn_paused_addresses', 'Addresses that are paused', [], (now) => now.subscriptions.paused ?? 0);
  gauge(
    'posthorn_failing_addresses',
    'Addresses whose attempts fail, whatever their status',
    [],
    (now) => now.failingAddresses,
  );
  const oldest = 'Age of the oldest delivery without an attempt; 0 if there is none';
  gauge('posthorn_oldest_pending_age_seconds', oldest, [], (now) => now.oldestPendingAgeMs / 1000);
}
