/** The named mutations of `npm run mutate`: a change of the source must not leave them behind. */
import { expect, it } from '@jest/globals';
import { locate, NAMED } from './mutate/named.ts';

it.each(NAMED)('can be made in the source: $name', (mutation) => {
  const { end, start } = locate(mutation);
  expect(end - start).toBe(mutation.original.length);
});
