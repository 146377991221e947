/** What each part of `npm run bench` is given. */
import type { Bench, RedisOptions } from './harness.ts';

export interface Run {
  bench: Bench;
  /** For parts that start further ones. */
  redis: RedisOptions;
  quick: boolean;
  /** The number of repetitions of each measurement. */
  rounds: number;
  /** A tenth of the number in a quick run. */
  size(full: number): number;
  /** The path of a file that says how to call another system. */
  target: string | undefined;
}

/** Measures a part and prints its tables. Resolves to the figures. */
export type Part = (run: Run) => Promise<unknown>;

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}
