/** The time limit for work: whose result the caller gets. */
import { describe, expect, it } from '@jest/globals';
import { TimeLimitExceeded, withTimeLimit } from './time-limit.ts';

const nextTurn = () => new Promise<string>((resolve) => setImmediate(() => resolve('done')));

describe('a time limit', () => {
  it('ends as the work does', async () => {
    expect(await withTimeLimit(60_000, nextTurn())).toBe('done');
    await expect(withTimeLimit(60_000, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  it('says so if the work takes longer', async () => {
    const never = new Promise(() => undefined);
    const error = await withTimeLimit(1, never).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(TimeLimitExceeded);
    expect(error).toMatchObject({ name: 'TimeLimitExceeded', message: 'No result within 1 ms' });
  });

  it('does not count the time in which the process was blocked and could not see the end', async () => {
    // What begins here ends in the next turn, after the timers that are due.
    await nextTurn();
    const limited = withTimeLimit(1, nextTurn());
    for (const untilMs = performance.now() + 5; performance.now() < untilMs; );
    expect(await limited).toBe('done');
  });
});
