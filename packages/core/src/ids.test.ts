/** Identifiers: their form, what they carry, and that those of stored records never change. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  DELIVERY_ID,
  deliveryId,
  deliveryIdPrefix,
  ENVIRONMENTS,
  ERASURE_ID,
  EVENT_ID,
  type EventRef,
  eventIdIn,
  eventIdOf,
  eventRef,
  isJoint,
  jointRef,
  jointRefOf,
  newErasureId,
  newEventId,
  newReplayBatchId,
  newReplayId,
  newSubscriptionId,
  partitionOf,
  partitionOfId,
  REPLAY_BATCH_ID,
  REPLAY_ID,
  SUBSCRIPTION_ID,
  SUBSCRIPTION_KEY,
  subscriptionIdOfKey,
} from './index.ts';

const sandbox = (id: string) => eventRef({ id, environment: 'sandbox' });

describe('an event id', () => {
  const UUID_V7 = /^evt_([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  it('is a UUIDv7 that begins with the time, so that later ids sort later', () => {
    const nowMs = 1_700_000_000_123;
    for (let i = 0; i < 200; i++) {
      const [, high, low] = UUID_V7.exec(newEventId(nowMs)) ?? [];
      expect(Number.parseInt(`${high}${low}`, 16)).toBe(nowMs);
    }
    expect(newEventId(nowMs) < newEventId(nowMs + 1)).toBe(true);
  });
  it('is random in each bit except time, version and variant', () => {
    let [ones, zeros] = [0n, 0n];
    for (let i = 0; i < 200; i++) {
      const bits = BigInt(`0x${newEventId(0).slice(4).replaceAll('-', '')}`);
      ones |= bits;
      zeros |= ~bits & ((1n << 128n) - 1n);
    }
    const random = (0xfffn << 64n) | ((1n << 62n) - 1n);
    expect(ones & zeros).toBe(random);
  });
  it('gets other last digits that put its event into a partition', () => {
    for (const partitions of [2, 3, 16, 37, 256]) {
      for (let partition = 0; partition < partitions; partition++) {
        const id = newEventId(1_700_000_000_123);
        const moved = eventIdIn(partition, partitions, id);
        expect(partitionOf(moved, partitions)).toBe(partition);
        expect(moved.slice(0, -3)).toBe(id.slice(0, -3));
        expect(moved).toMatch(UUID_V7);
        expect(eventIdIn(partition, partitions, moved)).toBe(moved);
      }
    }
  });
  it('gets the next such digits from its own on, so that they stay random', () => {
    const beginning = 'evt_018bcfe5-687b-7000-8000-000000000';
    const moved = (digits: string) => [0, 1, 2, 3].map((partition) => eventIdIn(partition, 4, beginning + digits));
    const with4 = (...digits: string[]) => digits.map((three) => beginning + three);
    expect(moved('800')).toEqual(with4('804', '800', '805', '801'));
    expect(moved('fff')).toEqual(with4('fff', '000', '005', '001'));
  });
  it('may be chosen by the publisher, with at most 128 characters', () => {
    for (const id of ['a', 'A.b_c:d~e-9', 'x'.repeat(128)]) expect(id).toMatch(EVENT_ID);
    for (const id of ['', 'x'.repeat(129), 'a b', 'a/b', 'é', 'a\n']) expect(id).not.toMatch(EVENT_ID);
  });
});

describe('the reference of an event', () => {
  it('consists of its id and the first letter of its environment, and gives the id back', () => {
    expect(eventRef({ id: 'a', environment: 'production' })).toBe('a/p');
    expect(sandbox('a')).toBe('a/s');
    expect(eventIdOf(sandbox('a'))).toBe('a');
  });
});

describe.each([
  ['subscription', newSubscriptionId, SUBSCRIPTION_ID],
  ['delivery', () => deliveryId(sandbox(newEventId(0)), newSubscriptionId()), DELIVERY_ID],
  ['bulk replay', () => newReplayId(newSubscriptionId()), REPLAY_ID],
  ['batch of bulk replays', () => newReplayBatchId(newSubscriptionId()), REPLAY_BATCH_ID],
  ['erasure', newErasureId, ERASURE_ID],
])('the id of a %s', (_what, make, form) => {
  it('is new each time and has its documented form', () => {
    const id = make();
    expect(id).not.toBe(make());
    expect(id).toMatch(form);
    for (const other of [`x${id}`, `${id}x`, id.slice(0, -1), `${id.slice(0, -1)}!`]) expect(other).not.toMatch(form);
  });
});

describe('the id of a subscription with a key', () => {
  it('follows from the key alone, so that the stored subscription is found again', () => {
    expect(subscriptionIdOfKey('billing')).toBe('sub_ckk3JWUtzHG3b1Kepd6LYg');
  });
  it('is for keys of up to 64 letters, digits, dots, dashes and underscores that begin with a letter or digit', () => {
    for (const key of ['a', '0', 'A.b-c_9', 'x'.repeat(64)]) expect(key).toMatch(SUBSCRIPTION_KEY);
    for (const key of ['', '.a', '-a', '_a', 'a b', 'a/b', ' a', 'a\n', 'x'.repeat(65)])
      expect(key).not.toMatch(SUBSCRIPTION_KEY);
  });
});

describe('the id of a delivery', () => {
  it('follows from event, subscription and replay alone, so that stored deliveries are found again', () => {
    const event = 'evt_018bcfe5-687b-7000-8000-000000000000' as EventRef;
    const subscription = `sub_${'A'.repeat(22)}`;
    expect(deliveryId(event, subscription)).toBe('dlv_ZuVxigBwsSV2Q82QY2hJTPvxeV');
    expect(deliveryId(event, subscription, 'nonce')).toBe('dlv_ZuVxig7YU_apj7v91dVvqZ6dPB');
  });
  it('has 30 characters and begins like all delivery ids of its subscription', () => {
    const subscription = newSubscriptionId();
    const id = deliveryId(sandbox('evt_1'), subscription);
    expect(id).toHaveLength(30);
    expect(id.slice(0, 9)).toBe(deliveryIdPrefix(subscription));
  });
});

describe('a joint reference', () => {
  it('and the id of its delivery contain the id and the environment of an event, whose id is a UUID', () => {
    const uuid = fc.uuid({ version: [4, 7] });
    fc.assert(
      fc.property(uuid, fc.constantFrom(...ENVIRONMENTS), fc.integer({ min: 1, max: 256 }), (text, environment, of) => {
        const event = { id: `evt_${text}`, environment };
        const ref = jointRef(event);
        if (ref === undefined) throw new Error('none');
        expect([isJoint(ref), ref.length, eventIdOf(ref)]).toEqual([true, 22, event.id]);
        expect(isJoint(eventRef(event))).toBe(false);
        expect(jointRef({ ...event, environment: environment === 'sandbox' ? 'production' : 'sandbox' })).not.toBe(ref);
        const subscription = newSubscriptionId();
        const id = deliveryId(ref, subscription);
        expect(id).toMatch(DELIVERY_ID);
        expect([jointRefOf(id), id.startsWith(deliveryIdPrefix(subscription))]).toEqual([ref, true]);
        expect(partitionOfId(id, of)).toBe(partitionOf(event.id, of));
        // A replay's has a record of its own, with its subscription.
        const replay = deliveryId(ref, subscription, 'nonce');
        expect([jointRefOf(replay), partitionOfId(replay, of)]).toEqual([undefined, partitionOf(subscription, of)]);
      }),
    );
  });
  it('is that of earlier versions for events and deliveries of any other id', () => {
    for (const id of [
      'order-1',
      'evt_1',
      'evt_018BCFE5-687b-7000-8000-000000000000',
      'evt_018bcfe5-687b-1000-8000-000000000000',
      'xevt_018bcfe5-687b-7000-8000-000000000000',
      'evt_018bcfe5-687b-7000-8000-000000000000x',
    ])
      expect(jointRef({ id, environment: 'sandbox' })).toBeUndefined();
    const ref = jointRef({ id: 'evt_018bcfe5-687b-7000-8000-000000000000', environment: 'sandbox' })!;
    const id = deliveryId(ref, newSubscriptionId());
    for (const [before, after] of [
      ['x', ''],
      ['', 'x'],
    ] as const) {
      expect(isJoint(`${before}${ref}${after}` as EventRef)).toBe(false);
      expect(jointRefOf(before + id + after)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.string(), (id) => {
        expect(jointRefOf(deliveryId(sandbox(id), newSubscriptionId()))).toBeUndefined();
      }),
    );
  });
});

describe('a partition', () => {
  it('is chosen by the CRC-32 of the id', () => {
    expect(partitionOf('123456789', 2 ** 32)).toBe(0xcbf43926);
    expect(partitionOf('123456789', 7)).toBe(0xcbf43926 % 7);
  });
  it('is the same for a subscription, its deliveries and its bulk replays, whatever the number of partitions', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 256 }), (event, partitions) => {
        const subscription = newSubscriptionId();
        const expected = partitionOf(subscription, partitions);
        expect(partitionOfId(deliveryId(sandbox(event), subscription), partitions)).toBe(expected);
        expect(partitionOfId(newReplayId(subscription), partitions)).toBe(expected);
      }),
    );
  });
});
