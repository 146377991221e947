/** The mutated files, and the tests that must notice the mutations. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { constantMutants } from './constants.ts';
import { luaMutants } from './lua.ts';
import type { Mutant } from './mutant.ts';
import { REPOSITORY } from './tree.ts';

/** TypeScript files whose own unit tests must notice every mutation. */
interface UnitTarget {
  files: string[];
  /** Globs of the tests that Stryker runs. */
  tests: string[];
  /** A pattern of the tests for numbers and lists. */
  constantTests: string;
}

const SENDER = 'packages/sender/src';
const RECEIVER = 'packages/receiver/src';

export const UNIT_TARGETS: Record<string, UnitTarget> = {
  core: inFolder('packages/core/src'),
  signing: inFolder('packages/signing/src'),
  requests: {
    files: sources('packages/operator-api/src/requests'),
    tests: ['packages/operator-api/src/requests.test.ts'],
    constantTests: 'packages/operator-api/src/',
  },
  guard: {
    files: [`${SENDER}/guard.ts`],
    tests: [`${SENDER}/guard.test.ts`],
    // Stryker changes no numbers, so it can leave out the slower test of the ports.
    constantTests: `${SENDER}/(guard|bad-ports)`,
  },
  sender: { ...inFolder(SENDER), files: sources(SENDER).filter((file) => file !== `${SENDER}/guard.ts`) },
  client: inFolder('packages/client/src'),
  // Most tests of its stores need a Redis.
  receiver: { ...inFolder(RECEIVER), files: sources(RECEIVER).filter((file) => file !== `${RECEIVER}/stores.ts`) },
};

const SCRIPTS = 'packages/store/src/lua/**/*.lua';

/** Tests of the scripts: first those of the store, which take seconds; the model test must notice what they miss. */
export const LUA_STAGES = [
  ['--selectProjects', 'int', '--', 'packages/store/src'],
  ['--selectProjects', 'e2e', '--', 'tests/model.test.ts'],
];

export function constantMutantsOf(target: UnitTarget): Mutant[] {
  return target.files.flatMap((file) => constantMutants(file, readSource(file)));
}

export function allLuaMutants(): Mutant[] {
  return globSync(SCRIPTS, { cwd: REPOSITORY })
    .sort()
    .flatMap((file) => luaMutants(file, readSource(file)));
}

function inFolder(folder: string): UnitTarget {
  return { files: sources(folder), tests: [`${folder}/!(*.int).test.ts`], constantTests: `${folder}/` };
}

/** The modules of a folder, without `index.ts`, which only exports. */
function sources(folder: string): string[] {
  return globSync(`${folder}/*.ts`, { cwd: REPOSITORY })
    .filter((file) => !file.endsWith('.test.ts') && !file.endsWith('/index.ts'))
    .sort();
}

function readSource(file: string): string {
  return readFileSync(join(REPOSITORY, file), 'utf8');
}
