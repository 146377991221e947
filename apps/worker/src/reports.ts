/**
 * Every 2 seconds, writes to Redis what this worker has counted, what has succeeded, and the sites that it has reached.
 * Each partition on its own: in a Redis Cluster a master that hangs holds up only what goes to it.
 */
import { eachInTurn, throwRejections } from '@posthorn/core';
import { type Clock, createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { allPartitions, type Store, saveReachedSites } from '@posthorn/store';
import type { SucceededEvents } from './attempts/succeeded-events.ts';
import type { AttemptCounts } from './counts.ts';
import type { ReachedSites } from './outage/reached-sites.ts';

interface ReportsContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  counts: Pick<AttemptCounts, 'flush'>;
  succeededEvents: Pick<SucceededEvents, 'flush'>;
  reachedSites: ReachedSites;
}

const REPORT_EVERY_MS = 2_000;

export function createReports({
  store,
  clock,
  logger,
  counts,
  succeededEvents,
  reachedSites,
}: ReportsContext): Service {
  const saveSites = () => saveReachedSites(store, reachedSites.takeUnsaved(clock.now()), clock.now());
  const reportsTo = (partition: number) => {
    const flushes = [() => counts.flush(partition), () => succeededEvents.flush(partition)];
    // The sites are stored in the first partition.
    const all = partition === 0 ? [...flushes, saveSites] : flushes;
    return createRepeating({
      name: 'reports',
      everyMs: REPORT_EVERY_MS,
      run: () => eachInTurn(all, (work) => work()),
      onStop: () => eachInTurn(flushes, (work) => work()),
      logger,
    });
  };
  const services = allPartitions(store).map(reportsTo);
  const toAll = async (call: (service: Service) => Promise<void>) =>
    throwRejections(await Promise.allSettled(services.map(call)));
  return {
    name: 'reports',
    start: () => toAll((service) => service.start()),
    stop: (graceMs) => toAll((service) => service.stop(graceMs)),
  };
}
