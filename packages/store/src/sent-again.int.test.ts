/** Scripts whose reply was lost, so that they were sent again: each does once what it was asked for, and says so. */
import { describe, expect, it } from '@jest/globals';
import {
  addOutageNotice,
  appendAudit,
  cancelErasure,
  cancelReplay,
  changeSubscription,
  clearDeletedSubscription,
  confirmErasure,
  continueReplay,
  deleteSubscription,
  deletionOf,
  listAudit,
  loadErasures,
  loadSubscriptions,
  replayDelivery,
  settleErasure,
  startErasure,
  tryNow,
  waitingNotices,
} from './index.ts';
import { anna, failed, replaysIn, run, start } from './replays/test-replays.ts';
import { attempt, deliver, failure, loadOne, store, subscribe, time } from './test-deliveries.ts';
import { sendTwice } from './test-send-twice.ts';

describe('a change of a subscription that is sent again', () => {
  it('keeps the secret that a rotation replaces', async () => {
    const { id } = await subscribe({ sealedSecret: 'first' });
    sendTwice(store, 'saveSubscription');
    const rotated = await changeSubscription(store, id, (now) => ({
      ...now,
      sealedSecret: 'second',
      previousSealedSecret: now.sealedSecret,
    }));
    expect(rotated).toMatchObject({ sealedSecret: 'second', previousSealedSecret: 'first' });
  });
  it('is made once, also if a worker has changed the subscription in between', async () => {
    const { id } = await subscribe();
    let changes = 0;
    const key = (await store.redis.keys(`${store.prefix}:*:subscription:${id}`))[0]!;
    sendTwice(store, 'saveSubscription', async () => void (await store.redis.hincrby(key, 'revision', 1)));
    await changeSubscription(store, id, (now) => ({ ...now, description: `${++changes}` }));
    expect(changes).toBe(1);
  });
  it('is refused if another one has replaced it in between, and made again', async () => {
    const { id } = await subscribe();
    sendTwice(store, 'saveSubscription', async () => {
      await changeSubscription(store, id, (now) => ({ ...now, description: 'another' }));
    });
    await changeSubscription(store, id, (now) => ({ ...now, url: 'https://new.example/' }));
    expect((await loadSubscriptions(store, [id]))[0]).toMatchObject({
      description: 'another',
      url: 'https://new.example/',
    });
  });
});

it('a new subscription whose script is sent again is saved', async () => {
  sendTwice(store, 'saveSubscription');
  // Fails if it is not said to be saved.
  await subscribe();
});

describe('a deletion that is sent again', () => {
  it('has deleted the subscription', async () => {
    const { id } = await subscribe();
    sendTwice(store, 'deleteSubscription');
    expect(await deleteSubscription(store, id, time.nowMs, { operator: anna })).toBe(true);
    expect(await deleteSubscription(store, id, time.nowMs, { operator: anna })).toBe(false);
  });
  it('leaves the one that was created again under its key in between', async () => {
    const { id } = await subscribe({ key: 'key' });
    sendTwice(store, 'deleteSubscription', async () => {
      await clearDeletedSubscription(store, id, await deletionOf(store, id));
      time.nowMs += 1;
      await subscribe({ id, key: 'key', createdAtMs: time.nowMs });
    });
    expect(await deleteSubscription(store, id, time.nowMs, { operator: anna })).toBe(true);
    expect(await loadSubscriptions(store, [id])).toMatchObject([{ id, createdAtMs: time.nowMs }]);
    expect((await listAudit(store, { target: id }, { limit: 9 }, time.nowMs)).items).toHaveLength(1);
  });
});

