/** The routes for operations, which need no key: /healthz, /readyz and /metrics. */
import { AppError } from '@posthorn/core';
import { shareResult, withTimeLimit } from '@posthorn/runtime';
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
  const common = { method: 'get', tag: 'Operations', open: true } as const;
  const state = (description: string) => ({
    200: { description, schema: z.strictObject({ status: z.enum(['ok', 'ready']) }) },
  });
  api.route(
    { ...common, path: '/healthz', summary: 'Check that the process is alive', responses: state('It is alive') },
    async () => ({
      status: 200,
      body: { status: 'ok' },
    }),
  );
  api.route(
    { ...common, path: '/readyz', summary: 'Check that Redis responds and takes writes', responses: state('It does') },
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
      responses: { 200: { description: 'Text format', type: 'text/plain', schema: z.string() } },
    },
    async ({ response }) => {
      const text = await collect();
      response.set('Content-Type', registry.contentType).end(text);
      return { status: 200 };
    },
  );
}

/** Shares the result of `work`. Rejects with `AppError` `unavailable` if `work` fails or exceeds its time limit. */
function shareLimited<T>(work: () => Promise<T>): () => Promise<T> {
  return shareResult(async () => {
    try {
      return await withTimeLimit(TIMEOUT_MS, work());
    } catch (cause) {
      throw new AppError('unavailable', 'Redis does not respond or takes no writes.', { cause, retryAfterS: 5 });
    }
  }, RESULT_MAX_AGE_MS);
}
