/** Every 2 seconds, writes to Redis that this worker is alive, its counts, and the sites that it has reached. */
import { hostname } from 'node:os';
import { type Clock, createRepeating, type Logger, type Service, version } from '@posthorn/runtime';
import { deregisterWorker, type Store, saveReachedSites, sendHeartbeat } from '@posthorn/store';
import type { AttemptCounts } from './counts.ts';
import type { Outages } from './outage.ts';
import type { ReachedSites } from './reached-sites.ts';

export interface HeartbeatContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  workerId: string;
  /** `WORKER_CONCURRENCY`. */
  concurrency: number;
  counts: AttemptCounts;
  outages: Pick<Outages, 'current'>;
  reachedSites: ReachedSites;
}

const HEARTBEAT_EVERY_MS = 2_000;

/** Registers the worker at the start. At the stop it adds the last counts and deregisters the worker. */
export function createHeartbeat(context: HeartbeatContext): Service {
  const { store, clock, logger, workerId, concurrency, counts, outages, reachedSites } = context;
  const identity = { id: workerId, host: hostname(), pid: process.pid, version, startedAtMs: clock.now() };
  const beat = () => {
    const outageSinceMs = outages.current()?.startedAtMs ?? null;
    const state = { concurrency, inFlight: counts.inFlight, outageSinceMs };
    return sendHeartbeat(store, { ...identity, ...state }, clock.now());
  };
  return createRepeating({
    name: 'heartbeat',
    everyMs: HEARTBEAT_EVERY_MS,
    onStart: beat,
    async run() {
      await beat();
      await counts.flush();
      await saveReachedSites(store, reachedSites.takeUnsaved(clock.now()), clock.now());
    },
    async onStop() {
      await counts.flush();
      await deregisterWorker(store, workerId);
    },
    logger,
  });
}