describe('an attempt whose record is sent again', () => {
  const made = async (subscriptionId: string) => (await deliver([subscriptionId]))[0]!.deliveryId;
  const retry = { kind: 'retry', nextAttemptAtMs: Date.now() + 60_000 } as const;

  it('is recorded once, and said to be recorded: it is still to be logged and counted', async () => {
    const { id } = await subscribe();
    const delivery = await made(id);
    sendTwice(store, 'recordFailure');
    expect(await attempt(delivery, 1, retry)).toMatchObject({ kind: 'recorded', paused: false });
    sendTwice(store, 'recordSuccesses');
    expect(await attempt(delivery, 2, { kind: 'succeeded' })).toMatchObject({ kind: 'recorded' });
    expect(await loadOne(delivery)).toMatchObject({ status: 'succeeded', attemptCount: 2 });
  });
  it('has paused the address, if it did so the first time', async () => {
    const { id } = await subscribe();
    for (const paused of [false, true]) {
      const delivery = await made(id);
      sendTwice(store, 'recordFailure');
      expect(await attempt(delivery, 1, failure, 2)).toMatchObject({ kind: 'recorded', paused });
      expect((await loadSubscriptions(store, [id]))[0]).toMatchObject({ consecutiveFailures: paused ? 2 : 1 });
    }
  });
  it('has not paused the address, if another one did so in the same millisecond', async () => {
    const { id } = await subscribe();
    const [first, last] = [await made(id), await made(id)];
    const record = (delivery: string) => attempt(delivery, 1, failure, 2);
    expect([await record(first), await record(last), await record(first), await record(last)]).toMatchObject([
      { paused: false },
      { paused: true },
      { paused: false },
      { paused: true },
    ]);
  });
  it('is not said to be recorded if another attempt has its number', async () => {
    const { id } = await subscribe();
    const delivery = await made(id);
    await attempt(delivery, 1, retry);
    time.nowMs += 1;
    expect((await attempt(delivery, 1, retry)).kind).toBe('repeated');
    expect((await attempt(delivery, 1, { kind: 'succeeded' })).kind).toBe('repeated');
  });
});

it('a replay that is sent again is one delivery, which keeps its attempt', async () => {
  const { id } = await subscribe();
  const source = await loadOne(await failed(id));
  sendTwice(store, 'replayDelivery', async () => {
    const [made] = await replaysIn(id);
    await attempt(made!.id, 1, { kind: 'succeeded' });
  });
  const made = await replayDelivery(store, source, time.nowMs, anna);
  if ('refused' in made) throw new Error(made.refused);
  expect(await loadOne(made.deliveryId)).toMatchObject({ status: 'succeeded', attemptCount: 1 });
});

