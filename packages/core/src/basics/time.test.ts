/** Instants and durations: which texts are understood, and as what. */
import { describe, expect, it } from '@jest/globals';
import { problemsOf } from '@posthorn/testing';
import fc from 'fast-check';
import { z } from 'zod';
import { instantMsSchema, isoInstant, parseDurationMs, utcInstant } from '../index.ts';

import { instantSchema } from './time.ts';

const DAY = 86_400_000;

it('an instant as text is that of Date, whichever was asked for before', () => {
  fc.assert(
    fc.property(fc.array(fc.date({ noInvalidDate: true }), { minLength: 1 }), (dates) => {
      for (const date of dates) {
        expect(isoInstant(date.getTime())).toBe(date.toISOString());
        expect(isoInstant(date.getTime())).toBe(date.toISOString());
      }
    }),
  );
});

describe('a duration', () => {
  it.each([
    ['1ms', 1],
    ['250ms', 250],
    ['90s', 90_000],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
    ['1.25s', 1_250],
    ['30d', 30 * DAY],
    [' 8s ', 8_000],
    ['0.5ms', 1],
    ['3650d', 3_650 * DAY],
  ])('reads %j as %i ms', (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });
  it.each([
    '',
    '10',
    's',
    '0s',
    '0.4ms',
    '-1s',
    '1 s',
    'x1s',
    '1sx',
    '1.s',
    '.5s',
    '1w',
    '3651d',
    `${3_650 * DAY + 1}ms`,
  ])('refuses %j', (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  });
});

describe('an instant', () => {
  it.each([
    ['2026-02-28T23:59:59.1239+05:30', '2026-02-28T18:29:59.123Z'],
    ['2026-02-28T23:59:59,5-0030', '2026-03-01T00:29:59.500Z'],
    ['2026-02-28T23:59:59.07Z', '2026-02-28T23:59:59.070Z'],
    ['2026-02-28T23:59Z', '2026-02-28T23:59:00.000Z'],
    ['2024-02-29T00:00:00z', '2024-02-29T00:00:00.000Z'],
    ['2026-01-31t12:00+02', '2026-01-31T10:00:00.000Z'],
    ['2026-12-31T23:59:59+23:59', '2026-12-31T00:00:59.000Z'],
    ['2026-06-30T23:59:60Z', '2026-06-30T23:59:59.000Z'],
    ['20260228T235959Z', '2026-02-28T23:59:59.000Z'],
    ['20260228T235959.5+0100', '2026-02-28T22:59:59.500Z'],
    ['20260228T2359Z', '2026-02-28T23:59:00.000Z'],
    ['0050-01-01T00:00:00Z', '0050-01-01T00:00:00.000Z'],
    ['2026-12-31T24:00:00Z', '2027-01-01T00:00:00.000Z'],
    ['2024-02-28T24:00+02', '2024-02-28T22:00:00.000Z'],
  ])('reads %s as %s in UTC', (given, expected) => {
    expect(utcInstant(given)).toBe(expected);
    expect(instantSchema.parse(given)).toBe(given);
    expect(given).toMatch(new RegExp(z.toJSONSchema(instantSchema).pattern!));
    expect(instantMsSchema.parse(given)).toBe(Date.parse(expected));
  });
  it('is the same in whichever zone it is written', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01'), max: new Date('9998-12-31'), noInvalidDate: true }),
        fc.integer({ min: -(24 * 60 - 1), max: 24 * 60 - 1 }),
        (date, offsetMinutes) => {
          const two = (n: number) => String(n).padStart(2, '0');
          const zone = `${offsetMinutes < 0 ? '-' : '+'}${two(Math.trunc(Math.abs(offsetMinutes) / 60))}:${two(Math.abs(offsetMinutes) % 60)}`;
          const local = new Date(date.getTime() + offsetMinutes * 60_000).toISOString().replace('Z', zone);
          expect(utcInstant(local)).toBe(date.toISOString());
        },
      ),
    );
  });
  it.each([
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01T24:00:01Z',
    '2026-01-01T24:00:00.0001Z',
    '2026-02-30T24:00:00Z',
    '9999-12-31T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+00:60',
    // In UTC they are in the years -1 and 10000.
    '0000-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-01:00',
  ])('refuses %s, which does not exist', (given) => {
    expect(problemsOf(instantSchema, given)).toEqual([': Not a real instant']);
  });
  it.each([
    '',
    'now',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '12026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00+1',
    '2026-01-01T00:00:00+01:0',
    '2026-01-01T00Z',
    '2026-0101T00:00:00Z',
    '2026-01-01T00:0000Z',
  ])('refuses %j, which is not written as an instant', (given) => {
    expect(utcInstant(given)).toBeUndefined();
    expect(problemsOf(instantSchema, given)).toEqual([
      ': Expected an ISO 8601 instant with a zone, such as 2026-01-31T12:00:00Z',
    ]);
  });
});
