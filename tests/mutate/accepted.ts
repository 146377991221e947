/** Mutations that need not be noticed, each with its reason: most change nothing that can be observed. */
import type { Outcome } from './mutant.ts';

interface Accepted {
  file: string;
  original: string;
  /** Left out: whatever it is replaced by. */
  replacement?: string;
  reason: string;
}

export const ACCEPTED: readonly Accepted[] = [];

/** Why a survivor is accepted, or undefined where it is not. */
export function reasonFor({ file, original, replacement }: Outcome): string | undefined {
  return ACCEPTED.find(
    (one) =>
      one.file === file &&
      one.original === original &&
      (one.replacement === undefined || one.replacement === replacement),
  )?.reason;
}
