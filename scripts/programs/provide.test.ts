/** Missing programs: the real apt-get downloads them from a repository on this disk; and the messages if that fails. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { canUnpack } from './apt.ts';
import { chromium, curl, type Program, redisServer } from './programs.ts';
import { describeMissing, ProgramMissing, providePrograms } from './provide.ts';

let dir: string;
let folder: string;
const said: string[] = [];
const say = (line: string) => void said.push(line);
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-programs-'));
  folder = join(dir, 'programs');
  said.length = 0;
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
  delete process.env.APT_CONFIG;
});

/** A program that no machine has. */
function invented(change: Partial<Program> = {}): Program {
  return {
    name: 'posthorn-tool',
    title: 'the tool',
    commands: ['posthorn-tool'],
    apt: [{ package: 'posthorn-tool', executable: 'usr/bin/posthorn-tool' }],
    install: { dnf: 'posthorn-tool', brew: 'posthorn-tool' },
    ...change,
  };
}

async function failure(work: Promise<unknown>): Promise<ProgramMissing> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ProgramMissing)) throw new Error(`Expected ProgramMissing, got ${String(error)}`);
  return error;
}

describe('a missing program', () => {
  it('is reported together with all other missing ones, with one command for each kind of machine', () => {
    const words = describeMissing([redisServer, chromium, curl], new Map([[curl, 'no network']]));
    expect(words.split('\n')).toEqual([
      expect.stringMatching(/^Posthorn needs Redis, chromium and curl, and found no redis-server or valkey-server, /),
      'curl could not be downloaded: no network',
      'Do one of these and run the command again:',
      expect.stringMatching(/^ {2}sudo apt-get install redis-server chromium curl +\(Debian, Ubuntu\)$/),
      expect.stringMatching(/^ {2}sudo dnf install valkey chromium curl +\(Fedora\)$/),
      expect.stringMatching(/^ {2}brew install redis && brew install --cask chromium && brew install curl +\(macOS\)$/),
      expect.stringContaining('export REDIS_URL=redis://host:6379'),
    ]);
  });
  it('is not missing if it is on the path and can be run', async () => {
    const program = invented({ commands: ['other', 'posthorn-tool'], apt: [] });
    writeFileSync(join(dir, 'other'), '', { mode: 0o644 });
    mkdirSync(join(dir, 'bin'));
    writeFileSync(join(dir, 'bin/posthorn-tool'), '', { mode: 0o755 });
    const path = `:${dir}:${join(dir, 'bin')}`;
    expect(await providePrograms([program], { say, folder, path })).toEqual({
      'posthorn-tool': join(dir, 'bin/posthorn-tool'),
    });
    expect(said).toEqual([]);
  });
  it('is Redis if only a version before 7 is installed; every version of Valkey is accepted', () => {
    expect(redisServer.refuse!('Redis server v=6.0.16 sha=0:0 malloc=jemalloc')).toContain('version 6.0.16');
    expect(redisServer.refuse!('Redis server v=7.0.15 sha=0:0 malloc=jemalloc')).toBeUndefined();
    expect(redisServer.refuse!('Valkey server v=8.1.1 sha=0:0 malloc=jemalloc')).toBeUndefined();
  });
});

