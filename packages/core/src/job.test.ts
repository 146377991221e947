/** The id of a job says which delivery it belongs to, and which of its jobs it is. */
import { expect, it } from '@jest/globals';
import { readJobId } from './index.ts';

it.each([
  ['dlv_1', 0],
  ['dlv_1.1', 1],
  ['dlv_1.1764000000000', 1_764_000_000_000],
])('gives the job %s the delivery and the generation %i', (id, generation) => {
  expect(readJobId(id)).toEqual({ deliveryId: 'dlv_1', generation });
});
