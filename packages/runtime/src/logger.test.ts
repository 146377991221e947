/** Log lines hold no secrets, and wait in bounded memory for their reader. */
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { createLogger } from './index.ts';
import { joinLines } from './logger.ts';

describe('logger', () => {
  it('redacts secrets and leaves out the command of a failed call', () => {
    const logged: string[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const logger = createLogger({ app: 'test', level: 'info', destination });
    const error = Object.assign(new Error('boom'), { command: { args: ['whsec_x'] } });
    logger.info({ headers: { authorization: 'Bearer hunter2' }, secret: 'hunter2', err: error }, 'x');
    expect(logged[0]).toContain('boom');
    expect(logged[0]).not.toMatch(/hunter2|whsec_x/);
  });
  it('says each of several errors', () => {
    const logged: string[] = [];
    const logger = createLogger({
      app: 'test',
      level: 'info',
      destination: { write: (line) => void logged.push(line) },
    });
    logger.warn({ err: new AggregateError([new Error('first'), new TypeError('second')], 'first') }, 'x');
    const errors = [
      { type: 'Error', message: 'first' },
      { type: 'TypeError', message: 'second' },
    ];
    expect(JSON.parse(logged[0]!)).toMatchObject({ err: { type: 'AggregateError', message: 'first', errors } });
  });
  it('drops lines while their reader stands still, and then says how many', async () => {
    const read: string[] = [];
    let readOn: () => void = () => undefined;
    const stream = new Writable({
      decodeStrings: false,
      write(chunk: string, _encoding, done) {
        read.push(chunk);
        readOn = done;
      },
    });
    const { write } = joinLines(stream, 'test');
    const half = 'x'.repeat(512 * 1024);
    for (let i = 0; i < 40; i++) {
      write(half);
      write(half);
      await nextTurn();
    }
    expect(stream.writableLength).toBe(34 * half.length);
    while (stream.writableLength > 0) readOn();
    write('the next line\n');
    await nextTurn();
    const [report = '', next] = (read.at(-1) ?? '').split('\n');
    expect(JSON.parse(report)).toMatchObject({ level: 'warn', app: 'test', lines: 46, msg: 'log.lines_dropped' });
    expect(next).toBe('the next line');
  });
});
