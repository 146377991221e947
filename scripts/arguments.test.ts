/** Developers' commands end at once, with code 2 and one line, if an option has no meaning. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '..');

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
    // With an empty PATH: a command that does not refuse its arguments finds no npm, and installs nothing.
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, file), ...args], {
      cwd: ROOT,
      encoding: 'utf8',
      env: { PATH: '' },
    });
    expect({ status, stdout, lines: stderr.trim().split('\n').length }).toEqual({ status: 2, stdout: '', lines: 1 });
    expect(stderr).toContain(args.at(-1)!.replace(/=.*/, ''));
  });
});
