/** The routes for operations, which need no key: /healthz, /readyz and /metrics. */
import { AppError, withTimeLimit } from '@posthorn/core';
import { shareResult } from '@posthorn/runtime';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { Api } from './api.ts';

/** Time limit for a readiness check and for a scrape. */
const TIMEOUT_MS = 2_000;
/** These routes are open to everybody, so all callers share one result for this long. */
const RESULT_MAX_AGE_MS = 1_000;

/** Adds the three routes. `checkReady` rejects if the process cannot do its work. */
export function operationsRoutes(api: Api, options: { registry: Registry; checkReady: () => Promise<unknown> }): void {
  const { registry } = options;
  const checkReady = shareLimited(options.checkReady);
  const collect = shareLimited(async () => Buffer.from(await registry.metrics()));
  const operations = api.tagged('Operations');
  const statusSchema = z.strictObject({ status: z.enum(['ok', 'ready']) });
  operations.get('/healthz', {
    summary: 'Check that the process is alive',
    open: true,
    responses: { 200: { description: 'It is alive', schema: statusSchema } },
    handle: async () => ({ status: 'ok' }),
  });
  operations.get('/readyz', {
    summary: 'Check that Redis responds and takes writes',
    open: true,
    problems: ['unavailable'],
    responses: { 200: { description: 'It does', schema: statusSchema } },
    async handle() {
      await checkReady();
      return { status: 'ready' };
    },
  });
  operations.get('/metrics', {
    summary: 'Metrics for Prometheus',
    open: true,
    problems: ['unavailable'],
    responses: { 200: { description: 'Text format', type: 'text/plain', schema: z.string() } },
    async handle({ response }) {
      response.set('Content-Type', registry.contentType).end(await collect());
    },
  });
}

/**
 * Shares the result of `work`. Rejects with `AppError` `unavailable` if `work` fails or exceeds its time limit. Runs
 * that exceed it are shared too, so that they do not pile up while Redis does not reply.
 */
function shareLimited<T>(work: () => Promise<T>): () => Promise<T> {
  const run = shareResult(work, 0);
  return shareResult(async () => {
    try {
      return await withTimeLimit(TIMEOUT_MS, run());
    } catch (cause) {
      throw new AppError('unavailable', 'Redis does not respond or takes no writes.', { cause, retryAfterS: 5 });
    }
  }, RESULT_MAX_AGE_MS);
}
