/**
 * Five kinds of tests: `unit` needs nothing, `int` a Redis, `e2e` whole apps, `browser` a chromium as well, `chart`
 * helm.
 */
import type { Config } from 'jest';

const shared: Config = {
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2024' }, module: { type: 'es6' } },
    ],
  },
  testPathIgnorePatterns: ['/node_modules/', '/\\.posthorn/'],
  // What `npm run pack` builds has the names of the packages.
  modulePathIgnorePatterns: ['/packages/[^/]+/dist/'],
};

const withRedis: Config = {
  ...shared,
  globalSetup: './tests/setup/start-redis.ts',
  globalTeardown: './tests/setup/stop-redis.ts',
};

const config: Config = {
  // One more than the two cores that are common: the longest tests wait for failovers, locks and time limits, and need
  // little CPU.
  maxWorkers: 3,
  testSequencer: './tests/setup/slow-kinds-first.ts',
  // With more than this, another process goes on.
  workerIdleMemoryLimit: '1GB',
  // A process that has ended its work frees its memory, which takes over a second on a busy machine. By default jest
  // waits for 500 ms, and then says that tests have left something open.
  workerGracefulExitTimeout: 10_000,
  // A test that takes longer hangs. Nothing else may depend on how fast the machine is (see HUNG_MS in
  // packages/testing).
  testTimeout: 300_000,
  reporters: ['default', '<rootDir>/tests/setup/closing-line.ts'],
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/{apps,packages,scripts}/**/!(*.int).test.ts'] },
    { ...withRedis, displayName: 'int', testMatch: ['<rootDir>/{apps,packages}/**/*.int.test.ts'] },
    {
      ...withRedis,
      globalSetup: './tests/setup/prepare-apps.ts',
      displayName: 'e2e',
      testMatch: ['<rootDir>/tests/{,attacks/}*.test.ts'],
    },
    { ...shared, displayName: 'chart', testMatch: ['<rootDir>/tests/chart/*.test.ts'] },
    {
      ...withRedis,
      globalSetup: './tests/setup/prepare-browser.ts',
      displayName: 'browser',
      testMatch: ['<rootDir>/tests/browser/*.test.ts'],
    },
  ],
};

export default config;
