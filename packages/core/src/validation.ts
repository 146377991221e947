/** What a validation of an address found, and what came back. */
import type { AddressFinding } from './address-state.ts';
import type { CameBack } from './came-back.ts';
import type { AttemptError } from './delivery.ts';

export const VALIDATION_OUTCOMES = ['acceptable', 'refused', 'unreachable'] as const satisfies AddressFinding['kind'][];
type ValidationOutcome = (typeof VALIDATION_OUTCOMES)[number];

export interface Validation extends CameBack {
  atMs: number;
  outcome: ValidationOutcome;
  statusCode: number | null;
  /**
   * Why a delivery with this result would have failed; an acceptable address may still respond with an error status.
   */
  error: AttemptError | null;
}
