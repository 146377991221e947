/** Awaiting several values at once. */
import { describe, expect, it } from '@jest/globals';
import { awaitValues } from './await-values.ts';

describe('the awaited values', () => {
  it('have their names, in whichever order they come', async () => {
    const late = Promise.withResolvers<string>();
    const found = awaitValues({ late: late.promise, early: Promise.resolve(2), present: null });
    late.resolve('at last');
    const { late: text, early }: { late: string; early: number; present: null } = await found;
    expect([text, early]).toEqual(['at last', 2]);
    expect(await found).toEqual({ late: 'at last', early: 2, present: null });
  });
  it('are not waited for after one has failed', async () => {
    const failed = new Error('failed');
    const never = new Promise(() => undefined);
    await expect(awaitValues({ never, failed: Promise.reject(failed) })).rejects.toBe(failed);
  });
});
