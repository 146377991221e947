/**
 * Reacts to an outage of this process: pauses its queues, and announces start and end in the log, the metrics and a
 * notice. Logs that sockets are missing.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, createSeldom, type Logger } from '@posthorn/runtime';
import { addOutageNotice, type Store } from '@posthorn/store';
import { untilStored } from '../attempts/until-stored.ts';
import type { WorkerMetrics } from '../metrics.ts';
import type { Outage, OutageOptions } from './network-outage.ts';

export interface OutageAnnouncerContext {
  store: Store;
  logger: Logger;
  metrics: Pick<WorkerMetrics, 'outage'>;
  clock: Clock;
  /** Stops or resumes taking jobs. */
  setPaused: (isPaused: boolean) => void;
  onError: (error: Error) => void;
  /** Fires when the process stops and can't wait any longer. */
  giveUp: AbortSignal;
}

export function createOutageAnnouncer(
  context: OutageAnnouncerContext,
): Pick<OutageOptions, 'onStart' | 'onEnd' | 'onNoSocket'> {
  const { store, logger, metrics, clock, giveUp, onError } = context;
  const worker = `${hostname()}:${process.pid}`;
  const mayLogNoSocket = createSeldom();
  /**
   * Stores notices one after the other: an operator who got the start after the end would believe that the outage goes
   * on.
   */
  let storing = Promise.resolve();
  const notify = (type: 'outage.started' | 'outage.ended', { kind, startedAtMs }: Outage) => {
    const notice = { id: randomUUID(), type, atMs: clock.now(), reason: kind, worker, sinceMs: startedAtMs };
    storing = storing.then(() => untilStored(() => addOutageNotice(store, notice), giveUp)).catch(onError);
  };
  return {
    onStart(outage) {
      context.setPaused(true);
      metrics.outage(true);
      logger.error({ reason: outage.kind }, 'outage.started');
      notify('outage.started', outage);
    },
    onEnd(outage, endedAtMs) {
      context.setPaused(false);
      metrics.outage(false);
      logger.warn({ reason: outage.kind, duration_ms: endedAtMs - outage.startedAtMs }, 'outage.ended');
      notify('outage.ended', outage);
    },
    onNoSocket(code) {
      if (!mayLogNoSocket()) return;
      logger.error(
        { code },
        'Attempts wait because no socket can be opened. Raise the limit of open files (ulimit -n), or lower WORKER_CONCURRENCY.',
      );
    },
  };
}
