/** Every 2 seconds, writes to Redis that this worker is alive, its counts, what has succeeded, and the sites that it has reached. */
import { hostname } from 'node:os';
import { eachInTurn } from '@posthorn/core';
import { type Clock, createRepeating, type Logger, type Service, version } from '@posthorn/runtime';
import { announceRules, deregisterWorker, type Store, saveReachedSites, sendHeartbeat } from '@posthorn/store';
import type { SucceededEvents } from './attempts/succeeded-events.ts';
import type { WorkerSettings } from './config.ts';
import type { AttemptCounts } from './counts.ts';
import type { Outages } from './outage/network-outage.ts';
import type { ReachedSites } from './outage/reached-sites.ts';

export interface HeartbeatContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  workerId: string;
  settings: Pick<
    WorkerSettings,
    'WORKER_CONCURRENCY' | 'ADDRESS_CONCURRENCY' | 'RETRY_DELAYS' | 'PAUSE_AFTER' | 'ATTEMPT_TIMEOUT' | 'RELEASE_RATE'
  >;
  counts: AttemptCounts;
  succeededEvents: SucceededEvents;
  outages: Pick<Outages, 'current'>;
  reachedSites: ReachedSites;
}

const HEARTBEAT_EVERY_MS = 2_000;

/** Publishes the rules and registers the worker at the start; at the stop, adds the last counts and deregisters it. */
export function createHeartbeat(context: HeartbeatContext): Service {
  const { store, clock, logger, workerId, settings, counts, succeededEvents, outages, reachedSites } = context;
  const identity = { id: workerId, host: hostname(), pid: process.pid, version, startedAtMs: clock.now() };
  const beat = () => {
    const outageSinceMs = outages.current()?.startedAtMs ?? null;
    const { WORKER_CONCURRENCY: concurrency, ADDRESS_CONCURRENCY: addressConcurrency } = settings;
    const state = { concurrency, addressConcurrency, inFlight: counts.inFlight, outageSinceMs, clockMs: clock.now() };
    return sendHeartbeat(store, { ...identity, ...state });
  };
  const saveSites = () => saveReachedSites(store, reachedSites.takeUnsaved(clock.now()), clock.now());
  const deregister = () => deregisterWorker(store, workerId);
  return createRepeating({
    name: 'heartbeat',
    everyMs: HEARTBEAT_EVERY_MS,
    async onStart() {
      await announceRules(store, {
        maxAttempts: settings.RETRY_DELAYS.length + 1,
        pauseAfter: settings.PAUSE_AFTER,
        attemptTimeoutMs: settings.ATTEMPT_TIMEOUT,
        releaseRate: settings.RELEASE_RATE,
      });
      await beat();
    },
    run: () => eachInTurn([beat, counts.flush, succeededEvents.flush, saveSites], (work) => work()),
    onStop: () => eachInTurn([counts.flush, succeededEvents.flush, deregister], (work) => work()),
    logger,
  });
}
