/**
 * Finds the programs that Posthorn needs: on the path, unpacked by an earlier run, or downloaded from the distribution.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { dataDir } from '../folder.ts';
import { canUnpack, unpackPrograms } from './apt.ts';
import type { Program } from './programs.ts';

/** Programs are missing and could not be downloaded; the message names all of them and says what to do. */
export class ProgramMissing extends Error {
  override name = 'ProgramMissing';
  readonly programs: readonly Program[];

  constructor(programs: readonly Program[], message: string) {
    super(message);
    this.programs = programs;
  }
}

interface ProvideOptions {
  say: (line: string) => void;
  /** Aborts a download. */
  signal?: AbortSignal;
  /** The folder that programs are unpacked into; for tests. */
  folder?: string;
  path?: string;
}

/**
 * Resolves with the path of each program by its name. Missing programs are unpacked into `.posthorn/programs`, where
 * the next run finds them; that needs no root and changes nothing else on the machine. Throws `ProgramMissing` if any
 * is still missing.
 */
export async function providePrograms(
  programs: readonly Program[],
  { say, signal, folder = join(dataDir, 'programs'), path = process.env.PATH ?? '' }: ProvideOptions,
): Promise<Record<string, string>> {
  const missing = programs.filter((program) => find(program, folder, path) === undefined);
  const why = new Map<Program, string>();
  if (missing.length > 0 && canUnpack(path)) {
    say(`Downloading ${list(missing.map(({ title }) => title))} into ${folder} (once) ...`);
    for (const [program, reason] of await unpackPrograms(missing, { folder, signal })) why.set(program, reason);
  }
  const paths = programs.map((program) => [program.name, find(program, folder, path)] as const);
  const still = missing.filter((program) => find(program, folder, path) === undefined);
  if (still.length > 0) throw new ProgramMissing(still, describeMissing(still, why));
  return Object.fromEntries(paths) as Record<string, string>;
}

/** The message for all missing programs; `why` says why each could not be downloaded. */
export function describeMissing(programs: readonly Program[], why: ReadonlyMap<Program, string>): string {
  const titles = list(programs.map(({ title }) => title));
  const commands = programs.map(({ commands }) => commands.join(' or '));
  const choice = (what: string, command: string) => `  ${command.padEnd(46)} (${what})`;
  return [
    `Posthorn needs ${titles}, and found no ${list(commands, 'and no')}.`,
    ...programs.flatMap((program) => {
      const reason = why.get(program);
      return reason === undefined ? [] : [`${program.title} could not be downloaded: ${reason}`];
    }),
    'Do one of these and run the command again:',
    choice(
      'Debian, Ubuntu',
      `sudo apt-get install ${programs.map(({ apt, install }) => install.apt ?? apt[0]?.package).join(' ')}`,
    ),
    choice('Fedora', `sudo dnf install ${programs.map(({ install }) => install.dnf).join(' ')}`),
    choice('macOS', programs.map(({ install }) => `brew install ${install.brew}`).join(' && ')),
    ...programs.flatMap(({ instead }) => (instead === undefined ? [] : [`  ${instead}`])),
  ].join('\n');
}

function find(program: Program, folder: string, path: string): string | undefined {
  const folders = [...path.split(':').filter((part) => part !== ''), '/usr/bin', '/usr/local/bin'];
  const onPath = program.commands.flatMap((command) => folders.map((one) => join(one, command)));
  return [...onPath, join(folder, program.name, 'bin', program.name)].find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function list(words: readonly string[], and = 'and'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${and} ${words.at(-1)}`;
}
