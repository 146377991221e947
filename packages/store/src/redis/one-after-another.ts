/** Shares the runs of some work: each caller gets the result of a run that began after its call. */

/**
 * Returns a function that resolves to the result of a run of `work` which began after the call. Runs never overlap;
 * calls during one share the next. Those who wait for a run get its error; the next run only waits for its end.
 */
export function oneAfterAnother<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<T> | undefined;
  return () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      const run = work();
      running = run.catch(() => undefined);
      return run;
    });
    return waiting;
  };
}
