/** What keeps all from being well, at and beyond each bound. */
import { describe, expect, it } from '@jest/globals';
import { findNotWell } from './not-well.ts';

const worker = { host: 'a', pid: 7, outageSinceMs: null, clockOffsetMs: null };
const well: Parameters<typeof findNotWell>[0] = {
  refusal: null,
  triage: { problems: { total: 0, items: [] }, incidents: [] },
  workers: [worker],
  isPaused: false,
  hour: { periods: [] },
  pendingMs: 0,
  server: { fullest: null, eviction: undefined },
};
const found = (change: Partial<typeof well>) => findNotWell({ ...well, ...change });
const minutes = (failed: number[]) => ({ periods: failed.map((one) => ({ fromMs: 0, succeeded: 95, failed: one })) });
const uses = (share: number, address?: string) => ({ server: { ...well.server, fullest: { address, share } } });
const offset = (clockOffsetMs: number) => ({ workers: [{ ...worker, clockOffsetMs }] });

describe('all', () => {
  it.each([
    ['nothing is known', {}],
    ['95 % of the attempts succeeded', { hour: minutes([5]) }],
    ['the attempts of 16 minutes ago failed', { hour: minutes([1_000, ...Array.from({ length: 15 }, () => 0)]) }],
    ['a delivery has waited for less than a minute', { pendingMs: 59_999 }],
    ['Redis uses 85 % of its memory', uses(0.85)],
    ['a clock is 5 s slow', offset(-5_000)],
  ])('is well while %s', (_, change) => {
    expect(found(change)).toEqual([]);
  });

  it.each([
    ['attempts', { hour: minutes([6]) }, '6 of 101 attempts failed in the last 15 minutes'],
    [
      'attempts',
      { hour: minutes([1_000, ...Array.from({ length: 14 }, () => 0)]) },
      '1,000 of 2,425 attempts failed in the last 15 minutes',
    ],
    ['pending', { pendingMs: 60_000 }, 'a delivery has waited 60 s for its first attempt'],
    ['memory', uses(0.86), 'Redis uses 86 % of its memory'],
    ['memory', uses(0.86, 'r:6379'), 'the Redis master r:6379 uses 86 % of its memory'],
    ['worker_clock', offset(-5_001), 'the clock of worker a:7 is 5 s slow'],
    ['worker_clock', offset(5_001), 'the clock of worker a:7 is 5 s fast'],
    [
      'worker_outage',
      { workers: [{ ...worker, outageSinceMs: 0 }] },
      'worker a:7 has reached nothing since 1970-01-01T00:00:00.000Z',
    ],
    ['no_worker', { workers: [] }, 'no worker is running'],
    ['queue_paused', { isPaused: true }, "the queue was paused with BullMQ's API"],
    ['eviction', { server: { ...well.server, eviction: 'Redis may evict keys' } }, 'Redis may evict keys'],
    ['writes_refused', { refusal: 'READONLY' }, 'Redis refuses changes: READONLY'],
  ])('is not well: %s', (kind, change, message) => {
    expect(found(change)).toEqual([{ kind, message }]);
  });

  it('says of workers that cannot write a heartbeat that Redis refuses changes, not that none is running', () => {
    expect(found({ refusal: 'OOM', workers: [] })).toEqual([
      { kind: 'writes_refused', message: 'Redis refuses changes: OOM' },
    ]);
  });

  it('is not well while addresses fail, and names incidents after them', () => {
    const problems = { total: 3_000, items: [] };
    const incident = { id: 'i', started_at: '', addresses: 2_999, subscription_ids: [], error_label: null, host: null };
    expect(found({ triage: { problems, incidents: [incident] } })).toEqual([
      { kind: 'addresses', message: '3,000 addresses fail or are paused' },
      { kind: 'incident', message: '2,999 addresses began to fail at once' },
    ]);
  });
});
