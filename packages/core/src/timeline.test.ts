/** What is marked as out of order in a timeline. */
import { describe, expect, it } from '@jest/globals';
import { outOfOrder, type TimelineItem } from './timeline.ts';

const item = (
  id: string,
  createdAtMs: number,
  acceptedAtMs: number,
  more: Partial<TimelineItem> = {},
): TimelineItem => ({
  id,
  sessionId: 's-1',
  environment: 'sandbox',
  createdAtMs,
  acceptedAtMs,
  deliveries: [],
  ...more,
});
const arrival = (id: string, finishedAtMs: number, subscriptionId = 'sub_1') =>
  ({ id, subscriptionId, status: 'succeeded', finishedAtMs }) as const;

describe('outOfOrder', () => {
  it('marks an event that was accepted after a later one of its session, whatever the order of the list', () => {
    const items = [item('b', 2, 10), item('a', 1, 20), item('c', 3, 30)];
    expect([...outOfOrder(items).events]).toEqual(['a']);
    expect([...outOfOrder(items.toReversed()).events]).toEqual(['a']);
  });
  it('marks nothing across sessions or environments, nor among events of the same millisecond', () => {
    expect(outOfOrder([item('a', 1, 20), item('b', 2, 10, { sessionId: 's-2' })]).events.size).toBe(0);
    expect(outOfOrder([item('a', 1, 20), item('b', 2, 10, { environment: 'production' })]).events.size).toBe(0);
    expect(outOfOrder([item('a', 1, 20), item('b', 1, 10)]).events.size).toBe(0);
    expect(outOfOrder([item('a', 1, 10), item('b', 2, 10)]).events.size).toBe(0);
  });
  it('marks a delivery that arrived after that of a later event at the same address only', () => {
    const earlier = item('a', 1, 1, { deliveries: [arrival('a1', 50), arrival('a2', 50, 'sub_2')] });
    const later = item('b', 2, 2, { deliveries: [arrival('b1', 40), arrival('b2', 60, 'sub_2')] });
    expect([...outOfOrder([later, earlier]).deliveries]).toEqual(['a1']);
  });
  it('ignores what has not arrived', () => {
    const failed = { id: 'b1', subscriptionId: 'sub_1', status: 'failed', finishedAtMs: 40 } as const;
    const earlier = item('a', 1, 1, { deliveries: [arrival('a1', 50)] });
    expect(outOfOrder([earlier, item('b', 2, 2, { deliveries: [failed] })]).deliveries.size).toBe(0);
  });
});
