/** Repeated background work, as a service. */
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';

/**
 * Calls `run` every `everyMs` milliseconds, measured from the end of the previous run. A failed run is logged and repeated like any
 * other. `stop` waits for the current run.
 */
export function createRepeating(options: {
  name: string;
  everyMs: number;
  run: () => Promise<unknown>;
  logger: Logger;
}): Service {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  let stopped = false;
  const runOnce = async () => {
    try {
      await options.run();
    } catch (err) {
      options.logger.warn({ err, work: options.name }, 'background_work.failed');
    }
    if (!stopped) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => {
      current = runOnce();
    }, options.everyMs);
  };
  return {
    name: options.name,
    async start() {
      schedule();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}
