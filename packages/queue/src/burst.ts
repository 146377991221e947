/** Delays ending jobs while a burst of others is being taken, so that the HTTP requests of the burst leave first. */

/** After this many turns of the event loop, jobs just taken have written their HTTP requests to open connections. */
const TURNS = 3;

/**
 * Ending a job while others are being taken delays those: Redis runs the end first, and this process spends time on it
 * between two HTTP requests. So ends wait until the jobs are taken, but no longer than `maxWaitMs`.
 */
export function createBurst(maxWaitMs: number) {
  let ends: PromiseWithResolvers<void> | undefined;
  let limit: NodeJS.Timeout | undefined;
  let taking = 0;
  const end = () => {
    clearTimeout(limit);
    ends?.resolve();
    ends = undefined;
  };
  return {
    /** To be called when jobs are being taken, probably more than one. */
    begin(): void {
      taking += 1;
      if (ends) return;
      ends = Promise.withResolvers();
      limit = setTimeout(end, maxWaitMs);
    },
    /** To be called when the jobs were taken, or taking them failed. */
    async taken(): Promise<void> {
      for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
      taking -= 1;
      if (taking === 0) end();
    },
    /** Resolves once the burst is taken, or has taken too long; undefined if there is no burst. */
    over: (): Promise<void> | undefined => ends?.promise,
  };
}
