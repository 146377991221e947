/** Holds back the ends of jobs while many others are being taken, so that the requests of those leave first. */

/** Turns of the event loop after which the requests of jobs that were just taken have been written to open connections. */
const TURNS = 3;

/**
 * An end that is sent while jobs are being taken delays them: Redis executes it first, and this process spends time on it
 * between two requests. So ends wait until the jobs are taken, but no longer than `maxWaitMs`.
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
    /** Jobs are being taken, and there are likely more than one. */
    begin(): void {
      taking += 1;
      if (ends) return;
      ends = Promise.withResolvers();
      limit = setTimeout(end, maxWaitMs);
    },
    /** They were taken, or could not be. */
    async taken(): Promise<void> {
      for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
      taking -= 1;
      if (taking === 0) end();
    },
    /** Resolves when no burst is being taken, or it takes too long; undefined if there is none. */
    over: (): Promise<void> | undefined => ends?.promise,
  };
}
