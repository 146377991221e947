/** Finding and building helm, with commands of our own in the place of helm and Go. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { provideHelm } from './helm.ts';

let dir: string;
const said: string[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-helm-'));
  said.length = 0;
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Puts a command into a folder of its own and returns the folder. */
function command(name: string, script: string): string {
  const folder = join(dir, `with-${name}`);
  mkdirSync(folder);
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}
const folder = () => join(dir, 'programs');
const provide = (...path: string[]) =>
  provideHelm({ say: (line) => void said.push(line), folder: folder(), path: path.join(delimiter) });

describe('helm', () => {
  it('is the one that is installed', async () => {
    const path = command('helm', '');
    expect(await provide(path)).toEqual({ command: join(path, 'helm') });
    expect(said).toEqual([]);
  });
  it('is built once with Go, by several processes too', async () => {
    const go = command('go', 'echo "built $*" > "$GOBIN/helm"');
    const [one, other] = await Promise.all([provide(go), provide(go)]);
    expect(one).toEqual({ command: expect.stringMatching(/programs\/helm-v4\.\d+\.\d+\/helm$/) });
    expect(other).toEqual(one);
    expect(await provide()).toEqual(one);
    expect(readdirSync(folder())).toEqual([expect.stringMatching(/^helm-v/)]);
  });
  it('is not there without Go, or if Go fails, and the reason is returned', async () => {
    expect(await provide()).toEqual({ why: 'helm is not installed, and there is no Go to build it with' });
    const go = command('go', 'echo "no network" >&2; exit 1');
    expect(await provide(go)).toEqual({ why: 'helm could not be built: no network' });
    expect(readdirSync(folder())).toEqual([]);
  });
  it('is not there if its build is ended', async () => {
    const path = command('go', 'exec sleep 1000');
    const signal = AbortSignal.abort();
    const ended = await provideHelm({ say: () => undefined, folder: folder(), path, signal });
    expect(ended).toEqual({ why: expect.stringContaining('helm could not be built') });
    expect(readdirSync(folder())).toEqual([]);
  });
});
