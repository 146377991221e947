/**
 * Downloads packages of a Debian-like distribution and unpacks them into a folder, without root and without installing
 * anything.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { explainFileError } from '../folder.ts';
import { moveInto } from './move-into.ts';
import type { Program } from './programs.ts';

const UNFINISHED = '.unpacking-';
/** Longer than any download takes. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

/** Whether this machine has the necessary commands. */
export function canUnpack(path: string): boolean {
  const folders = [...path.split(delimiter), '/usr/bin'];
  return ['apt-get', 'dpkg-deb'].every((command) => folders.some((folder) => existsSync(join(folder, command))));
}

/**
 * Unpacks each program into `<folder>/<name>`, with the libraries that this machine lacks and a wrapper in `bin`.
 * Resolves with the programs that are not available and why. A folder gets its name only once it is complete and its
 * program has run. So an interrupted download leaves nothing that looks complete, and of two concurrent ones the first
 * wins. Rejects if `signal` aborts it.
 */
export async function unpackPrograms(
  programs: readonly Program[],
  { folder, signal }: { folder: string; signal?: AbortSignal | undefined },
): Promise<Map<Program, string>> {
  const failed = new Map<Program, string>();
  mkdirSync(folder, { recursive: true });
  removeAbandoned(folder);
  const work = mkdtempSync(join(folder, UNFINISHED));
  try {
    const apt = openApt(join(work, 'apt'), signal);
    const problems = await apt.update();
    for (const program of programs) {
      try {
        await unpack(program, apt, { work, signal });
        moveInto(join(work, program.name), join(folder, program.name));
      } catch (error) {
        if (signal?.aborted) throw error;
        const words = explainFileError(error, folder)?.message ?? (error as Error).message;
        // A cause that affects all of them is reported once.
        failed.set(program, [words, ...(failed.size === 0 ? problems : [])].join('\n  '));
      }
    }
    return failed;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

interface Apt {
  /**
   * Reads the package lists; resolves with the errors of apt-get. A source that is away matters only if it has a needed
   * package.
   */
  update(): Promise<string[]>;
  /** Downloads a package and those of its dependencies that this machine lacks; resolves with the files. */
  download(name: string, into: string): Promise<string[]>;
}

/** Runs apt-get with its own lists and cache, so that it needs neither root nor the system's lock. */
function openApt(dir: string, signal: AbortSignal | undefined): Apt {
  const option = (setting: string) => ['-o', setting];
  const common = [
    ...option(`Dir::State::lists=${join(dir, 'lists')}`),
    ...option('Debug::NoLocking=1'),
    ...option('Acquire::Languages=none'),
    // Offline it should fail soon.
    ...option('Acquire::Retries=1'),
    ...option('Acquire::http::Timeout=15'),
    ...option('Acquire::https::Timeout=15'),
    // As root it would otherwise download as another user, who can't write here.
    ...option('APT::Sandbox::User=root'),
  ];
  mkdirSync(join(dir, 'lists/partial'), { recursive: true });
  return {
    async update() {
      try {
        const { stderr } = await run('apt-get', [...common, ...option(`Dir::Cache=${dir}`), '-q', 'update'], signal);
        return complaints(stderr);
      } catch (error) {
        if (signal?.aborted) throw error;
        return complaints((error as Error).message);
      }
    },
    async download(name, into) {
      const archives = join(into, 'archives');
      mkdirSync(join(archives, 'partial'), { recursive: true });
      const args = ['-q', '-y', '--no-install-recommends', '--download-only', 'install', name];
      await run('apt-get', [...common, ...option(`Dir::Cache=${into}`), ...args], signal);
      // The C library belongs to the system's loader; a second one does not work.
      const files = readdirSync(archives).filter((file) => file.endsWith('.deb') && !file.startsWith('libc6_'));
      return files.map((file) => join(archives, file));
    },
  };
}

async function unpack(program: Program, apt: Apt, { work, signal }: { work: string; signal: AbortSignal | undefined }) {
  const target = join(work, program.name);
  const root = join(target, 'root');
  const reasons: string[] = [];
  for (const { package: name, executable } of program.apt) {
    rmSync(target, { recursive: true, force: true });
    mkdirSync(root, { recursive: true });
    try {
      const cache = join(work, `${program.name}-packages`);
      for (const file of await apt.download(name, cache)) await run('dpkg-deb', ['-x', file, root], signal);
      rmSync(cache, { recursive: true });
      const starter = writeStarter(target, program.name, executable);
      const version = await run(starter, ['--version'], signal);
      const refused = program.refuse?.(version.stdout);
      if (refused !== undefined) throw new Error(`of package ${name}, ${refused}`);
      return;
    } catch (error) {
      if (signal?.aborted || explainFileError(error)) throw error;
      reasons.push(complaints((error as Error).message).join('\n  '));
    }
  }
  throw new Error(reasons.join('\n  '));
}

/** Writes a script that runs the executable with the unpacked libraries, wherever the folder is. Returns its path. */
function writeStarter(target: string, name: string, executable: string): string {
  const root = join(target, 'root');
  if (!existsSync(join(root, executable))) throw new Error(`the package has no ${executable}`);
  const libraries = librariesBelow(root).map((dir) => `$root/${relative(root, dir)}`);
  const starter = join(target, 'bin', name);
  mkdirSync(join(target, 'bin'));
  writeFileSync(
    starter,
    '#!/bin/sh\n' +
      // $0 contains a slash: the shell found it on the path, or it was started by its path.
      'root=$(cd "$(dirname "$0")/../root" && pwd) || exit 1\n' +
      `export LD_LIBRARY_PATH="${libraries.join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n` +
      // If the system has no fonts, use the unpacked ones.
      '[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_SYSROOT="$root"\n' +
      `exec "$root/${executable}" "$@"\n`,
  );
  chmodSync(starter, 0o755);
  return starter;
}

/** Returns every folder with shared libraries: some packages have their own folder for them. */
function librariesBelow(root: string): string[] {
  const files = readdirSync(root, { recursive: true, withFileTypes: true });
  const dirs = files.filter(({ name }) => /\.so(\.\d+)*$/.test(name)).map(({ parentPath }) => parentPath);
  // The shortest path first: a distribution's libraries are at the top, plugins below.
  return [...new Set(dirs)].sort((a, b) => a.length - b.length);
}

/** Removes the leftovers of processes that were killed while they unpacked. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder).filter((one) => one.startsWith(UNFINISHED))) {
    const { mtimeMs } = statSync(join(folder, name), { throwIfNoEntry: false }) ?? {};
    if (mtimeMs !== undefined && Date.now() - mtimeMs > ABANDONED_AFTER_MS) {
      rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
}

/** The lines of apt-get that name the error, or all lines of another program. */
function complaints(output: string): string[] {
  const lines = output.trim().split('\n');
  const marked = lines.filter((line) => /^(E|W|Err):/.test(line));
  return (marked.length > 0 ? marked : lines.slice(-5)).filter((line) => line.trim() !== '');
}

/** Runs a program to its end. Rejects with its output if it fails. */
function run(command: string, args: string[], signal?: AbortSignal): Promise<{ stdout: string; stderr: string }> {
  const options = {
    env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 64 * 1024 * 1024,
    signal,
  };
  return new Promise((resolve, reject) => {
    execFile(command, args, options, (error: ExecFileException | null, stdout, stderr) => {
      if (error) reject(new Error(stderr.trim() || error.message, { cause: error }));
      else resolve({ stdout, stderr });
    });
  });
}
