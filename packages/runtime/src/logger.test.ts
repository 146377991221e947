/** Log lines hold no secrets. */
import { describe, expect, it } from '@jest/globals';
import { createLogger } from './index.ts';

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
});
