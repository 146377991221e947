/** One change of the source that a test should notice, and the outcome. */

export interface Mutant {
  /** Path from the top of the repository. */
  file: string;
  /** The text in the file from `start` to `end` (offsets in characters) is replaced. */
  start: number;
  end: number;
  replacement: string;
  /** The kind of change, for the list of survivors. */
  kind: string;
}

export interface Outcome extends Mutant {
  line: number;
  original: string;
  /** A change that hangs the tests counts as killed. */
  killed: boolean;
}

/** The mutated text of a file. */
export function applyMutant(source: string, { start, end, replacement }: Mutant): string {
  return source.slice(0, start) + replacement + source.slice(end);
}

export function outcomeOf(source: string, mutant: Mutant, killed: boolean): Outcome {
  const { start, end } = mutant;
  return { ...mutant, line: source.slice(0, start).split('\n').length, original: source.slice(start, end), killed };
}
