/** Developers' commands end at once: with their help, or with code 2 and one line if an option has no meaning. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..');

/** Runs a command with an empty PATH: one that does not end at its arguments finds no npm, and installs nothing. */
function run(file: string, args: string[]) {
  return spawnSync(process.execPath, [join(ROOT, file), ...args], { cwd: ROOT, encoding: 'utf8', env: { PATH: '' } });
}

it.each([
  ['bench/main.ts', ['npm run bench', '--quick', '--only=…']],
  ['scripts/busy/main.ts', ['npm run test:busy', '--runs=…', '--spinners=…']],
])('%s says with --help what it does', (file, words) => {
  const { status, stdout, stderr } = run(file, ['--help']);
  expect([status, stderr]).toEqual([0, '']);
  for (const word of words) expect(stdout).toContain(word);
});

describe.each([
  [
    'tests/mutate/main.ts',
    [
      ['--only=lua', '--sample=abc'],
      ['--only=lua', '--sample=-1'],
      ['--only=lua', '--seed=abc'],
      ['--only=lua,nonsense'],
      ['--nonsense'],
      ['nonsense'],
    ],
  ],
  [
    'scripts/busy/main.ts',
    [['--runs=0'], ['--runs=1001'], ['--runs=abc'], ['--spinners=0'], ['--spinners=1025'], ['--nonsense']],
  ],
])('%s', (file, mistakes) => {
  it.each(mistakes.map((args) => ({ args })))('refuses $args', ({ args }) => {
    const { status, stdout, stderr } = run(file, args);
    expect({ status, stdout, lines: stderr.trim().split('\n').length }).toEqual({ status: 2, stdout: '', lines: 1 });
    expect(stderr).toContain(args.at(-1)!.replace(/=.*/, ''));
  });
});
