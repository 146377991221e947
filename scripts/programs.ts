/** Programs that Posthorn needs and npm does not bring: found, or installed where that needs no question. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Program {
  /** What people call it. */
  title: string;
  /** The names it may have. */
  names: string[];
  /** Debian's package of it. */
  aptPackage: string;
  /** What to type where it can't be installed without a question. */
  advice: string;
}

/** A program can't be had here; the message says what to type. */
export class ProgramMissing extends Error {
  override name = 'ProgramMissing';
}

/** The path of a program, installed first where one is root on a Debian-like machine. Throws `ProgramMissing`. */
export function findProgram(program: Program, say: (line: string) => void): string {
  const found = onPath(program.names);
  if (found) return found;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || !existsSync('/usr/bin/apt-get')) throw new ProgramMissing(program.advice);
  say(`Installing ${program.title} with apt-get (once) ...`);
  // The package may want to start a service of its own; a policy of 101 forbids that.
  const script =
    'set -e; export DEBIAN_FRONTEND=noninteractive; p=/usr/sbin/policy-rc.d; ' +
    'if [ ! -e $p ]; then printf "#!/bin/sh\\nexit 101\\n" > $p; chmod +x $p; trap "rm -f $p" EXIT; fi; ' +
    `apt-get update -qq && apt-get install -y -qq --no-install-recommends ${program.aptPackage}`;
  const result = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  const installed = onPath(program.names);
  if (result.status !== 0 || !installed) {
    throw new ProgramMissing(`apt-get could not install ${program.aptPackage}:\n${result.stderr}\n${program.advice}`);
  }
  return installed;
}

function onPath(names: readonly string[]): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/bin', '/usr/local/bin'];
  const candidates = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find((path) => existsSync(path));
}
