/** An attempt's text: short, and read as it was, also that of an earlier version. */
import { describe, expect, it } from '@jest/globals';
import { ATTEMPT_ERRORS, type Attempt } from '@posthorn/core';
import fc from 'fast-check';
import { decodeAttempt, encodeAttempt } from './delivery-record.ts';

const CREATED_MS = 1_700_000_000_000;
const attempts = fc
  .record({
    number: fc.integer({ min: 1, max: 20 }),
    startedAtMs: fc.nat(2_592_000_000).map((ms) => CREATED_MS + ms),
    durationMs: fc.nat(60_000),
    outcome: fc.oneof(
      fc.record({ statusCode: fc.integer({ min: 200, max: 299 }), error: fc.constant(null) }),
      fc.record({ statusCode: fc.constant(200), error: fc.constant(null) }),
      fc.record({
        statusCode: fc.option(fc.integer({ min: 100, max: 599 })),
        error: fc.constantFrom(...ATTEMPT_ERRORS),
      }),
    ),
  })
  .map(({ outcome, ...times }): Attempt => ({ ...times, ...outcome }));

describe('the text of an attempt', () => {
  it('is read as it was written, in both forms', () => {
    fc.assert(
      fc.property(attempts, (attempt) => {
        const text = encodeAttempt(attempt, CREATED_MS);
        expect(decodeAttempt(attempt.number, text, CREATED_MS)).toEqual(attempt);
        const older = text.split(',').length === 2 ? `${text},200` : text;
        expect(decodeAttempt(attempt.number, older, CREATED_MS)).toEqual(attempt);
      }),
    );
  });
  it('leaves out the code of a usual success', () => {
    const attempt = { number: 1, startedAtMs: CREATED_MS + 40, durationMs: 7, statusCode: 200, error: null };
    expect(encodeAttempt(attempt, CREATED_MS)).toBe('14,7');
    expect(decodeAttempt(1, '14,7,200', CREATED_MS)).toEqual(attempt);
  });
});
