/** What came back from attempts: what is kept of it, and for how long. */
import { describe, expect, it } from '@jest/globals';
import { type CameBack, DAY_MS, HOUR_MS, partitionOf } from '@posthorn/core';
import { type CreatedDelivery, changeSubscription, endDeliveries, loadResponses, partitionPrefix } from '../index.ts';
import { attempt, begin, deliver, failure, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';

const responded = (body: string): CameBack => ({
  response: { headers: { server: 'sample' }, body, isBodyTruncated: false },
  connection: {
    ip: '192.0.2.1',
    isReused: true,
    dnsMs: null,
    connectMs: 3,
    tlsMs: null,
    firstByteMs: 0,
    errorCode: null,
    certificate: { subject: 'CN=a', issuer: 'CN=b', validToMs: 12 },
  },
});
const unreached: CameBack = {
  response: null,
  connection: {
    ip: null,
    isReused: false,
    dnsMs: 5,
    connectMs: null,
    tlsMs: null,
    firstByteMs: null,
    errorCode: 'ENOTFOUND',
    certificate: null,
  },
};
const retryIn = (ms: number) => ({ kind: 'retry', nextAttemptAtMs: time.nowMs + ms }) as const;
async function oneDelivery() {
  const subscription = await subscribe();
  const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
  const partition = partitionOf(subscription.id, store.partitions);
  return { subscription, deliveryId, partition, key: `${partitionPrefix(store, partition)}:responses:${deliveryId}` };
}

describe('what came back', () => {
  it('is kept of the first and the last failed attempt, and of a success after them for a day', async () => {
    const { deliveryId, key } = await oneDelivery();
    expect(await loadResponses(store, deliveryId)).toEqual(new Map());
    for (const number of [1, 2, 3, 4]) {
      const verdict = retryIn(60_000);
      await attempt(deliveryId, number, verdict, 20, number === 3 ? unreached : responded(`${number}`));
      const expected = new Map([[1, responded('1')]]);
      if (number > 1) expected.set(number, number === 3 ? unreached : responded(`${number}`));
      expect(await loadResponses(store, deliveryId)).toEqual(expected);
      expect(await store.redis.pexpiretime(key)).toBe(verdict.nextAttemptAtMs + RETENTION + DAY_MS);
    }
    const succeeded = { ...unreached, response: null };
    await attempt(deliveryId, 5, { kind: 'succeeded' }, 20, succeeded);
    expect([...(await loadResponses(store, deliveryId)).keys()]).toEqual([1, 4, 5]);
    expect(await store.redis.pexpiretime(key)).toBe(time.nowMs + 10 + DAY_MS);
  });
  it('is not kept of a success at the first attempt', async () => {
    const { deliveryId, key } = await oneDelivery();
    time.nowMs += HOUR_MS;
    await attempt(deliveryId, 1, { kind: 'succeeded' }, 20, responded('ok'));
    expect(await store.redis.exists(key)).toBe(0);
  });
  it('stays as long as a failed delivery', async () => {
    const { deliveryId, key } = await oneDelivery();
    await attempt(deliveryId, 1, failure, 20, responded('no'));
    expect(await store.redis.pexpiretime(key)).toBe(time.nowMs + 10 + RETENTION + DAY_MS);
    const late = await oneDelivery();
    await attempt(late.deliveryId, 1, retryIn(60_000), 20, responded('no'));
    await changeSubscription(store, late.subscription.id, (now) => ({ ...now, status: 'paused' }));
    time.nowMs += RETENTION;
    await begin({ deliveryId: late.deliveryId, generation: 0, subscriptionId: late.subscription.id }, time.nowMs);
    const deliveries = [await loadOne(late.deliveryId)];
    await endDeliveries(store, { partition: late.partition, deliveries, reason: 'expired', nowMs: time.nowMs });
    expect(await store.redis.pexpiretime(late.key)).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it('is not written twice, or after the end', async () => {
    const { deliveryId } = await oneDelivery();
    await attempt(deliveryId, 1, failure, 20, responded('first'));
    await attempt(deliveryId, 1, failure, 20, responded('again'));
    await attempt(deliveryId, 2, failure, 20, responded('later'));
    expect(await loadResponses(store, deliveryId)).toEqual(new Map([[1, responded('first')]]));
  });
  it('leaves nothing where the setting is off', async () => {
    const { deliveryId, key } = await oneDelivery();
    await attempt(deliveryId, 1, retryIn(1), 20);
    await attempt(deliveryId, 2, failure, 20);
    expect(await store.redis.exists(key)).toBe(0);
  });
});
