/** When held deliveries expire, on a real Redis. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { deliver, loadOne, store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { expireHeld } from './expire-held.ts';

it('ends held deliveries as expired once they are as old as RETENTION, and no younger ones', async () => {
  const { id } = await subscribe({ status: 'paused' });
  const [made] = await deliver([id]);
  const context = { store, clock: { now: () => time.nowMs }, logger: { warn: () => undefined } };
  const duty = expireHeld(context as unknown as DutyContext);
  const after = async (ms: number) => {
    time.nowMs += ms;
    await duty.run(partitionOf(id, store.partitions));
    const { status, failureReason } = await loadOne(made!.deliveryId);
    return [status, failureReason];
  };
  expect(await after(store.retentionMs - 1)).toEqual(['held', null]);
  expect(await after(1)).toEqual(['failed', 'expired']);
});
