/** Which rows of the live tail are shown, also while it is paused. */
import { describe, expect, it } from '@jest/globals';
import { type Change, changeRows, type LiveAttempt, noRows } from './tail-rows.ts';

const attempt = (id: string): Change => ({ kind: 'attempt', attempt: { id } as LiveAttempt });
const after = (...changes: Change[]) => changes.reduce(changeRows, noRows);
const idsOf = (rows: LiveAttempt[]) => rows.map(({ id }) => id);
const many = Array.from({ length: 250 }, (_, i) => attempt(`${i}`));

describe('the rows of the live tail', () => {
  it('are the newest 200, the newest first', () => {
    const { rows, lastId } = after(...many);
    expect(rows).toHaveLength(200);
    expect(idsOf(rows).slice(0, 2)).toEqual(['249', '248']);
    expect(lastId).toBe('249');
  });
  it('stay while paused; what came meanwhile is counted, and shown afterwards', () => {
    const paused = after(attempt('a'), { kind: 'paused' }, attempt('b'), attempt('c'));
    expect(idsOf(paused.rows)).toEqual(['a']);
    expect([paused.waitingCount, paused.lastId]).toEqual([2, 'c']);
    const resumed = changeRows(paused, { kind: 'resumed' });
    expect(idsOf(resumed.rows)).toEqual(['c', 'b', 'a']);
    expect([resumed.waitingCount, resumed.waiting, resumed.isPaused]).toEqual([0, [], false]);
    const long = after(attempt('a'), { kind: 'paused' }, ...many);
    expect([long.waitingCount, long.waiting.length]).toEqual([250, 200]);
    expect(idsOf(changeRows(long, { kind: 'resumed' }).rows)).not.toContain('a');
  });
  it('say how many are missing, as long as that is known', () => {
    const gap = (dropped: number | null): Change => ({ kind: 'gap', dropped });
    expect(after(gap(2), gap(3)).dropped).toBe(5);
    expect(after(gap(2), gap(null), gap(3)).dropped).toBeNull();
  });
});
