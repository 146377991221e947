/** The workers that are alive: each sends a heartbeat, by the clock of Redis, and deregisters when it stops. */
import { partitionPrefix, workersKey, workersSeenKey } from './keys.ts';
import { execAll } from './redis/exec-all.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** A worker without a heartbeat for this long is not alive. */
const ALIVE_MS = 10_000;
const FORGET_AFTER_MS = 60_000;

/** What a worker reports in its heartbeat. */
export interface WorkerState {
  id: string;
  host: string;
  pid: number;
  version: string;
  startedAtMs: number;
  concurrency: number;
  inFlight: number;
  /** Attempts that it makes to one address at once. */
  addressConcurrency: number;
  /** When its outage began; null if there is none. */
  outageSinceMs: number | null;
  /** Its own time at the heartbeat. Workers of releases before 0.2 do not report it. */
  clockMs?: number;
}

/** Stores a worker's heartbeat, at the time of Redis. */
export async function sendHeartbeat(store: Store, worker: WorkerState): Promise<void> {
  const values = { id: worker.id, state: JSON.stringify(worker), forgetAfterMs: FORGET_AFTER_MS };
  await runScript(store, 'heartbeat', partitionPrefix(store, 0), values);
}

/** Removes a worker that stops. */
export async function deregisterWorker(store: Store, id: string): Promise<void> {
  const prefix = partitionPrefix(store, 0);
  await execAll(store.redis.multi().hdel(workersKey(prefix), id).zrem(workersSeenKey(prefix), id));
}

/** The workers that are alive, and how long ago the heartbeat of each was. No process's clock matters. */
export async function aliveWorkers(
  store: Store,
  withinMs = ALIVE_MS,
): Promise<(WorkerState & { seenAgoMs: number })[]> {
  const alive = await runScript(store, 'aliveWorkers', partitionPrefix(store, 0), { withinMs });
  return alive.map(({ state, seenAgoMs }) => ({ ...(JSON.parse(state) as WorkerState), seenAgoMs }));
}
