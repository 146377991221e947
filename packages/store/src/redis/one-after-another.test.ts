/** Work that is shared: by whom, and in what order. */
import { describe, expect, it } from '@jest/globals';
import { oneAfterAnother } from './one-after-another.ts';

/** Shared work, each run of which resolves or rejects when the test says so. */
function startedRuns() {
  const runs: PromiseWithResolvers<number>[] = [];
  const call = oneAfterAnother(() => {
    const run = Promise.withResolvers<number>();
    runs.push(run);
    return run.promise;
  });
  return { runs, call };
}

describe('oneAfterAnother', () => {
  it('begins one run for all calls that come during another, when that has ended', async () => {
    const { runs, call } = startedRuns();
    const first = call();
    await Promise.resolve();
    const [second, third] = [call(), call()];
    await Promise.resolve();
    expect(runs).toHaveLength(1);
    runs[0]!.resolve(1);
    expect(await first).toBe(1);
    await new Promise(setImmediate);
    expect(runs).toHaveLength(2);
    runs[1]!.resolve(2);
    expect(await Promise.all([second, third])).toEqual([2, 2]);
  });

  it('runs on after an error, which only those get who waited for that run', async () => {
    const { runs, call } = startedRuns();
    const first = call();
    await Promise.resolve();
    const second = call();
    runs[0]!.reject(new Error('no'));
    await expect(first).rejects.toThrow('no');
    await new Promise(setImmediate);
    runs[1]!.resolve(2);
    expect(await second).toBe(2);
  });
});
