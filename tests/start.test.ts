/**
 * What users type: long-running npm scripts start and stop, `npm start` works, and what can't work gets a clear
 * message.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, HUNG_MS } from '@posthorn/testing';
import { callApi } from '../scripts/api-client.ts';
import { root } from '../scripts/folder.ts';
import { freePort } from '../scripts/free-port.ts';
import { startApp } from '../scripts/start/app-process.ts';
import { endsWithNpm, npmRun, searchPath } from './npm-run.ts';
import { atEnd, ownDir, ownEnv } from './own.ts';
import { POSTHORN } from './run-posthorn.ts';
import { worldEnv } from './world.ts';

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

describe('SIGTERM to npm alone', () => {
  it('reaches every program, because each script ends in `exec`', () => {
    // npm's shell neither forwards signals nor replaces itself.
    for (const [name, command] of Object.entries(scripts)) {
      if (['postinstall', 'format', 'lockfile'].includes(name)) continue;
      expect([name, command.split('&&').at(-1)?.trim()]).toEqual([
        name,
        expect.stringMatching(/^([A-Z_]+=\S+ )?exec /),
      ]);
    }
  });
  it('ends npm start while it starts', async () => {
    const run = npmRun('start', { POSTHORN_DIR: ownDir() });
    await run.said('Starting Posthorn');
    await endsWithNpm(run, 1);
    expect(await run.ended).toBe(0);
  });
  it.each(['ingest', 'worker', 'console'])('ends npm run start:%s', async (app) => {
    const run = npmRun(`start:${app}`, ownEnv());
    await run.said('"msg":"ready"');
    await endsWithNpm(run, 1);
    expect(await run.ended).toBe(0);
  });
  it('ends npm run posthorn', async () => {
    const silent = createServer();
    const asked = new Promise((resolve) => silent.once('request', resolve));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      silent.close();
      silent.closeAllConnections();
    });
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const run = npmRun('posthorn', { POSTHORN_URL: url, POSTHORN_TOKEN: 'any' }, ['overview']);
    await asked;
    await endsWithNpm(run, 1);
  });
  it('ends npm run bench', async () => {
    const run = npmRun('bench', {}, ['--quick', '--only=memory']);
    // The processes: itself, a Redis, an app.
    await endsWithNpm(run, 3);
  });
  it('ends npm run chaos', async () => {
    const run = npmRun('chaos', {}, ['--minutes=1']);
    // The processes: itself, a Redis, several apps.
    await endsWithNpm(run, 5);
  });
  it('ends npm run jest with what its tests have started', async () => {
    const dir = ownDir();
    const test = `import { it } from '@jest/globals';
      import { mkdirSync } from 'node:fs';
      import { startProcess } from '${root}/tests/processes.ts';
      import { startRedis } from '${root}/scripts/redis/server.ts';
      it('never ends', async () => {
        const env = ${JSON.stringify(worldEnv('hanging', 'redis://127.0.0.1:1'))};
        const redis = await startRedis('${dir}/redis', { say: () => undefined });
        await startProcess('worker', { ...env, LOG_LEVEL: 'info', REDIS_URL: redis.url }).ready;
        mkdirSync('${dir}/hangs');
        await new Promise(() => setInterval(() => undefined, 1_000));
      }, 2_000_000);`;
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
    writeFileSync(join(dir, 'hanging.test.ts'), test);
    cpSync(join(root, 'node_modules/@jest'), join(dir, 'node_modules/@jest'), {
      recursive: true,
      dereference: false,
    });
    const config = {
      rootDir: dir,
      globalSetup: join(root, 'tests/setup/start-redis.ts'),
      extensionsToTreatAsEsm: ['.ts'],
      transform: {
        '\\.ts$': [
          join(root, 'node_modules/@swc/jest'),
          { jsc: { parser: { syntax: 'typescript' }, target: 'es2024' } },
        ],
      },
    };
    const run = npmRun('jest', { POSTHORN_DIR: join(dir, 'data') }, ['--config', JSON.stringify(config)]);
    await eventually(
      () => `the test to hang: ${run.output.join('')}`,
      () =>
        existsSync(join(dir, 'hangs')) || (run.npm.exitCode !== null && Promise.reject(new Error(run.output.join('')))),
      HUNG_MS,
    );
    // The processes: itself, its Redis, the test's Redis and worker.
    await endsWithNpm(run, 4);
  });
  it('ends npm test while it lints', async () => {
    const dir = ownDir();
    for (const name of ['chromium', 'curl']) {
      writeFileSync(join(dir, name), '#!/bin/sh\n');
      chmodSync(join(dir, name), 0o755);
    }
    const run = npmRun('test', { POSTHORN_DIR: join(dir, 'data'), PATH: `${searchPath()}${delimiter}${dir}` });
    // The processes: itself, npm, its shell, a linter.
    await endsWithNpm(run, 4);
  });
});

/** Runs the command line for a folder's `npm start`, with nothing else in the environment. */
function posthorn(dir: string, env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [POSTHORN, 'overview', '--json'], {
    env: { PATH: searchPath(), POSTHORN_DIR: dir, ...env },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

describe('npm start', () => {
  it('uses the given ports and no proxy, refuses a second run, tells the command line where it is, and ends completely', async () => {
    const dir = join(ownDir(), "it's here");
    const port = await freePort();
    // Nothing listens there.
    const proxy = { HTTP_PROXY: 'http://127.0.0.1:1', NODE_USE_ENV_PROXY: '1' };
    const run = npmRun('start', { POSTHORN_DIR: dir, CONSOLE_PORT: String(port), LOG_LEVEL: 'warn', ...proxy });
    await run.said('Ctrl-C stops everything');
    expect(run.output.join('')).toContain('signed and delivered to the sample receiver');
    expect(run.output.join('')).toContain(`POSTHORN_DIR='${dir.replace("'", "'\\''")}' npx posthorn --help`);
    const file = join(dir, 'running.json');
    expect(JSON.parse(readFileSync(file, 'utf8')).urls.console).toBe(`http://127.0.0.1:${port}`);
    for (const name of ['running.json', 'keys.json']) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    const overview = posthorn(dir, proxy);
    expect(overview).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(overview.stdout)).toMatchObject({ subscriptions: { active: 1 } });
    const elsewhere = posthorn(dir, { POSTHORN_URL: 'http://127.0.0.1:1' });
    expect(elsewhere).toMatchObject({ status: 1, stderr: expect.stringContaining('Set POSTHORN_TOKEN') });

    const second = npmRun('start', { POSTHORN_DIR: dir });
    expect(await second.ended).toBe(1);
    expect(second.output.join('')).toContain('already runs from this folder');
    expect(existsSync(file)).toBe(true);

    const copy = readFileSync(file, 'utf8');
    // The processes: itself, Redis, three apps.
    await endsWithNpm(run, 5);
    expect(await run.ended).toBe(0);
    expect(existsSync(file)).toBe(false);
    // A run that was killed leaves its file, which then does not count.
    writeFileSync(file, copy);
    expect(posthorn(dir)).toMatchObject({ status: 1, stderr: expect.stringContaining('Posthorn is not running') });
  });
  it('goes on if the example event does not reach the sample receiver, and says what shows why', async () => {
    const dir = ownDir();
    const first = npmRun('start', { POSTHORN_DIR: dir });
    await first.said('Ctrl-C stops everything');
    const [{ urls }, { operatorToken, sample }] = ['running.json', 'keys.json'].map((name) =>
      JSON.parse(readFileSync(join(dir, name), 'utf8')),
    );
    const url = `${urls.console}/v1/subscriptions/${sample.subscriptionId}`;
    const body = { event_types: ['session.created'] };
    expect((await callApi('PATCH', url, { token: operatorToken, body })).status).toBe(200);
    await endsWithNpm(first, 5);
    const second = npmRun('start', { POSTHORN_DIR: dir });
    await second.said('Ctrl-C stops everything');
    expect(second.output.join('')).toContain(`To see why: npx posthorn why evt_`);
    await endsWithNpm(second, 5);
  });
  it('reports a taken port before it starts anything', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    atEnd(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const dir = ownDir();
    const run = npmRun('start', { POSTHORN_DIR: dir, INGEST_PORT: String(port), WORKER_PORT: 'x' });
    expect(await run.ended).toBe(1);
    const output = run.output.join('');
    expect(output).toContain(`INGEST_PORT: port ${port} is in use`);
    expect(output).toContain('WORKER_PORT: must be a port from 1 to 65535, but is "x"');
    expect(output).not.toMatch(/Starting|\bat .*\.ts/);
    expect(existsSync(join(dir, 'redis'))).toBe(false);
  });
  it('says what it waits for while Redis does not respond', async () => {
    const run = npmRun('start', { POSTHORN_DIR: ownDir(), REDIS_URL: 'redis://127.0.0.1:1' });
    await run.said("Redis at 127.0.0.1:1 can't be used: connect ECONNREFUSED 127.0.0.1:1. Waiting for it.");
    await endsWithNpm(run, 1);
    expect(await run.ended).toBe(0);
  });
  it('reports in one line that a file is where its folder should be', async () => {
    const file = join(ownDir(), 'file');
    writeFileSync(file, '');
    const run = npmRun('start', { POSTHORN_DIR: file });
    expect(await run.ended).toBe(1);
    expect(run.output.join('')).toContain(`Can't write to ${file}: a file is where a folder should be`);
  });
  it('names the log of an app that ends or is not ready in time, and quotes its last lines', async () => {
    const logDir = ownDir();
    const options = { env: { PORT: '0', PUBLISHER_KEYS: '' }, logDir, atEnd, say: () => undefined };
    const log = join(logDir, 'ingest.log');
    await expect(startApp('ingest', { ...options, startLimitMs: 1 })).rejects.toThrow(
      `ingest was not ready after 0.001 s. It printed nothing.\nThe whole log: ${log}`,
    );
    const ended = await startApp('ingest', options).then(String, String);
    expect(ended).toContain('ingest ended (code 1). Its last output:\n');
    expect(ended).toContain('PUBLISHER_KEYS');
    expect(ended).toContain(log);
  });
  it('goes on if the log of an app can no longer be written, and says so', async () => {
    const logDir = ownDir();
    symlinkSync('/dev/full', join(logDir, 'ingest.log'));
    const said: string[] = [];
    const env = ownEnv({ PORT: '0' });
    const { url } = await startApp('ingest', { env, logDir, atEnd, say: (line) => said.push(line) });
    await eventually('the end of the log', () => said.length > 0);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(said).toEqual(['The log of ingest has ended: ENOSPC: no space left on device, write']);
  });
});
