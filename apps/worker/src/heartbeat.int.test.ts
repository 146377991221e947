/** What a worker says of itself at its start and its stop, on a real Redis. */
import { expect, it } from '@jest/globals';
import { createLogger, systemClock } from '@posthorn/runtime';
import { aliveWorkers } from '@posthorn/store';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createHeartbeat, type HeartbeatContext } from './heartbeat.ts';
import { createReachedSites } from './outage/reached-sites.ts';

it('deregisters a worker whose last counts cannot be stored', async () => {
  const counts = { inFlight: 0, flush: async () => Promise.reject(new Error('WRONGTYPE')) };
  const flushed: string[] = [];
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
    counts: counts as unknown as HeartbeatContext['counts'],
    succeededEvents: { add: () => undefined, flush: async () => void flushed.push('succeeded') },
    outages: { current: () => undefined },
    reachedSites: createReachedSites(),
  });
  await service.start();
  expect(await aliveWorkers(store)).toHaveLength(1);
  await expect(service.stop(0)).rejects.toThrow('WRONGTYPE');
  expect([flushed, await aliveWorkers(store)]).toEqual([['succeeded'], []]);
});
