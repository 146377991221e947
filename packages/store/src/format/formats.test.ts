/** When the stored format may be raised, and what a release says about data that it can't read. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, MINUTE_MS } from '@posthorn/core';
import { decideRaise, describeMismatch, type FormatRecord, GONE_AFTER_MS, READABLE } from './formats.ts';

const NOW = 1_000_000_000;
const none = { settledSinceMs: undefined, lookedAtMs: undefined, checkedSinceMs: undefined, probedAtMs: undefined };
const recordOf = (change: Partial<FormatRecord> = {}): FormatRecord => ({
  nowMs: NOW,
  format: 2,
  oldestStored: 1,
  raisedBy: undefined,
  registrations: '',
  processes: [],
  hasIngestSign: false,
  ...none,
  ...change,
});
const decide = (change: Partial<FormatRecord>, oldWorkers: string[] = [], windowMs = DAY_MS) =>
  decideRaise(recordOf(change), { newest: 3, windowMs, oldWorkers });
const registered = (newest: number, seenAtMs = NOW) => ({
  app: 'worker',
  version: '0.2.0',
  host: 'a',
  pid: 7,
  oldest: 1,
  newest,
  seenAtMs,
});
/** Somebody has looked all the time, and nothing was in the way for `ms`. */
const settled = (ms: number) => ({ settledSinceMs: NOW - ms, lookedAtMs: NOW - 10_000 });

describe('a raise of the stored format', () => {
  it('is over where the newest one is in force', () => {
    expect(decide({ format: 3 })).toEqual({ kind: 'newest' });
  });
  it('waits for each registered process that does not read the next one, and names it', () => {
    expect(decide({ processes: [registered(2), registered(3)], ...settled(2 * DAY_MS) })).toEqual({
      kind: 'waiting',
      processes: ['worker a:7 (release 0.2.0)'],
    });
  });
  it('waits for a silent process until it is certainly gone', () => {
    const silent = (ms: number) => decide({ processes: [registered(2, NOW - ms)], ...settled(2 * DAY_MS) }).kind;
    expect([silent(GONE_AFTER_MS - 1), silent(GONE_AFTER_MS)]).toEqual(['waiting', 'due']);
  });
  it('waits until nothing has been in the way for the whole window', () => {
    expect(decide({})).toEqual({ kind: 'settling', sinceMs: NOW, raisesAtMs: NOW + DAY_MS });
    expect(decide(settled(DAY_MS - 1))).toEqual({ kind: 'settling', sinceMs: NOW - DAY_MS + 1, raisesAtMs: NOW + 1 });
    expect(decide(settled(DAY_MS))).toEqual({ kind: 'due' });
  });
  it('waits for a minute even without a window, so that processes that start have said so', () => {
    expect(decide(settled(MINUTE_MS - 1), [], 0).kind).toBe('settling');
    expect(decide(settled(MINUTE_MS), [], 0).kind).toBe('due');
  });
  it('begins the window again where nobody has looked for a minute', () => {
    const seen = (ms: number) => decide({ settledSinceMs: NOW - DAY_MS, lookedAtMs: NOW - ms }).kind;
    expect([seen(MINUTE_MS - 1), seen(MINUTE_MS)]).toEqual(['due', 'settling']);
  });
});

describe('a raise from the format of 0.1.0, whose processes do not register', () => {
  const first = (change: Partial<FormatRecord>, oldWorkers?: string[]) => decide({ format: 1, ...change }, oldWorkers);
  const checked = (ms: number) => ({ ...settled(2 * DAY_MS), checkedSinceMs: NOW - ms });
  it('waits for its workers, by their heartbeats', () => {
    expect(first(checked(DAY_MS), ['b:9'])).toEqual({ kind: 'waiting', processes: ['worker b:9 (release 0.1.0)'] });
  });
  it('waits for its processes that answer readiness probes', () => {
    const probed = (ms: number) => first({ ...checked(DAY_MS), probedAtMs: NOW - ms }).kind;
    expect([probed(2 * MINUTE_MS - 1), probed(2 * MINUTE_MS)]).toEqual(['waiting', 'due']);
  });
  it('looks for its ingest processes after the window, for longer than they are silent', () => {
    expect(first(settled(DAY_MS - 1))).toEqual({
      kind: 'settling',
      sinceMs: NOW - DAY_MS + 1,
      raisesAtMs: NOW + 1 + 150_000,
    });
    expect(first(settled(DAY_MS))).toEqual({
      kind: 'checking',
      sinceMs: NOW - DAY_MS,
      checkedSinceMs: NOW,
      raisesAtMs: NOW + 150_000,
    });
    expect(first(checked(149_999)).kind).toBe('checking');
    expect(first(checked(150_000)).kind).toBe('due');
    expect(first({ ...checked(150_000), hasIngestSign: true })).toEqual({
      kind: 'waiting',
      processes: ['an ingest process of release 0.1.0'],
    });
    // Before the check, the sign may be of one that is long gone.
    expect(first({ ...settled(DAY_MS - 1), hasIngestSign: true }).kind).toBe('settling');
  });
});

describe('data that a release', () => {
  const own = { prefix: 'posthorn', version: '0.2.0' };
  const mismatch = (format: number, oldestStored: number, oldest: number, raisedBy?: string) =>
    describeMismatch({ format, oldestStored, raisedBy }, { oldest, newest: 2 }, own);
  it('reads is no reason to refuse', () => {
    expect(READABLE.oldest).toBe(1);
    expect([mismatch(1, 1, 1), mismatch(2, 1, 1), mismatch(2, 2, 2)]).toEqual([undefined, undefined, undefined]);
  });
  it('does not know yet is refused, with the release that wrote it', () => {
    expect(mismatch(3, 3, 1, '0.5.0')).toBe(
      'The data under KEY_PREFIX "posthorn" has stored format 3. This is release 0.2.0, which reads formats 1 to 2. ' +
        'Start release 0.5.0 or a later one; a way back to 0.2.0 needs a backup from before the upgrade (docs/upgrades.md).',
    );
  });
  it('no longer reads is refused, also if only some records are so old', () => {
    expect(mismatch(2, 1, 2)).toBe(
      'The data under KEY_PREFIX "posthorn" has records of stored format 1. This is release 0.2.0, which reads format 2 only. ' +
        'First start an earlier release, and wait until it has migrated the data (docs/upgrades.md).',
    );
  });
});
