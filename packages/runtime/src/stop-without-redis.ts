/** Lets a process stop while Redis is away: once nothing is in flight, no service waits for it any longer. */
import { withTimeLimit } from '@posthorn/core';
import type { Logger } from './logger.ts';
import type { Service } from './service.ts';

/** Time for the check when a process has used up its grace period. */
const MIN_CHECK_MS = 200;

/**
 * Returns the services, and one more that stops before them. If `check` rejects then, their stops end at once. For
 * services whose last writes can be lost: other processes repeat the work, or it is counts of the last seconds.
 */
export function stopWithoutRedis(check: () => Promise<void>, services: readonly Service[], logger: Logger): Service[] {
  const isAway = Promise.withResolvers<void>();
  const checked: Service = {
    name: 'redis',
    start: async () => undefined,
    async stop(graceMs) {
      try {
        await withTimeLimit(Math.max(graceMs, MIN_CHECK_MS), check());
      } catch (err) {
        logger.warn({ err }, 'stopping.without_redis');
        isAway.resolve();
      }
    },
  };
  const untilAway = (service: Service): Service => ({
    ...service,
    stop: (graceMs) => Promise.race([service.stop(graceMs), isAway.promise]),
  });
  return [...services.map(untilAway), checked];
}