describe('a try now that is sent again', () => {
  const auditOf = async (target: string) => (await listAudit(store, { target }, { limit: 9 }, time.nowMs)).items;

  it('is made, and is one entry of the audit trail', async () => {
    const { id } = await subscribe();
    const delivery = (await deliver([id]))[0]!.deliveryId;
    const by = { operator: anna, subscriptionId: id };
    await attempt(delivery, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    sendTwice(store, 'tryNow');
    expect(await tryNow(store, delivery, time.nowMs, by)).toBeUndefined();
    expect(await tryNow(store, delivery, time.nowMs, by)).toBe('already_due');
    expect(await auditOf(delivery)).toHaveLength(1);
  });
  it.each([
    { ...failure, kind: 'retry', nextAttemptAtMs: time.nowMs + 90_000 } as const,
    { kind: 'succeeded' } as const,
  ])('is made, and leaves what its attempt came to: $kind', async (verdict) => {
    const { id } = await subscribe();
    const delivery = (await deliver([id]))[0]!.deliveryId;
    await attempt(delivery, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    sendTwice(store, 'tryNow', async () => void (await attempt(delivery, 2, verdict)));
    expect(await tryNow(store, delivery, time.nowMs)).toBeUndefined();
    const nextAttemptAtMs = verdict.kind === 'retry' ? verdict.nextAttemptAtMs : null;
    expect(await loadOne(delivery)).toMatchObject({ attemptCount: 2, generation: 1, nextAttemptAtMs });
  });
});

it('an entry of the audit trail that is sent again is one, also if the clock of another process is ahead', async () => {
  for (const aheadMs of [0, 60_000]) {
    const operator = `operator ${aheadMs}`;
    await appendAudit(store, { operator: anna, action: 'session.started' }, time.nowMs + aheadMs);
    sendTwice(store, 'appendAudit', async () => {
      await appendAudit(store, { operator: anna, action: 'session.ended' }, time.nowMs + aheadMs);
    });
    await appendAudit(store, { operator, action: 'session.started' }, time.nowMs);
    expect((await listAudit(store, { operator }, { limit: 9 }, time.nowMs)).items).toHaveLength(1);
  }
});

it('a notice of an outage that is sent again is the same notice', async () => {
  const outage = { id: 'o', type: 'outage.started', atMs: time.nowMs, reason: 'dns', worker: 'w', sinceMs: 0 } as const;
  for (let i = 0; i < 2; i++) await addOutageNotice(store, outage);
  await addOutageNotice(store, { ...outage, id: 'p' });
  expect((await waitingNotices(store, 0, 9, {})).map(({ id }) => id)).toEqual(['ntc_0-o', 'ntc_0-o', 'ntc_0-p']);
});

it('an erasure that is sent again after it has ended is not started anew', async () => {
  const request = { field: 'event_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
  let started = '';
  sendTwice(store, 'startErasure', async () => {
    const [erasure] = await loadErasures(store, [started]);
    expect(await settleErasure(store, erasure!, 'done', time.nowMs)).toBe(true);
  });
  const seal = (id: string) => {
    started = id;
    return 'sealed';
  };
  expect(await startErasure(store, { ...request, seal, isConfirmed: true }, time.nowMs, anna)).toBeDefined();
  expect((await loadErasures(store, [started]))[0]).toMatchObject({ status: 'done', sealedValue: undefined });
});

describe('a decision that is sent again is made', () => {
  const begin = async () => {
    const request = { field: 'user_id', environment: undefined, unsent: 'end', valueHmac: 'h' } as const;
    const started = await startErasure(
      store,
      { ...request, seal: () => 'sealed', isConfirmed: false },
      time.nowMs,
      anna,
    );
    return (await loadErasures(store, [started!.id]))[0]!;
  };
  it('to confirm an erasure', async () => {
    const erasure = await begin();
    sendTwice(store, 'advanceErasure');
    expect(await confirmErasure(store, erasure, 'end', time.nowMs, anna)).toBe('advanced');
    expect(await confirmErasure(store, erasure, 'end', time.nowMs, anna)).toBe('running');
  });
  it('to confirm an erasure, also if it has ended in between', async () => {
    const erasure = await begin();
    sendTwice(store, 'advanceErasure', async () => {
      const [confirmed] = await loadErasures(store, [erasure.id]);
      expect(await settleErasure(store, confirmed!, 'done', time.nowMs)).toBe(true);
    });
    expect(await confirmErasure(store, erasure, 'end', time.nowMs, anna)).toBe('advanced');
    expect((await loadErasures(store, [erasure.id]))[0]).toMatchObject({ status: 'done' });
  });
  it('to cancel an erasure', async () => {
    const erasure = await begin();
    sendTwice(store, 'advanceErasure');
    expect(await cancelErasure(store, erasure, time.nowMs)).toBe('advanced');
    expect(await cancelErasure(store, erasure, time.nowMs)).toBe('cancelled');
  });
  it('to continue a bulk replay, and to cancel it', async () => {
    const { id } = await subscribe();
    for (let i = 0; i < 6; i++) await failed(id);
    const replayId = await start(id, { canary: true });
    expect(await run(replayId)).toMatchObject({ status: 'canary' });
    sendTwice(store, 'continueReplay', async () => {
      expect(await continueReplay(store, replayId, time.nowMs, anna)).toBe('running');
      sendTwice(store, 'cancelReplay');
      expect(await cancelReplay(store, replayId, time.nowMs, anna)).toEqual({ kind: 'cancelled' });
    });
    expect(await continueReplay(store, replayId, time.nowMs, anna)).toBe('continued');
    expect(await cancelReplay(store, replayId, time.nowMs, anna)).toEqual({ kind: 'over', status: 'cancelled' });
  });
});
