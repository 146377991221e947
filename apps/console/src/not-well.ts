/** Decides whether all is well: what needs an operator, with its kind and a phrase each. */
import { HEALTH_MINUTES } from '@posthorn/core';
import { type NotWell, type Overview, WELL_LIMITS } from '@posthorn/operator-api';
import type { AttemptSeries, ServerState, WorkerState } from '@posthorn/store';
import { instant } from './instant.ts';

interface State {
  /** Why Redis refuses writes; null if it takes them. */
  refusal: string | null;
  triage: Pick<Overview, 'problems' | 'incidents'>;
  workers: readonly Worker[];
  /** Whether someone has paused the queue with BullMQ's API. */
  isPaused: boolean;
  /** The attempts of the last hour, minute by minute. */
  hour: Pick<AttemptSeries, 'periods'>;
  /** How long the oldest pending delivery has waited. */
  pendingMs: number;
  server: Pick<ServerState, 'fullest' | 'eviction'>;
}

type Worker = Pick<WorkerState, 'host' | 'pid' | 'outageSinceMs'> & { clockOffsetMs: number | null };

/** Returns what keeps all from being well. */
export function findNotWell({ refusal, triage, workers, isPaused, hour, pendingMs, server }: State): NotWell[] {
  return [
    ...(refusal === null ? [] : [{ kind: 'writes_refused' as const, message: `Redis refuses changes: ${refusal}` }]),
    ...ofAddresses(triage),
    // Heartbeats are writes: while Redis refuses those, no worker seems alive, and none has to be started.
    ...(refusal !== null && workers.length === 0 ? [] : ofWorkers(workers)),
    ...(isPaused ? [{ kind: 'queue_paused' as const, message: "the queue was paused with BullMQ's API" }] : []),
    ...ofTraffic(hour, pendingMs),
    ...ofServer(server),
  ];
}

function ofAddresses({ problems: { total }, incidents }: State['triage']): NotWell[] {
  const found = incidents.map(
    ({ addresses }): NotWell => ({
      kind: 'incident',
      message: `${countText(addresses)} addresses began to fail at once`,
    }),
  );
  const message = total === 1 ? '1 address fails or is paused' : `${countText(total)} addresses fail or are paused`;
  return total === 0 ? found : [{ kind: 'addresses', message }, ...found];
}

function ofWorkers(workers: readonly Worker[]): NotWell[] {
  if (workers.length === 0) return [{ kind: 'no_worker', message: 'no worker is running' }];
  return workers.flatMap(({ host, pid, outageSinceMs, clockOffsetMs }) => {
    const found: NotWell[] = [];
    if (outageSinceMs !== null) {
      const message = `worker ${host}:${pid} has reached nothing since ${instant(outageSinceMs)}`;
      found.push({ kind: 'worker_outage', message });
    }
    if (clockOffsetMs !== null && Math.abs(clockOffsetMs) > WELL_LIMITS.maxClockOffsetMs) {
      const offset = `${Math.round(Math.abs(clockOffsetMs) / 1_000)} s ${clockOffsetMs > 0 ? 'fast' : 'slow'}`;
      found.push({ kind: 'worker_clock', message: `the clock of worker ${host}:${pid} is ${offset}` });
    }
    return found;
  });
}

function ofTraffic({ periods }: State['hour'], pendingMs: number): NotWell[] {
  const recent = periods.slice(-HEALTH_MINUTES);
  const succeeded = recent.reduce((all, period) => all + period.succeeded, 0);
  const attempts = recent.reduce((all, period) => all + period.failed, succeeded);
  const found: NotWell[] = [];
  if (succeeded < WELL_LIMITS.minSuccessRate * attempts) {
    const message = `${countText(attempts - succeeded)} of ${countText(attempts)} attempts failed in the last ${HEALTH_MINUTES} minutes`;
    found.push({ kind: 'attempts', message });
  }
  if (pendingMs >= WELL_LIMITS.longPendingMs) {
    const message = `a delivery has waited ${Math.round(pendingMs / 1_000)} s for its first attempt`;
    found.push({ kind: 'pending', message });
  }
  return found;
}

function ofServer({ fullest, eviction }: State['server']): NotWell[] {
  const found: NotWell[] = eviction === undefined ? [] : [{ kind: 'eviction', message: eviction }];
  if (fullest && fullest.share > WELL_LIMITS.maxMemoryShare) {
    const server = fullest.address === undefined ? 'Redis' : `the Redis master ${fullest.address}`;
    const message = `${server} uses ${Math.round(100 * fullest.share)} % of its memory`;
    found.push({ kind: 'memory', message });
  }
  return found;
}

/** Returns for example `12,345`. */
function countText(count: number): string {
  return count.toLocaleString('en');
}
