/** The order in which the services of a process start and stop, and what happens when one cannot. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, jest } from '@jest/globals';
import { createLogger } from './logger.ts';
import { type Service, stopServices } from './service.ts';

describe('stopServices', () => {
  /** Services that stop as given, the names of those asked to stop, and what was logged. */
  function stopping(stops: Record<string, () => Promise<void>>) {
    const asked: string[] = [];
    const lines: string[] = [];
    const services = Object.entries(stops).map(
      ([name, stop]): Service => ({
        name,
        start: async () => undefined,
        stop() {
          asked.push(name);
          return stop();
        },
      }),
    );
    const logger = createLogger({
      app: 'test',
      level: 'error',
      destination: { write: (line) => void lines.push(line) },
    });
    return { asked, lines, stop: (graceMs: number) => stopServices(services, graceMs, logger) };
  }
  const stops = async () => undefined;

  it('stops the services in reverse order and resolves with true', async () => {
    const { asked, lines, stop } = stopping({ a: stops, b: stops, c: stops });
    expect(await stop(60_000)).toBe(true);
    expect(asked).toEqual(['c', 'b', 'a']);
    expect(lines).toEqual([]);
  });
  it.each([
    ['throws', 60_000, () => Promise.reject(new Error('broken'))],
    ['does not stop within the grace', 0, () => new Promise<void>(() => undefined)],
  ])('stops the others too, logs an error and resolves with false when one %s', async (_what, graceMs, bad) => {
    const { asked, lines, stop } = stopping({ a: stops, b: bad, c: stops });
    expect(await stop(graceMs)).toBe(false);
    expect(asked).toEqual(['c', 'b', 'a']);
    expect(lines.map((line) => JSON.parse(line).service)).toEqual(['b']);
  });
  it('asks all to stop in one second beyond the grace, even if none does', async () => {
    jest.useFakeTimers();
    const never = () => new Promise<void>(() => undefined);
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const { asked, stop } = stopping(Object.fromEntries(names.map((name) => [name, never])));
    const stopped = stop(0);
    await jest.advanceTimersByTimeAsync(1_010);
    expect(asked).toEqual(names.toReversed());
    expect(await stopped).toBe(false);
    jest.useRealTimers();
  });
});

describe('runApp', () => {
  /**
   * Runs an app of three services as a process that gets SIGTERM when it is ready. `startB` and `stopB` are the code
   * with which the second service starts and stops. The process gets SIGTERM again when it prints `signal`.
   */
  function run(startB: string, stopB = '') {
    const index = JSON.stringify(join(import.meta.dirname, 'index.ts'));
    const core = JSON.stringify(join(import.meta.dirname, '../../core/src/index.ts'));
    const program = `
      import { createLogger, runApp } from ${index};
      import { StartError, StorageUnavailable } from ${core};
      const say = (text) => process.stdout.write(text + '\\n');
      const service = (name, start = () => undefined, stop = () => undefined) => ({
        name,
        async start() { say('start ' + name); await start(); },
        async stop() { say('stop ' + name); await stop(); },
      });
      const keepAlive = setInterval(() => undefined, 1_000);
      await runApp(() => ({
        http: { ...service('http'), describe: () => ({}) },
        services: [service('a'), service('b', () => { ${startB} }, () => { ${stopB} }), service('c')],
        logger: createLogger({ app: 'test', level: 'info' }),
        graceMs: 60_000,
      }));`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const steps: string[] = [];
    const retries: string[] = [];
    const said: unknown[] = [];
    let errors = '';
    child.stderr.on('data', (data) => {
      errors += data;
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === 'signal') child.kill('SIGTERM');
      else if (!line.startsWith('{')) steps.push(line);
      else if (line.includes('service.start_retried')) retries.push(JSON.parse(line).err.message);
      else if (line.includes('library.said')) said.push(JSON.parse(line));
      else if (line.includes('"msg":"ready"')) child.kill('SIGTERM');
    });
    return once(child, 'close').then(([code]) => ({ code, steps, retries, said, errors }));
  }

  it('starts HTTP first and the services in order, and on SIGTERM stops HTTP first and the services in reverse, and exits with 0', async () => {
    expect(await run('')).toEqual({
      code: 0,
      steps: ['start http', 'start a', 'start b', 'start c', 'stop http', 'stop c', 'stop b', 'stop a'],
      retries: [],
      said: [],
      errors: '',
    });
  });
  it('stops what has started and exits with 1 when a service cannot start', async () => {
    expect(await run("throw new StartError('b cannot start');")).toEqual({
      code: 1,
      steps: ['start http', 'start a', 'start b', 'stop http', 'stop b', 'stop a'],
      retries: [],
      said: [],
      errors: 'b cannot start\n',
    });
  });
  it('logs what a library writes to the console like any other line', async () => {
    const { code, said, errors } = await run("console.warn('Skipping %s', 'a check'); console.error('broken');");
    expect([code, errors]).toEqual([0, '']);
    expect(said).toMatchObject([
      { level: 'warn', app: 'test', text: 'Skipping a check' },
      { level: 'error', app: 'test', text: 'broken' },
    ]);
  });
  it('logs only the stack of an error that a library writes there, as its command may hold a body', async () => {
    const { said } = await run(
      "console.error(Object.assign(new Error('refused', { cause: { body: 'hidden' } }), { command: { args: ['hidden'] } }));",
    );
    expect(said).toMatchObject([{ text: expect.stringMatching(/^Error: refused\n +at /) }]);
    expect(JSON.stringify(said)).not.toContain('hidden');
  });
  it('repeats a start that fails because of Redis, and logs that seldom', async () => {
    const startB = `
      performance.now = () => 0;
      globalThis.tries = (globalThis.tries ?? 0) + 1;
      if (globalThis.tries < 4) throw new StorageUnavailable('OOM');`;
    const { code, steps, retries } = await run(startB);
    expect([code, steps.filter((step) => step === 'start b').length, retries]).toEqual([0, 4, ['OOM']]);
  });
  it.each([
    ['ignores a second signal that follows at once, as the one that npm sends', 0, 0, ['stop b', 'stop a']],
    ['exits at once with 1 on a second signal after more than a second', 1_001, 1, ['stop b']],
  ])('%s', async (_what, passedMs, code, steps) => {
    const stopB = `
      performance.now = () => ${passedMs};
      say('signal');
      return new Promise((resolve) => process.once('SIGTERM', resolve));`;
    const ran = await run('performance.now = () => 0;', stopB);
    expect([ran.code, ran.steps.slice(6)]).toEqual([code, steps]);
  });
});
