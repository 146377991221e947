/** Repeated work: the order of its hooks and runs, and what an error does. */
import { describe, expect, it } from '@jest/globals';
import { createLogger } from './logger.ts';
import { createRepeating } from './repeating.ts';

const lines: string[] = [];
const logger = createLogger({ app: 'test', level: 'warn', destination: { write: (line) => void lines.push(line) } });

describe('repeated work', () => {
  it('starts with onStart, goes on after a failed run, and stops with onStop after the run in progress', async () => {
    const calls: string[] = [];
    const thirdBegan = Promise.withResolvers<void>();
    const thirdMayEnd = Promise.withResolvers<void>();
    const service = createRepeating({
      name: 'work',
      everyMs: 1,
      onStart: async () => calls.push('start'),
      async run() {
        calls.push('run');
        if (calls.length === 2) throw new Error('first run');
        if (calls.length < 4) return;
        thirdBegan.resolve();
        await thirdMayEnd.promise;
        calls.push('end');
      },
      onStop: async () => calls.push('stop'),
      logger,
    });
    await service.start();
    await thirdBegan.promise;
    const stopped = service.stop(0);
    thirdMayEnd.resolve();
    await stopped;
    expect(calls).toEqual(['start', 'run', 'run', 'run', 'end', 'stop']);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ work: 'work', msg: 'background_work.failed' }]);
  });

  it('logs what fails in each run once in 10 s', async () => {
    lines.length = 0;
    const enough = Promise.withResolvers<void>();
    let runs = 0;
    const run = async () => {
      runs += 1;
      if (runs === 6) enough.resolve();
      throw new Error(`run ${runs}`);
    };
    // 4 s pass with each run.
    const service = createRepeating({ name: 'work', everyMs: 0, run, logger, now: () => runs * 4_000 });
    await service.start();
    await enough.promise;
    await service.stop(0);
    const logged = lines.map((line) => JSON.parse(line).err.message);
    expect(logged.slice(0, 2)).toEqual(['run 1', 'run 4']);
  });

  it('fails to start, and stops, if onStart fails', async () => {
    const onStart = () => Promise.reject(new Error('no Redis'));
    const service = createRepeating({ name: 'work', everyMs: 0, onStart, run: async () => undefined, logger });
    await expect(service.start()).rejects.toThrow('no Redis');
    await service.stop(0);
  });

  it('repeats the work once, however often it is started', async () => {
    let pauses = 0;
    const everyMs = () => {
      pauses += 1;
      return 1_000_000;
    };
    const service = createRepeating({ name: 'work', everyMs, run: async () => undefined, logger });
    await service.start();
    await service.start();
    await service.stop(0);
    expect(pauses).toBe(1);
  });
});
