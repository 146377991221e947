/**
 * Every 2 seconds, writes to Redis what this worker has counted, what has succeeded, and the sites that it has reached.
 * Apart from its heartbeat: these go to every partition, and in a Redis Cluster a master that hangs holds them up.
 */
import { eachInTurn } from '@posthorn/core';
import { type Clock, createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { type Store, saveReachedSites } from '@posthorn/store';
import type { SucceededEvents } from './attempts/succeeded-events.ts';
import type { AttemptCounts } from './counts.ts';
import type { ReachedSites } from './outage/reached-sites.ts';

export interface ReportsContext {
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
  return createRepeating({
    name: 'reports',
    everyMs: REPORT_EVERY_MS,
    run: () => eachInTurn([counts.flush, succeededEvents.flush, saveSites], (work) => work()),
    onStop: () => eachInTurn([counts.flush, succeededEvents.flush], (work) => work()),
    logger,
  });
}
