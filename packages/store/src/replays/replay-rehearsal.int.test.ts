/** A rehearsal says what a bulk replay would do, and changes nothing: on a real Redis. */
import { describe, expect, it, jest } from '@jest/globals';
import { eventRef, partitionOf } from '@posthorn/core';
import { eraseDeliveries } from '../erasures/erase-found-event.ts';
import { rehearseReplay, replayDelivery } from '../index.ts';
import { deliver, event, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';
import { anna, deliverTo, end, failed, noFilter, ofAll, replaysIn, run, start } from './test-replays.ts';

const rehearse = (subscriptionId: string, limit = 1_000, filter = noFilter) =>
  rehearseReplay(store, { subscriptionId, ...ofAll, filter }, limit, time.nowMs);
/** Everything that Redis stores, with the time at which each key expires. */
async function everything(): Promise<string[]> {
  const keys = (await store.redis.keys(`${store.prefix}:*`)).sort();
  return await Promise.all(
    keys.map(async (key) => `${key} ${await store.redis.call('PEXPIRETIME', key)} ${await store.redis.dump(key)}`),
  );
}

describe('a rehearsal', () => {
  it('finds what the replay then makes and skips, and changes nothing', async () => {
    const { id } = await subscribe();
    await failed(id);
    // Under way, arrived, and failed again: two failed deliveries of one event, which is sent once.
    for (const verdict of [undefined, { kind: 'succeeded' }, { kind: 'failed', reason: 'status' }] as const) {
      const made = await replayDelivery(store, await loadOne(await failed(id)), time.nowMs, anna, 'nonce');
      if ('refused' in made) throw new Error(made.refused);
      if (verdict) await end(made.deliveryId, verdict);
    }
    time.nowMs += 1;
    const before = await everything();
    const rehearsal = await rehearse(id);
    expect(rehearsal).toEqual({ count: 2, underWay: 3, tooLate: 0, isComplete: true, error: 'timeout' });
    expect(await everything()).toEqual(before);
    expect(await run(await start(id))).toMatchObject({ replayed: 2, skipped: 3 });
    expect(await rehearse(id)).toMatchObject({ count: 0, underWay: 5 });
  });
  it('counts what was erased among what is skipped', async () => {
    const { id } = await subscribe();
    const erased = await loadOne(await failed(id));
    await eraseDeliveries(store, partitionOf(id, store.partitions), [erased], true, time.nowMs);
    expect(await rehearse(id)).toMatchObject({ count: 0, tooLate: 1 });
    expect(await run(await start(id))).toMatchObject({ replayed: 0, skipped: 1 });
  });
  it('finds what failed too long ago, and what has lost its event', async () => {
    const { id } = await subscribe();
    await failed(id);
    time.nowMs += RETENTION + 1;
    const sent = event();
    const [made] = await deliver([id], sent);
    await end(made!.deliveryId);
    const [key] = await store.redis.keys(`${store.prefix}:*:event:${eventRef(sent)}`);
    await store.redis.del(key!);
    expect(await rehearse(id)).toMatchObject({ count: 0, tooLate: 2 });
    expect(await run(await start(id))).toMatchObject({ replayed: 0, skipped: 2 });
  });
  it('looks at no more than the limit, oldest first, and says whether there is more', async () => {
    const { id } = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) {
      ids.push(await failed(id));
      time.nowMs += 1;
    }
    expect(await rehearse(id, 6)).toMatchObject({ count: 6, isComplete: false });
    expect(await rehearse(id, 7)).toMatchObject({ count: 7, isComplete: true });
    const { finishedAtMs: failedToMs } = await loadOne(ids[1]!);
    expect(await rehearse(id, 7, { ...noFilter, failedToMs })).toMatchObject({ count: 2, isComplete: true });
    expect(await replaysIn(id)).toEqual([]);
    await deliverTo(id);
    const read = jest.spyOn(store.redis, 'zrangebyscore');
    expect(await rehearse(id, 10_000)).toMatchObject({ count: 7, isComplete: true });
    expect(read).toHaveBeenCalledTimes(1);
  });
});
