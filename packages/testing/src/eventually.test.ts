/** Waiting for an effect that sends no signal. */
import { expect, it } from '@jest/globals';
import { eventually } from './eventually.ts';

it('says what it waited for as it was at the end', async () => {
  const output: string[] = [];
  const probe = () => {
    output.push('more');
    return false as const;
  };
  const failure = await eventually(() => `an end of ${output.length}`, probe, -1).catch((error: Error) => error);
  expect(failure).toEqual(new Error('Not in -1 ms: an end of 1'));
});
