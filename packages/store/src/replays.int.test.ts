/** What replays, notices and the audit trail guarantee on a real Redis, with time in the test's hands. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Attempt, eventRef, newEventId, partitionOf, type Verdict } from '@posthorn/core';
import {
  addressesToRelease,
  appendAudit,
  type CreatedDelivery,
  changeSubscription,
  createDeliveries,
  deleteSubscription,
  listAudit,
  listDeliveries,
  listReplays,
  loadDeliveries,
  loadReplays,
  loadSubscriptions,
  newSubscription,
  recordAttempt,
  releaseDeliveries,
  removeNotices,
  replayDelivery,
  runningReplays,
  type Store,
  type StoredSubscription,
  saveSubscription,
  startReplay,
  stepReplay,
  storeEvent,
  waitingNotices,
} from './index.ts';
import { openTestStore, RETENTION } from './test-store.ts';

const anna = { operator: 'anna' };
let store: Store;
let close: () => Promise<void>;
let nowMs: number;

beforeEach(async () => {
  ({ store, close } = await openTestStore(3));
  nowMs = Date.now();
});
afterEach(() => close());

async function subscribe(): Promise<StoredSubscription> {
  const fields = { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '' } as const;
  const fresh = newSubscription({ ...fields, sealedSecret: 'sealed' }, nowMs);
  await saveSubscription(store, { ...fresh, status: 'active', takesEvents: true });
  return (await loadSubscriptions(store, [fresh.id]))[0]!;
}
async function deliver(subscriptionId: string): Promise<string> {
  const createdAt = new Date(nowMs).toISOString();
  const event = {
    id: newEventId(nowMs),
    type: 'session.created',
    createdAt,
    environment: 'sandbox',
    dataJson: '{}',
  } as const;
  const stored = { ref: eventRef(event), event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  await storeEvent(store, stored);
  const [made] = (await createDeliveries(store, stored)) as [CreatedDelivery];
  return made.deliveryId;
}
const one = async (id: string) => (await loadDeliveries(store, [id]))[0]!;
async function end(id: string, verdict: Verdict = { kind: 'failed', reason: 'timeout' }): Promise<void> {
  const ok = verdict.kind === 'succeeded';
  const { attemptCount } = await one(id);
  const made: Attempt = {
    number: attemptCount + 1,
    startedAtMs: nowMs,
    durationMs: 0,
    statusCode: ok ? 200 : null,
    error: ok ? null : 'timeout',
  };
  await recordAttempt(store, await one(id), made, verdict, { pauseAfter: 1_000, maxAttempts: 6 });
}
async function failed(subscriptionId: string): Promise<string> {
  const id = await deliver(subscriptionId);
  await end(id);
  return id;
}
const ofAll = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
async function start(subscriptionId: string, range = ofAll): Promise<string> {
  const replay = await startReplay(store, { subscriptionId, ...range }, nowMs, anna);
  if (typeof replay === 'string') throw new Error(replay);
  return replay.id;
}
async function run(replayId: string) {
  while (await stepReplay(store, replayId, nowMs));
  return (await loadReplays(store, [replayId]))[0]!;
}
const replaysIn = async (subscriptionId: string) =>
  (await listDeliveries(store, { subscriptionId }, 250)).items.filter(({ replayOf }) => replayOf !== null);

describe('replay of one', () => {
  it('is a new delivery of the same event with no attempt yet, and says what it replays', async () => {
    const { id } = await subscribe();
    const source = await one(await failed(id));
    const made = await replayDelivery(store, source, 'nonce', nowMs, anna);
    if ('refused' in made) throw new Error(made.refused);
    expect(made.deliveryId).not.toBe(source.id);
    expect(await one(made.deliveryId)).toMatchObject({
      eventId: source.eventId,
      status: 'pending',
      attemptCount: 0,
      replayOf: source.id,
      createdAtMs: nowMs,
    });
    const ofEvent = await listDeliveries(store, { eventId: source.eventId }, 10);
    expect(ofEvent.items.map((delivery) => delivery.id).sort()).toEqual([source.id, made.deliveryId].sort());
  });
  it('is possible for 30 days after the failure to the millisecond, and not after', async () => {
    const { id } = await subscribe();
    const source = await one(await failed(id));
    nowMs += RETENTION + 1;
    expect(await replayDelivery(store, source, 'a', nowMs, anna)).toEqual({ refused: 'too_late' });
    nowMs -= 1;
    expect(await replayDelivery(store, source, 'a', nowMs, anna)).toMatchObject({ state: 'pending' });
  });
  it('is refused unless the delivery failed and its address is active; then nothing is stored', async () => {
    const { id } = await subscribe();
    const pending = await one(await deliver(id));
    expect(await replayDelivery(store, pending, 'a', nowMs, anna)).toEqual({ refused: 'not_failed' });
    const source = await one(await failed(id));
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    expect(await replayDelivery(store, source, 'a', nowMs, anna)).toEqual({ refused: 'not_active' });
    await deleteSubscription(store, id, nowMs, anna);
    expect(await replayDelivery(store, source, 'a', nowMs, anna)).toEqual({ refused: 'not_active' });
    expect(await replaysIn(id)).toEqual([]);
  });
});

describe('bulk replay', () => {
  it('replays every failed delivery of the address in the time, once, oldest first, and no other', async () => {
    const [wanted, other] = [await subscribe(), await subscribe()];
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push(await failed(wanted.id));
      await failed(other.id);
      nowMs += 1_000;
    }
    await end(await deliver(wanted.id), { kind: 'succeeded' });
    const fromMs = (await one(ids[1]!)).createdAtMs;
    const toMs = (await one(ids[3]!)).createdAtMs;
    const replayId = await start(wanted.id, { fromMs, toMs });
    expect((await loadReplays(store, [replayId]))[0]).toMatchObject({ status: 'running', total: 3, replayed: 0 });
    expect(await run(replayId)).toMatchObject({ status: 'done', total: 3, replayed: 3, skipped: 0, operator: 'anna' });
    expect((await replaysIn(wanted.id)).map(({ replayOf }) => replayOf).sort()).toEqual(ids.slice(1, 4).sort());
    expect(await replaysIn(other.id)).toEqual([]);
    expect(await runningReplays(store, partitionOf(wanted.id, 3))).toEqual([]);
  });
  it('puts what it makes into the parked lane, where it waits for places at its address alone', async () => {
    const { id } = await subscribe();
    await failed(id);
    await run(await start(id));
    const partition = partitionOf(id, 3);
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([id]);
    const [released] = await releaseDeliveries(store, 'parked', id, 10, nowMs);
    expect(await one(released!.deliveryId)).toMatchObject({ status: 'pending', generation: 1 });
  });
  it('a step that is repeated, or done by two at once, counts once', async () => {
    const { id } = await subscribe();
    // All in one millisecond, and more than one step.
    for (let i = 0; i < 230; i++) await failed(id);
    const replayId = await start(id);
    for (let more = true; more; ) {
      const answers = await Promise.all(Array.from({ length: 4 }, () => stepReplay(store, replayId, nowMs)));
      more = answers.some(Boolean);
    }
    expect((await loadReplays(store, [replayId]))[0]).toMatchObject({
      status: 'done',
      total: 230,
      replayed: 230,
      skipped: 0,
    });
    const replays = await replaysIn(id);
    expect(new Set(replays.map(({ replayOf }) => replayOf)).size).toBe(230);
  });
  it('skips a delivery whose replay is on its way or has succeeded, and replays it again where that failed', async () => {
    const { id } = await subscribe();
    const [onItsWay, succeeded, failedAgain] = [await failed(id), await failed(id), await failed(id)];
    for (const [source, verdict] of [
      [onItsWay, undefined],
      [succeeded, { kind: 'succeeded' }],
      [failedAgain, { kind: 'failed', reason: 'status' }],
    ] as const) {
      const made = await replayDelivery(store, await one(source), source, nowMs, anna);
      if ('refused' in made) throw new Error(made.refused);
      if (verdict) await end(made.deliveryId, verdict);
    }
    nowMs += 1;
    // The delivery that failed again and its failed replay are both failed deliveries of one event: it goes out once.
    expect(await run(await start(id))).toMatchObject({ total: 4, replayed: 1, skipped: 3 });
    expect(await run(await start(id))).toMatchObject({ total: 4, replayed: 0, skipped: 4 });
  });
  it('skips what failed too long ago, and what is not kept any more is not even counted', async () => {
    const { id } = await subscribe();
    const [old, gone] = [await failed(id), await failed(id)];
    nowMs += RETENTION + 1;
    const fresh = await failed(id);
    const key = `${store.prefix}:{${partitionOf(id, 3)}}:delivery:${gone}`;
    await store.redis.del(key);
    expect(await run(await start(id))).toMatchObject({ total: 2, replayed: 1, skipped: 1 });
    expect((await replaysIn(id)).map(({ replayOf }) => replayOf)).toEqual([fresh]);
    expect((await one(old)).status).toBe('failed');
  });
  it('holds what it makes while the address is paused, and ends as failed when the subscription is deleted', async () => {
    const { id } = await subscribe();
    await failed(id);
    const first = await start(id);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    expect(await run(first)).toMatchObject({ status: 'done', replayed: 1 });
    expect((await replaysIn(id))[0]).toMatchObject({ status: 'held' });
    expect(await startReplay(store, { subscriptionId: id, ...ofAll }, nowMs, anna)).toBe('not_active');
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active' }));
    const second = await start(id);
    await deleteSubscription(store, id, nowMs, anna);
    expect(await run(second)).toMatchObject({ status: 'failed', replayed: 0 });
    expect(await startReplay(store, { subscriptionId: id, ...ofAll }, nowMs, anna)).toBe('no_subscription');
    const listed = (await listReplays(store, { subscriptionId: id }, 10)).items.map((replay) => replay.id);
    expect(listed.sort()).toEqual([first, second].sort());
  });
});

describe('notices', () => {
  it('wait for the notifier from the change on that they tell of, until they are given', async () => {
    const subscription = await subscribe();
    const { id } = subscription;
    const partition = partitionOf(id, 3);
    const deliveryId = await failed(id);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused', statusReason: 'operator' }));
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active', statusReason: null }));
    const replayId = await start(id);
    await run(replayId);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'refused', statusReason: 'redirect' }));
    const notices = await waitingNotices(store, partition, 10, {});
    expect(notices).toMatchObject([
      { type: 'delivery.failed', subscriptionId: id, deliveryId, reason: 'timeout', atMs: nowMs },
      { type: 'subscription.paused', subscriptionId: id, deliveryId: null, reason: 'operator' },
      { type: 'replay.done', subscriptionId: id, replayId, reason: null },
      { type: 'subscription.refused', subscriptionId: id, reason: 'redirect' },
    ]);
    expect(new Set(notices.map((notice) => notice.id)).size).toBe(4);
    expect(await waitingNotices(store, partition, 10, { after: notices[2]!.entryId })).toHaveLength(1);
    await removeNotices(
      store,
      partition,
      notices.slice(0, 3).map(({ entryId }) => entryId),
    );
    expect(await waitingNotices(store, partition, 10, {})).toMatchObject([{ type: 'subscription.refused' }]);
  });
  it('the pause after consecutive failures gives one, and goes into the audit trail as nobody’s doing', async () => {
    const { id } = await subscribe();
    for (let i = 0; i < 3; i++) {
      const delivery = await one(await deliver(id));
      const made: Attempt = { number: 1, startedAtMs: nowMs, durationMs: 0, statusCode: 500, error: 'status' };
      const verdict = { kind: 'failed', reason: 'status' } as const;
      await recordAttempt(store, delivery, made, verdict, { pauseAfter: 2, maxAttempts: 1 });
    }
    const notices = await waitingNotices(store, partitionOf(id, 3), 10, {});
    expect(notices.filter(({ type }) => type === 'subscription.paused')).toMatchObject([
      { reason: 'consecutive_failures' },
    ]);
    const { items } = await listAudit(store, { subscriptionId: id }, 10, undefined, nowMs);
    expect(items).toMatchObject([
      { action: 'subscription.paused', operator: null, detail: { reason: 'consecutive_failures' } },
    ]);
  });
});

describe('audit trail', () => {
  it('is one list over all partitions, newest first, page by page, filtered, as long as the retention', async () => {
    for (let i = 0; i < 25; i++) {
      const { id } = await subscribe();
      const audit = { operator: i % 2 === 0 ? 'anna' : 'bert', action: 'subscription.updated' } as const;
      await changeSubscription(
        store,
        id,
        (now) => ({ ...now, description: `${i}`, updatedAtMs: nowMs }),
        () => ({
          ...audit,
          detail: { i },
        }),
      );
      // Some share a millisecond.
      if (i % 3 === 0) nowMs += 1;
    }
    await appendAudit(store, { operator: 'anna', action: 'session.started' }, nowMs);
    const seen: unknown[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await listAudit(store, {}, 7, cursor, nowMs);
      seen.push(...page.items);
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toHaveLength(26);
    expect(new Set(seen.map((entry) => (entry as { id: string }).id)).size).toBe(26);
    const times = seen.map((entry) => (entry as { atMs: number }).atMs);
    expect(times).toEqual([...times].sort((a, b) => b - a));
    const filtered = async (filter: object) => (await listAudit(store, filter, 50, undefined, nowMs)).items.length;
    expect(await filtered({ operator: 'bert' })).toBe(12);
    expect(await filtered({ action: 'session.started' })).toBe(1);
    expect(await filtered({ fromMs: nowMs, toMs: nowMs })).toBe(1);
    nowMs += RETENTION + 1;
    expect(await filtered({})).toBe(0);
  });
});
