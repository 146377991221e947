/** What a worker reports, on a real Redis. */
import { expect, it } from '@jest/globals';
import { createLogger, systemClock } from '@posthorn/runtime';
import { allPartitions } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createReachedSites } from './outage/reached-sites.ts';
import { createReports } from './reports.ts';

const context = () => ({
  store,
  clock: systemClock,
  logger: createLogger({ app: 'test', level: 'silent' }),
  reachedSites: createReachedSites(),
});

it('reports what has succeeded where the last counts cannot be stored', async () => {
  const reported: number[] = [];
  const service = createReports({
    ...context(),
    counts: { flush: async () => Promise.reject(new Error('WRONGTYPE')) },
    succeededEvents: { flush: async (partition) => void reported.push(partition) },
  });
  await service.start();
  await expect(service.stop(0)).rejects.toThrow('WRONGTYPE');
  expect(reported).toEqual(allPartitions(store));
});

it('reports to the other partitions while one does not reply', async () => {
  const [hung, ...others] = allPartitions(store);
  const reply = Promise.withResolvers<void>();
  const reported: number[] = [];
  const service = createReports({
    ...context(),
    counts: { flush: (partition) => (partition === hung ? reply.promise : Promise.resolve()) },
    succeededEvents: { flush: async (partition) => void reported.push(partition) },
  });
  await service.start();
  const stopped = service.stop(0);
  await eventually('the others', () => reported.length === others.length);
  expect(reported).toEqual(others);
  reply.resolve();
  await stopped;
  expect(reported).toEqual([...others, hung]);
});