/** Builds a package of these files, and configures apt-get to use only such packages. */
function publish(name: string, { depends, files }: { depends?: string; files: Record<string, string> }): void {
  const tree = join(dir, 'trees', name);
  const control = [`Package: ${name}`, 'Version: 1.0', 'Architecture: all', 'Maintainer: tests', 'Description: test'];
  if (depends !== undefined) control.push(`Depends: ${depends}`);
  for (const [path, content] of Object.entries({ ...files, 'DEBIAN/control': `${control.join('\n')}\n` })) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content, { mode: path.startsWith('usr/bin') ? 0o755 : 0o644 });
  }
  const repository = join(dir, 'repository');
  mkdirSync(repository, { recursive: true });
  const file = join(repository, `${name}_1.0_all.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-b', tree, file]);
  const bytes = readFileSync(file);
  const hash = createHash('sha256').update(bytes).digest('hex');
  const entry = [...control, `Filename: ./${name}_1.0_all.deb`, `Size: ${bytes.length}`, `SHA256: ${hash}`, '', ''];
  writeFileSync(join(repository, 'Packages'), entry.join('\n'), { flag: 'a' });
  useSources(`deb [trusted=yes] copy:${repository} ./`);
}

function useSources(line: string): void {
  writeFileSync(join(dir, 'sources.list'), `${line}\n`);
  const settings = [`Dir::Etc::sourcelist "${join(dir, 'sources.list')}";`, 'Dir::Etc::sourceparts "/dev/null";'];
  writeFileSync(join(dir, 'apt.conf'), `${settings.join('\n')}\n`);
  process.env.APT_CONFIG = join(dir, 'apt.conf');
}

const TOOL = '#!/bin/sh\necho "v=7.1 $0 $* $LD_LIBRARY_PATH"\n';
const publishTool = () => {
  publish('posthorn-tool', { depends: 'posthorn-lib', files: { 'usr/bin/posthorn-tool': TOOL } });
  publish('posthorn-lib', {
    files: { 'usr/lib/deep/er/libdeep.so.0': '', 'usr/lib/libtop.so': '', 'usr/lib/no.txt': '' },
  });
};

const onDebian = canUnpack(process.env.PATH ?? '');
it('downloads programs only where there are apt-get and dpkg-deb', () => {
  expect(onDebian).toBe(
    ['apt-get', 'dpkg-deb'].every((name) => statSync(`/usr/bin/${name}`, { throwIfNoEntry: false })),
  );
});

// On other systems nothing is downloaded, so there is nothing to test.
if (onDebian) {
  describe('a program that is downloaded', () => {
    it('runs with the libraries it needs, is found again without any repository, and leaves nothing else behind', async () => {
      publishTool();
      const paths = await providePrograms([invented()], { say, folder });
      const starter = join(folder, 'posthorn-tool/bin/posthorn-tool');
      expect(paths).toEqual({ 'posthorn-tool': starter });
      expect(said).toEqual([`Downloading the tool into ${folder} (once) ...`]);
      expect(readdirSync(folder)).toEqual(['posthorn-tool']);
      expect(readdirSync(join(folder, 'posthorn-tool')).sort()).toEqual(['bin', 'root']);
      const root = join(folder, 'posthorn-tool/root');
      const ran = execFileSync(starter, ['a b', 'c'], { encoding: 'utf8', env: { PATH: process.env.PATH } });
      expect(ran).toBe(`v=7.1 ${root}/usr/bin/posthorn-tool a b c ${root}/usr/lib:${root}/usr/lib/deep/er\n`);
      useSources('deb [trusted=yes] copy:/nowhere ./');
      expect(await providePrograms([invented()], { say, folder })).toEqual(paths);
      expect(said).toHaveLength(1);
    });
    it('is downloaded once by several processes at once', async () => {
      publishTool();
      const all = await Promise.all([1, 2, 3].map(() => providePrograms([invented()], { say, folder })));
      expect(new Set(all.map((paths) => paths['posthorn-tool'])).size).toBe(1);
      expect(readdirSync(folder)).toEqual(['posthorn-tool']);
      expect(execFileSync(all[0]!['posthorn-tool']!, { encoding: 'utf8' })).toContain('v=7.1');
    });
    it('is downloaded again after a download that was killed', async () => {
      publishTool();
      const abandoned = join(folder, '.unpacking-abcdef');
      mkdirSync(join(abandoned, 'posthorn-tool/bin'), { recursive: true });
      writeFileSync(join(abandoned, 'posthorn-tool/bin/posthorn-tool'), '', { mode: 0o755 });
      const fresh = join(folder, '.unpacking-fedcba');
      mkdirSync(fresh);
      utimesSync(abandoned, 0, 0);
      await providePrograms([invented()], { say, folder });
      // Another process may be using a folder that is not old.
      expect(readdirSync(folder).sort()).toEqual(['.unpacking-fedcba', 'posthorn-tool']);
    });
    it('counts as missing if it does not run or is too old; the next best package is tried', async () => {
      publish('posthorn-tool', {
        files: { 'usr/bin/posthorn-tool': '#!/bin/sh\necho no such library >&2; exit 127\n' },
      });
      const broken = await failure(providePrograms([invented()], { say, folder }));
      expect(broken.message).toContain('the tool could not be downloaded: no such library');
      expect(readdirSync(folder)).toEqual([]);
      const refuse = () => 'it is version 6';
      publish('posthorn-other', { files: { 'usr/bin/other': TOOL } });
      const other = { package: 'posthorn-other', executable: 'usr/bin/other' };
      const old = await failure(providePrograms([invented({ apt: [other], refuse })], { say, folder }));
      expect(old.message).toContain('of package posthorn-other, it is version 6');
      const paths = await providePrograms([invented({ apt: [...invented().apt, other] })], { say, folder });
      expect(execFileSync(paths['posthorn-tool']!, { encoding: 'utf8' })).toContain('v=7.1');
    });
    it('is reported with the message of apt-get if no repository has it', async () => {
      publishTool();
      useSources('deb [trusted=yes] copy:/nowhere ./');
      const second = invented({ name: 'second', title: 'the second', commands: ['second'] });
      const { message, programs } = await failure(providePrograms([invented(), second], { say, folder }));
      expect(programs.map(({ name }) => name)).toEqual(['posthorn-tool', 'second']);
      expect(message).toContain('the tool could not be downloaded: E: Unable to locate package posthorn-tool');
      expect(message).toContain('the second could not be downloaded');
      expect(message).toMatch(/[WE]: .*\/nowhere/);
    });
    it('leaves nothing behind if the download is aborted', async () => {
      publishTool();
      const stop = new AbortController();
      const work = providePrograms([invented()], { say: () => stop.abort(), folder, signal: stop.signal });
      await expect(work).rejects.toMatchObject({ message: expect.stringContaining('abort') });
      expect(readdirSync(folder)).toEqual([]);
    });
  });
}
