/** What a worker reports, on a real Redis. */
import { expect, it } from '@jest/globals';
import { createLogger, systemClock } from '@posthorn/runtime';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createReachedSites } from './outage/reached-sites.ts';
import { createReports } from './reports.ts';

it('reports what has succeeded where the last counts cannot be stored', async () => {
  const flushed: string[] = [];
  const service = createReports({
    store,
    clock: systemClock,
    logger: createLogger({ app: 'test', level: 'silent' }),
    counts: { flush: async () => Promise.reject(new Error('WRONGTYPE')) },
    succeededEvents: { flush: async () => void flushed.push('succeeded') },
    reachedSites: createReachedSites(),
  });
  await service.start();
  await expect(service.stop(0)).rejects.toThrow('WRONGTYPE');
  expect(flushed).toEqual(['succeeded']);
});
