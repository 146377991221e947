/** When the life of an event ends early, and when it must not. */
import { describe, expect, it } from '@jest/globals';
import {
  DAY_MS,
  deliveryId,
  type EventRef,
  eventIdOf,
  eventRef,
  HOUR_MS,
  partitionOf,
  type Verdict,
} from '@posthorn/core';
import fc from 'fast-check';
import { type SucceededDelivery, shortenEvents, storeEvent } from '../index.ts';
import { deliveryKey, eventKey, eventSucceededKey, prefixOfId } from '../keys.ts';
import { attempt, deliver, event, failure, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION, RETENTION_SUCCEEDED } from '../test-store.ts';
import { prefixOfEvent } from './events.ts';

const eventUntil = (ref: EventRef) => store.redis.pexpiretime(eventKey(prefixOfEvent(store, ref), ref));
const bitsUntil = (ref: EventRef) => store.redis.pexpiretime(eventSucceededKey(prefixOfEvent(store, ref), ref));
/** What PEXPIRETIME returns for a key that does not exist. */
const GONE = -2;

/** Reports deliveries of an event. */
function shorten(of: EventRef, succeeded: SucceededDelivery[], atMs: number): Promise<void> {
  return shortenEvents(store, partitionOf(eventIdOf(of), store.partitions), succeeded, atMs);
}

/** Stores an event that was matched to `count` subscriptions; its deliveries do not matter. */
async function stored(count: number): Promise<EventRef> {
  const sent = event();
  const subscriptionIds = Array.from({ length: count }, (_, i) => `sub_${i}`);
  await storeEvent(store, { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds });
  return eventRef(sent);
}

describe('shortenEvents', () => {
  it('keeps an event for RETENTION_SUCCEEDED after its only delivery succeeded', async () => {
    const [one, other] = [await stored(1), await stored(1)];
    await shorten(one, [{ event: one, count: 1, position: 0 }], time.nowMs + 5);
    expect(await eventUntil(one)).toBe(time.nowMs + 5 + RETENTION_SUCCEEDED);
    expect(await eventUntil(other)).toBe(time.nowMs + RETENTION + DAY_MS);
    expect(await bitsUntil(one)).toBe(GONE);
  });
  it('waits for all deliveries of an event, whoever reports them, and counts a repeated report once', async () => {
    const ref = await stored(3);
    const report = (positions: number[], atMs: number) =>
      shorten(
        ref,
        positions.map((position) => ({ event: ref, count: 3, position })),
        time.nowMs + atMs,
      );
    await report([0, 2], 1);
    await report([0, 2, 2], 2);
    expect(await eventUntil(ref)).toBe(time.nowMs + RETENTION + DAY_MS);
    expect(await bitsUntil(ref)).toBe(time.nowMs + 2 + RETENTION_SUCCEEDED);
    await report([1], 3);
    expect(await eventUntil(ref)).toBe(time.nowMs + 3 + RETENTION_SUCCEEDED);
    expect(await bitsUntil(ref)).toBe(GONE);
    // A late report of what was reported begins again, and changes nothing.
    await report([1], 4);
    expect(await eventUntil(ref)).toBe(time.nowMs + 3 + RETENTION_SUCCEEDED);
  });
  it('needs no key of its own where all deliveries are reported at once, in more than one script too', async () => {
    const ref = await stored(600);
    const all = Array.from({ length: 600 }, (_, position) => ({ event: ref, count: 600, position }));
    await shorten(ref, all, time.nowMs);
    expect([await eventUntil(ref), await bitsUntil(ref)]).toEqual([time.nowMs + RETENTION_SUCCEEDED, GONE]);
  });
  it('prolongs nothing, and makes no event that is gone', async () => {
    const ref = await stored(1);
    await shorten(ref, [{ event: ref, count: 1, position: 0 }], time.nowMs + RETENTION + 2 * DAY_MS);
    expect(await eventUntil(ref)).toBe(time.nowMs + RETENTION + DAY_MS);
    const gone = 'evt_gone/s' as EventRef;
    await shorten(gone, [{ event: gone, count: 1, position: 0 }], time.nowMs);
    expect(await eventUntil(gone)).toBe(GONE);
  });
});

describe('whatever the outcomes of its deliveries, and whenever they are reported', () => {
  const ends = fc.record({
    outcome: fc.constantFrom('succeeded', 'succeeded after a retry', 'failed', 'unfinished'),
    endsAfterMs: fc.constantFrom(0, 1_000, HOUR_MS, 14 * HOUR_MS, 9 * DAY_MS),
    reportAfterMs: fc.nat(10_000),
    isReportedTwice: fc.boolean(),
  });

  it('an event is kept as long as each of its deliveries, and for RETENTION unless all have succeeded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(ends, { minLength: 1, maxLength: 4 }), async (deliveries) => {
        const acceptedAtMs = time.nowMs;
        const sent = event();
        const ref = eventRef(sent);
        const subscriptionIds: string[] = [];
        for (const _ of deliveries) subscriptionIds.push((await subscribe()).id);
        await deliver(subscriptionIds, sent);
        const ids = subscriptionIds.map((id) => deliveryId(ref, id));
        const reports: { atMs: number; position: number }[] = [];
        for (const [position, { outcome, endsAfterMs, reportAfterMs, isReportedTwice }] of deliveries.entries()) {
          if (outcome === 'unfinished') continue;
          time.nowMs = acceptedAtMs + endsAfterMs;
          if (outcome === 'succeeded after a retry') {
            const retry: Verdict = { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 };
            await attempt(ids[position]!, 1, retry);
            time.nowMs += 60_000;
          }
          const verdict: Verdict = outcome === 'failed' ? failure : { kind: 'succeeded' };
          await attempt(ids[position]!, outcome === 'succeeded after a retry' ? 2 : 1, verdict);
          if (outcome === 'failed') continue;
          const atMs = time.nowMs + 10 + reportAfterMs;
          reports.push({ atMs, position }, ...(isReportedTwice ? [{ atMs: atMs + 1, position }] : []));
        }
        reports.sort((a, b) => a.atMs - b.atMs);
        const count = deliveries.length;
        for (const { atMs, position } of reports) await shorten(ref, [{ event: ref, count, position }], atMs);

        const untilMs = await eventUntil(ref);
        const expiries = await Promise.all(
          ids.map((id) => store.redis.pexpiretime(deliveryKey(prefixOfId(store, id), id))),
        );
        expect(Math.max(...expiries)).toBeLessThanOrEqual(untilMs);
        if (deliveries.every(({ outcome }) => outcome.startsWith('succeeded'))) {
          const all = new Set(deliveries.keys());
          const last = reports.find(({ position }) => all.delete(position) && all.size === 0);
          expect(untilMs).toBe(last!.atMs + RETENTION_SUCCEEDED);
        } else {
          expect(untilMs).toBeGreaterThanOrEqual(acceptedAtMs + RETENTION);
        }
        for (const [i, { outcome, endsAfterMs }] of deliveries.entries()) {
          if (outcome === 'failed') expect(expiries[i]).toBe(acceptedAtMs + endsAfterMs + 10 + RETENTION + DAY_MS);
        }
        time.nowMs = acceptedAtMs;
      }),
      { numRuns: 60 },
    );
  });
});
