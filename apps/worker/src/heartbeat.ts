/** Every 2 seconds, writes to Redis that this worker is alive. */
import { hostname } from 'node:os';
import { type Clock, createRepeating, type Logger, type Service, version } from '@posthorn/runtime';
import { announceRules, deregisterWorker, type Store, sendHeartbeat } from '@posthorn/store';
import type { WorkerSettings } from './config.ts';
import type { AttemptCounts } from './counts.ts';
import type { Outages } from './outage/network-outage.ts';

interface HeartbeatContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  workerId: string;
  settings: Pick<
    WorkerSettings,
    'WORKER_CONCURRENCY' | 'ADDRESS_CONCURRENCY' | 'RETRY_DELAYS' | 'PAUSE_AFTER' | 'ATTEMPT_TIMEOUT' | 'RELEASE_RATE'
  >;
  counts: Pick<AttemptCounts, 'inFlight'>;
  outages: Pick<Outages, 'current'>;
}

const HEARTBEAT_EVERY_MS = 2_000;

/** Publishes the rules and registers the worker at the start; deregisters it at the stop. */
export function createHeartbeat(context: HeartbeatContext): Service {
  const { store, clock, logger, workerId, settings, counts, outages } = context;
  const identity = { id: workerId, host: hostname(), pid: process.pid, version, startedAtMs: clock.now() };
  const beat = () => {
    const outageSinceMs = outages.current()?.startedAtMs ?? null;
    const { WORKER_CONCURRENCY: concurrency, ADDRESS_CONCURRENCY: addressConcurrency } = settings;
    const state = { concurrency, addressConcurrency, inFlight: counts.inFlight, outageSinceMs, clockMs: clock.now() };
    return sendHeartbeat(store, { ...identity, ...state });
  };
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
    run: beat,
    onStop: () => deregisterWorker(store, workerId),
    logger,
  });
}
