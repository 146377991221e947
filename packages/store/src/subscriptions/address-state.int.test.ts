/** The script that records an attempt and core's state machine of an address agree, whatever happens in which order. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  type AddressEvent,
  type AddressState,
  AppError,
  type Event,
  eventRef,
  newEventId,
  nextAddressState,
  type Verdict,
} from '@posthorn/core';
import fc from 'fast-check';
import {
  changeSubscription,
  createDeliveries,
  loadSubscriptions,
  newSubscription,
  type Store,
  saveSubscription,
} from '../index.ts';
import { runScript } from '../scripts.ts';
import { recordVerdict } from '../test-attempts.ts';
import { openTestStore } from '../test-store.ts';

const PAUSE_AFTER = 3;
const nowMs = Date.now();
let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore(1));
});
afterAll(() => close());

async function subscribe(): Promise<string> {
  const fields = { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '' } as const;
  const made = newSubscription({ ...fields, sealedSecret: 'sealed' }, nowMs);
  expect(await saveSubscription(store, made)).toBe(true);
  return made.id;
}

async function stateOf(id: string): Promise<AddressState> {
  const [found] = await loadSubscriptions(store, [id]);
  const { status, resuming, statusReason, consecutiveFailures, takesEvents } = found!;
  return { status, resuming, statusReason, consecutiveFailures, takesEvents };
}

/** Makes a delivery to the address. */
async function make(subscriptionId: string) {
  const event: Event = {
    id: newEventId(nowMs),
    type: 'session.approved',
    createdAt: new Date(nowMs).toISOString(),
    environment: 'sandbox',
    dataJson: '{}',
  };
  const stored = { ref: eventRef(event), event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  const [made] = await createDeliveries(store, stored);
  return { id: made!.deliveryId, event: stored.ref, createdAtMs: nowMs };
}

/** Makes a delivery to the address and records its first attempt with this verdict. */
async function deliver(subscriptionId: string, verdict: Verdict) {
  const delivery = await make(subscriptionId);
  const error = verdict.kind === 'succeeded' ? null : 'timeout';
  const attempt = { number: 1, startedAtMs: nowMs, durationMs: 1, statusCode: null, error } as const;
  return await recordVerdict(store, {
    delivery,
    attempt,
    verdict,
    limits: { pauseAfter: PAUSE_AFTER, maxAttempts: 6 },
  });
}

const deliveryEvents = fc.constantFrom(
  ...(['delivery_failed', 'delivery_failed', 'delivery_failed', 'delivery_succeeded', 'retry'] as const),
);
const otherEvents = fc.constantFrom<AddressEvent>(
  { kind: 'acceptable' },
  { kind: 'acceptable' },
  { kind: 'refused', reason: 'private_address' },
  { kind: 'unreachable' },
  { kind: 'url_changed' },
  { kind: 'paused' },
  { kind: 'resumed' },
);

it('attempts and operators lead an address through the states that core computes', async () => {
  let paused = 0;
  const property = fc.asyncProperty(
    fc.array(fc.oneof({ weight: 3, arbitrary: deliveryEvents }, { weight: 2, arbitrary: otherEvents }), {
      minLength: 10,
      maxLength: 30,
    }),
    async (events) => {
      const id = await subscribe();
      for (const event of events) {
        const before = await stateOf(id);
        if (event === 'retry') {
          await deliver(id, { kind: 'retry', nextAttemptAtMs: nowMs + 1 });
          expect(await stateOf(id)).toEqual(before);
        } else if (event === 'delivery_succeeded') {
          await deliver(id, { kind: 'succeeded' });
          expect(await stateOf(id)).toEqual(nextAddressState(before, { kind: event }));
        } else if (event === 'delivery_failed') {
          const recorded = await deliver(id, { kind: 'failed', reason: 'timeout' });
          const expected = nextAddressState(before, { kind: event, pauseAfter: PAUSE_AFTER });
          expect(await stateOf(id)).toEqual(expected);
          const isPausedNow = before.status === 'active' && expected.status === 'paused';
          if (isPausedNow) paused += 1;
          expect(recorded.paused).toBe(isPausedNow);
        } else await changeAndCompare(id, before, event);
      }
    },
  );
  await fc.assert(property, { numRuns: 60, seed: 1 });
  expect(paused).toBeGreaterThan(10);
});

/** What saveSubscription stores is what core computed; what core refuses is not stored. */
async function changeAndCompare(id: string, before: AddressState, event: AddressEvent): Promise<void> {
  let expected = before;
  try {
    expected = nextAddressState(before, event);
    // Nothing of these addresses is held when they are resumed.
    if (!before.resuming) expected = nextAddressState(expected, { kind: 'trial_succeeded' });
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
  }
  await changeSubscription(store, id, (now) => nextAddressState(now, event)).catch((error: unknown) =>
    expect(error).toBeInstanceOf(AppError),
  );
  expect(await stateOf(id)).toEqual(expected);
}

it('a change that others always precede gives up with a conflict and stores nothing', async () => {
  const id = await subscribe();
  const others: Promise<boolean>[] = [];
  const change = changeSubscription(store, id, (now) => {
    // Sent before this call's own save, so Redis sees it first.
    others.push(saveSubscription(store, { ...now, description: `save ${others.length}` }));
    return { ...now, url: 'https://example.org/' };
  });
  await expect(change).rejects.toMatchObject({ code: 'conflict', status: 409 });
  expect(await Promise.all(others)).toEqual(Array.from({ length: 20 }, () => true));
  const [found] = await loadSubscriptions(store, [id]);
  expect(found).toMatchObject({ url: 'https://example.com/', description: 'save 19' });
});

it('a failure that is recorded while the url is changed does not count for the new one', async () => {
  const id = await subscribe();
  await changeSubscription(store, id, (now) => nextAddressState(now, { kind: 'acceptable' }));
  const { id: deliveryId } = await make(id);
  let recording: Promise<unknown> | undefined;
  await changeSubscription(store, id, (now) => {
    expect(now.consecutiveFailures).toBe(0);
    // Sent before this call's own save, so Redis sees it first.
    recording = runScript(store, 'recordFailure', `${store.prefix}:{0}`, {
      id: deliveryId,
      number: 1,
      attempt: '0,1,,0',
      endedAtMs: nowMs,
      nextAttemptAtMs: undefined,
      reason: 'timeout',
      neededUntilMs: nowMs + 60_000,
      pauseAfter: PAUSE_AFTER,
      maxAttempts: undefined,
      retentionMs: store.retentionMs,
      response: undefined,
    });
    return nextAddressState({ ...now, url: 'https://example.org/' }, { kind: 'url_changed' });
  });
  expect(await recording).toMatchObject({ kind: 'recorded' });
  expect(await stateOf(id)).toMatchObject({ status: 'awaiting_validation', consecutiveFailures: 0 });
});
