/** Lines that are written often are those of pino. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createLogger, frequentLine, type LineValue } from './index.ts';

const FIELDS = { a: 'any', 'name"d': 'any', c: 'any' } as const;

function openLogger(level: string) {
  const lines: string[] = [];
  const logger = createLogger({ app: 'test', level, destination: { write: (line) => void lines.push(line) } });
  return { logger, lines, write: frequentLine(logger, 'it "happened"', FIELDS) };
}

const withoutTime = (line: string | undefined) => line?.replace(/"time":"[-\d:.TZ]{24}"/, '"time":""');

describe('frequentLine', () => {
  it("writes pino's line, whatever the values are", () => {
    const { logger, lines, write } = openLogger('info');
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.double(),
      fc.integer(),
      fc.boolean(),
      fc.constantFrom(null, undefined, '\u2028', '\u007f', 'é', '"\\\n'),
    ) as fc.Arbitrary<LineValue>;
    fc.assert(
      fc.property(value, value, value, (a, b, c) => {
        const values = { a, 'name"d': b, c };
        lines.length = 0;
        write(values);
        logger.info(values, 'it "happened"');
        expect(withoutTime(lines[0])).toBe(withoutTime(lines[1]));
        expect(JSON.parse(String(lines[0]))).toMatchObject({ app: 'test', level: 'info', msg: 'it "happened"' });
      }),
    );
  });

  it('looks for nothing to escape in a plain field', () => {
    const { logger, lines } = openLogger('info');
    const write = frequentLine(logger, 'x', { id: 'plain', text: 'any' });
    write({ id: 'evt_1', text: '"' });
    expect(JSON.parse(String(lines[0]))).toMatchObject({ id: 'evt_1', text: '"' });
    write({ id: '"', text: '"' });
    expect(() => JSON.parse(String(lines[1]))).toThrow(SyntaxError);
  });

  it('writes nothing where the level of the log is higher', () => {
    const { logger, lines, write } = openLogger('warn');
    write({ a: 1, 'name"d': 2, c: 3 });
    expect(lines).toEqual([]);
    logger.level = 'info';
    write({ a: 1, 'name"d': 2, c: 3 });
    expect(lines).toHaveLength(1);
  });

  it('refuses a field that would have to be redacted', () => {
    const { logger } = openLogger('info');
    expect(() => frequentLine(logger, 'x', { a: 'any', secret: 'any' })).toThrow(TypeError);
  });
});
