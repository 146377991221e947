/** What keeps a process observable: /healthz, /readyz and /metrics, and the gauges read when somebody looks. */
import { AppError } from '@posthorn/core';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { z } from 'zod';
import type { Api } from './api.ts';
import { isStorageFailure } from './problems.ts';
import { version } from './settings.ts';
import { shareResult } from './shared-result.ts';

/** Redis must answer a readiness check within this. */
const READY_LIMIT_MS = 2_000;
/** And its part of a scrape within this, so that the rest of the scrape still arrives in time. */
const BACKLOG_LIMIT_MS = 1_500;
/** Anybody may ask for readiness and metrics: what was found is good for this long, for all who ask. */
const RESULT_MAX_AGE_MS = 1_000;

/** A registry with the process's own figures. */
export function createMetrics(app: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; says the version',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}

/** What stands in Redis, the same for all processes; each app can tell it. */
export interface Backlog {
  /** Jobs by state of the queue. */
  jobs: Record<string, number>;
  deliveries: Record<string, number>;
  subscriptions: Record<string, number>;
  /** Age of the oldest delivery without an attempt; 0 where there is none. */
  oldestPendingAgeMs: number;
}

/** Gauges of the backlog, read from Redis once for each scrape; absent from a scrape that Redis does not answer in time. */
export function registerBacklog(registry: Registry, read: () => Promise<Backlog>): void {
  // Shared by all gauges and scrapes until it ends, so that they don't pile up while Redis is away.
  const readOnce = shareResult(read, 0);
  const backlog = async (): Promise<Backlog | undefined> => {
    try {
      return await within(BACKLOG_LIMIT_MS, readOnce());
    } catch (error) {
      const { cause } = error as AppError;
      if (cause instanceof NoAnswer || isStorageFailure(cause)) return undefined;
      throw error;
    }
  };
  new Gauge({
    name: 'posthorn_redis_up',
    help: '1 where Redis answered this scrape; 0 where not, and what is read from it is absent',
    registers: [registry],
    async collect() {
      this.set((await backlog()) ? 1 : 0);
    },
  });
  const gauge = (
    name: string,
    help: string,
    label: string | undefined,
    values: (now: Backlog) => Record<string, number>,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        const now = await backlog();
        if (!now) {
          if (label === undefined) this.remove();
          else this.reset();
          return;
        }
        for (const [value, count] of Object.entries(values(now))) {
          this.set(label === undefined ? {} : { [label]: value }, count);
        }
      },
    });
  gauge('posthorn_queue_jobs', 'Jobs in the queue, by state', 'state', (now) => now.jobs);
  gauge('posthorn_deliveries', 'Deliveries kept, by status', 'status', (now) => now.deliveries);
  gauge('posthorn_subscriptions', 'Subscriptions, by status', 'status', (now) => now.subscriptions);
  gauge('posthorn_paused_addresses', 'Addresses that are paused', undefined, (now) => ({
    all: now.subscriptions.paused ?? 0,
  }));
  const oldest = 'Age of the oldest delivery that has had no attempt yet; 0 where there is none';
  gauge('posthorn_oldest_pending_age_seconds', oldest, undefined, (now) => ({ all: now.oldestPendingAgeMs / 1000 }));
}

/** The three routes that need no key. `checkReady` rejects where the process can't do its work. */
export function operationsRoutes(api: Api, options: { registry: Registry; checkReady: () => Promise<unknown> }): void {
  const { registry } = options;
  const checkReady = shareResult(() => within(READY_LIMIT_MS, options.checkReady()), RESULT_MAX_AGE_MS);
  const collect = shareResult(
    async () => Buffer.from(await within(READY_LIMIT_MS, registry.metrics())),
    RESULT_MAX_AGE_MS,
  );
  const common = { method: 'get', tag: 'Operations', open: true } as const;
  const state = (description: string) => ({
    200: { description, schema: z.strictObject({ status: z.enum(['ok', 'ready']) }) },
  });
  api.route({ ...common, path: '/healthz', summary: 'Is the process alive?', answers: state('It is') }, async () => ({
    status: 200,
    body: { status: 'ok' },
  }));
  api.route(
    { ...common, path: '/readyz', summary: 'Does Redis answer and take writes?', answers: state('It does') },
    async () => {
      await checkReady();
      return { status: 200, body: { status: 'ready' } };
    },
  );
  api.route(
    {
      ...common,
      path: '/metrics',
      summary: 'Metrics for Prometheus',
      answers: { 200: { description: 'Text format', type: 'text/plain', schema: z.string() } },
    },
    async ({ response }) => {
      const text = await collect();
      response.set('Content-Type', registry.contentType).end(text);
      return { status: 200 };
    },
  );
}

class NoAnswer extends Error {
  override name = 'NoAnswer';
}

/** Fails as `unavailable` where `work` fails or takes longer than `limitMs`. */
async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const timeUp = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeUp.reject(new NoAnswer(`No answer within ${limitMs} ms`)), limitMs);
  try {
    return await Promise.race([work, timeUp.promise]);
  } catch (cause) {
    throw new AppError('unavailable', 'Redis does not answer or takes no writes.', { cause, retryAfterS: 5 });
  } finally {
    clearTimeout(timer);
  }
}
