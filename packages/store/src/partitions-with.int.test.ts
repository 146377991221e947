/** The partitions that maintenance visits. */
import { describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { deleteSubscription, newSubscription, partitionsWithWork, saveSubscription, startErasure } from './index.ts';
import { openTestStore } from './test-store.ts';

const nowMs = Date.now();

describe('the partitions in which something waits', () => {
  it('are those with a deleted subscription, and all while an erasure is open', async () => {
    const { store: three, close: closeThree } = await openTestStore(3);
    expect([...(await partitionsWithWork(three))]).toEqual([]);
    const fields = { eventTypes: 'all', environment: 'both', description: '', sealedSecret: '' } as const;
    const deleted = newSubscription({ url: 'https://example.com/', ...fields }, nowMs);
    await saveSubscription(three, deleted);
    await deleteSubscription(three, deleted.id, nowMs, { operator: 'anna' });
    expect([...(await partitionsWithWork(three))]).toEqual([partitionOf(deleted.id, 3)]);
    const erasure = {
      field: 'session_id',
      environment: undefined,
      unsent: 'end',
      valueHmac: '',
      seal: () => '',
      isConfirmed: false,
    } as const;
    await startErasure(three, erasure, nowMs, 'anna');
    expect([...(await partitionsWithWork(three))].sort()).toEqual([0, 1, 2]);
    await closeThree();
  });
});
