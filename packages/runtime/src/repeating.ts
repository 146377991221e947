/** Repeated background work, as a service. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from './logger.ts';
import { createSeldom } from './seldom.ts';
import type { Service } from './service.ts';

interface RepeatingOptions {
  name: string;
  /** A function is called before each pause. */
  everyMs: number | (() => number);
  /** `stopping` is aborted when the service is to stop: long work then ends early. */
  run: (stopping: AbortSignal) => Promise<unknown>;
  /** Runs when the service starts, before the repetition begins. An error fails the start. */
  onStart?: () => Promise<unknown>;
  /** Runs when the service stops, after the last run has ended. */
  onStop?: () => Promise<unknown>;
  logger: Logger;
  /** In milliseconds; for tests. */
  now?: () => number;
}

/**
 * Calls `run` every `everyMs` milliseconds, measured from the end of the previous run. A failed run is repeated like
 * any other, and logged, at most once in 10 s. `stop` waits for the current run.
 */
export function createRepeating({ name, everyMs, run, onStart, onStop, logger, now }: RepeatingOptions): Service {
  const stopping = new AbortController();
  const { signal } = stopping;
  let repetition: Promise<void> | undefined;
  const mayLog = createSeldom({ now });
  const repeat = async () => {
    for (;;) {
      await wait(typeof everyMs === 'function' ? everyMs() : everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await run(signal);
      } catch (err) {
        if (mayLog()) logger.warn({ err, work: name }, 'background_work.failed');
      }
    }
  };
  return {
    name,
    async start() {
      await onStart?.();
      repetition ??= repeat();
    },
    async stop() {
      stopping.abort();
      await repetition;
      await onStop?.();
    },
  };
}
