/** A piece of background work that runs again and again, one run at a time, until the process stops. */
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';

/**
 * Runs `run` every `everyMs` milliseconds, counted from the end of the run before. A run that fails is logged and repeated like any
 * other. `stop` waits for the run in hand.
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
