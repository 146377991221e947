/** What is thrown if several things fail side by side. */
import { describe, expect, it } from '@jest/globals';
import { StorageUnavailable } from '../errors.ts';
import { throwRejections } from './throw-rejections.ts';

/** What is thrown after work that fails with these errors; undefined: the work succeeds. */
async function thrownBy(...errors: unknown[]): Promise<unknown> {
  const work = errors.map((error) => (error === undefined ? Promise.resolve() : Promise.reject(error)));
  const results = await Promise.allSettled(work);
  try {
    throwRejections(results);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('failures side by side', () => {
  const [first, second] = [new TypeError('first'), new Error('second')];
  const [away, alsoAway] = [new StorageUnavailable('away'), new StorageUnavailable('also away')];

  it('are nothing if all succeed', async () => {
    expect(await thrownBy()).toBeUndefined();
    expect(await thrownBy(undefined, undefined)).toBeUndefined();
  });
  it('are thrown unchanged if there is one', async () => {
    expect(await thrownBy(undefined, first)).toBe(first);
    expect(await thrownBy(away, undefined)).toBe(away);
  });
  it.each([
    ['errors', [first, undefined, second], 'first'],
    ['also if some are StorageUnavailable', [away, second, alsoAway], 'away'],
    ['and what is no error', ['text', second], 'text'],
  ])('are thrown together: %s', async (_what, errors, message) => {
    const thrown = await thrownBy(...errors);
    expect(thrown).toBeInstanceOf(AggregateError);
    expect(thrown).toMatchObject({ message, errors: errors.filter((error) => error !== undefined) });
  });
  it('are StorageUnavailable if all are', async () => {
    expect(await thrownBy(away, undefined, alsoAway)).toBe(away);
  });
});
