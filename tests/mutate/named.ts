/** Single mutations that matter by themselves: each was once made by hand, and no test noticed it then. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './mutant.ts';
import { REPOSITORY } from './tree.ts';

interface Named {
  name: string;
  file: string;
  original: string;
  replacement: string;
  /** Jest's arguments. */
  tests: string[];
}

const LIMITS = ['--selectProjects', 'e2e', '--', 'tests/limits.test.ts'];

export const NAMED: readonly Named[] = [
  {
    name: '`PAUSE_AFTER` 20 → 21',
    file: 'packages/core/src/decide.ts',
    original: 'DEFAULT_PAUSE_AFTER = 20',
    replacement: 'DEFAULT_PAUSE_AFTER = 21',
    tests: LIMITS,
  },
  ...['worker', 'console'].map((app) => ({
    name: `\`ATTEMPT_TIMEOUT\` 8 s → 9 s, ${app}`,
    file: `apps/${app}/src/config.ts`,
    original: 'durationMs.default(8_000)',
    replacement: 'durationMs.default(9_000)',
    tests: LIMITS,
  })),
  ...['worker/src/outbound.ts', 'console/src/build.ts'].map((file) => ({
    name: `limit of an attempt one second longer than the setting, ${file}`,
    file: `apps/${file}`,
    original: 'timeoutMs: settings.ATTEMPT_TIMEOUT,',
    replacement: 'timeoutMs: settings.ATTEMPT_TIMEOUT + 1_000,',
    tests: LIMITS,
  })),
  {
    name: "the retry's delay counts from the attempt's start",
    file: 'apps/worker/src/attempt-delivery.ts',
    original: 'context.retryDelaysMs, endedAtMs)',
    replacement: 'context.retryDelaysMs, startedAtMs)',
    tests: LIMITS,
  },
  {
    name: "the sender's limit fires one second late",
    file: 'packages/sender/src/sender.ts',
    original: 'context.timeoutMs);',
    replacement: 'context.timeoutMs + 1_000);',
    tests: ['--selectProjects', 'unit', '--', 'packages/sender/src/limit.test.ts'],
  },
];

/** Finds a named mutation in the current file. Throws unless its text is there exactly once: then the list is out of date. */
export function locate({ name, file, original, replacement }: Named): Mutant {
  const source = readFileSync(join(REPOSITORY, file), 'utf8');
  const [start, second] = [source.indexOf(original), source.lastIndexOf(original)];
  if (start < 0 || start !== second)
    throw new Error(`${file} does not contain "${original}" exactly once: update named.ts`);
  return { file, kind: name, start, end: start + original.length, replacement };
}
