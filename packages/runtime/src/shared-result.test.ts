/** Results that callers share: how often the work runs, and how long a result counts. */
import { describe, expect, it } from '@jest/globals';
import { shareResult } from './shared-result.ts';

/** Work that ends when the test says so. */
function work() {
  const runs: PromiseWithResolvers<number>[] = [];
  let nowMs = 0;
  const ask = shareResult(
    () => {
      runs.push(Promise.withResolvers<number>());
      return runs.at(-1)!.promise;
    },
    1_000,
    () => nowMs,
  );
  return { runs, ask, advance: (ms: number) => (nowMs += ms) };
}

describe('a shared result', () => {
  it('is computed once for all callers at a time, and for those within its maximum age', async () => {
    const { runs, ask, advance } = work();
    const asked = [ask(), ask(), ask()];
    advance(60_000);
    asked.push(ask());
    runs[0]!.resolve(1);
    expect(await Promise.all(asked)).toEqual([1, 1, 1, 1]);
    advance(999);
    expect(await ask()).toBe(1);
    expect(runs).toHaveLength(1);
    advance(1);
    const next = ask();
    expect(runs).toHaveLength(2);
    runs[1]!.resolve(2);
    expect(await next).toBe(2);
  });
  it('rejects for those who waited for a failure, and for nobody after them', async () => {
    const { runs, ask } = work();
    const asked = [ask(), ask()];
    runs[0]!.reject(new Error('away'));
    for (const one of asked) await expect(one).rejects.toThrow('away');
    const next = ask();
    expect(runs).toHaveLength(2);
    runs[1]!.resolve(2);
    expect(await next).toBe(2);
  });
});
