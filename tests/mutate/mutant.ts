/** One change of the source that a test should notice, and what became of it. */

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

export interface Outcome {
  file: string;
  line: number;
  kind: string;
  original: string;
  replacement: string;
  /** A change that hangs the tests counts as killed. */
  killed: boolean;
}

/** The mutated text of a file. */
export function applyMutant(source: string, { start, end, replacement }: Mutant): string {
  return source.slice(0, start) + replacement + source.slice(end);
}

export function outcomeOf(source: string, mutant: Mutant, killed: boolean): Outcome {
  const { file, kind, start, end, replacement } = mutant;
  const line = source.slice(0, start).split('\n').length;
  return { file, line, kind, original: source.slice(start, end), replacement, killed };
}
