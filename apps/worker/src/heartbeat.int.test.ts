/** What a worker says of itself at its start and its stop, on a real Redis. */
import { expect, it } from '@jest/globals';
import { createLogger, systemClock } from '@posthorn/runtime';
import { aliveWorkers } from '@posthorn/store';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createHeartbeat } from './heartbeat.ts';

it('registers a worker at its start and deregisters it at its stop', async () => {
  const service = createHeartbeat({
    store,
    clock: systemClock,
    logger: createLogger({ app: 'test', level: 'silent' }),
    workerId: 'w',
    settings: {
      WORKER_CONCURRENCY: 1,
      ADDRESS_CONCURRENCY: 1,
      RETRY_DELAYS: [],
      PAUSE_AFTER: 1,
      ATTEMPT_TIMEOUT: 1,
      RELEASE_RATE: 1,
    },
    counts: { inFlight: 0 },
    outages: { current: () => undefined },
  });
  await service.start();
  expect(await aliveWorkers(store)).toHaveLength(1);
  await service.stop(0);
  expect(await aliveWorkers(store)).toEqual([]);
});
