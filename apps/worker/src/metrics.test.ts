/** What the metrics of attempts guarantee. */
import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createWorkerMetrics } from './metrics.ts';

it('counts no negative times where the clock of the process that made a delivery is ahead', async () => {
  const registry = new Registry();
  const { attempted } = createWorkerMetrics(registry);
  const attempt = { startedAtMs: 1_000, durationMs: 5, statusCode: 200, error: null };
  attempted(
    { ...attempt, number: 1 },
    { kind: 'succeeded' },
    { createdAtMs: 3_000, dueAtMs: null, isReplay: false },
    0,
  );
  attempted({ ...attempt, number: 2 }, { kind: 'succeeded' }, { createdAtMs: 500, dueAtMs: 2_000, isReplay: false }, 0);
  const text = await registry.metrics();
  expect(text).toMatch(/^posthorn_first_attempt_delay_seconds_sum 0$/m);
  expect(text).toMatch(/^posthorn_retry_lateness_seconds_sum 0$/m);
  expect(text).toMatch(/^posthorn_delivery_latency_seconds_sum 0\.505$/m);
});
