/** Slots: what one address gets, what one host gets, and what slow addresses get together. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type FakeClock, fakeClock } from '@posthorn/testing';
import { type Slot, Slots } from './slots.ts';

let clock: FakeClock;
let slots: Slots;
beforeEach(() => {
  clock = fakeClock(1_000_000);
  slots = new Slots({ total: 100, perAddress: 10, perHost: 10, now: clock.now });
});
/**
 * Acquires as many slots for an address as it gets, at most `most`, each at its host and IP; again where those have
 * none.
 */
function acquireAll(
  id: string,
  { most = 1_000, host = `${id}.test`, ip }: { most?: number; host?: string; ip?: string } = {},
) {
  const acquired: Slot[] = [];
  while (acquired.length < most) {
    const slot = slots.acquire(id);
    if (!slot) break;
    if (!slots.enterHost(slot, host) || (ip !== undefined && !slots.enterIp(slot, ip))) {
      slots.release(slot, undefined, 0);
      continue;
    }
    acquired.push(slot);
  }
  return acquired;
}
const countOf = (...args: Parameters<typeof acquireAll>) => acquireAll(...args).length;
const releaseAll = (acquired: Slot[], failed: boolean | undefined = false) => {
  for (const slot of acquired) slots.release(slot, failed, 0);
};
function attempt(id: string, tookMs: number, where: Parameters<typeof acquireAll>[1] = {}): void {
  const acquired = acquireAll(id, { ...where, most: 1 });
  clock.advance(tookMs);
  releaseAll(acquired);
}
/**
 * Acquires slots for addresses that have so many deliveries each. All attempts then end, one after the other, and what
 * each end releases takes slots. Returns how many deliveries are parked when no attempt is in flight any more.
 */
function leftParked(ids: readonly string[], each: number): number {
  const parked = new Map(ids.map((id) => [id, each]));
  const take = (id: string) => {
    const left = parked.get(id) ?? 0;
    const acquired = left > 0 ? acquireAll(id, { most: 1 }) : [];
    parked.set(id, left - acquired.length);
    return acquired;
  };
  const inFlight = ids.flatMap(take);
  for (let slot = inFlight.shift(); slot; slot = inFlight.shift()) {
    clock.advance(5);
    const capacities = slots.release(slot, false, parked.get(slot.address.id) ?? 0);
    inFlight.push(...capacities.flatMap(({ subscriptionId }) => take(subscriptionId)));
  }
  return [...parked.values()].reduce((sum, left) => sum + left);
}
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

describe('slots of one address', () => {
  it('are ADDRESS_CONCURRENCY if it is new or responds quickly', () => {
    const acquired = acquireAll('a');
    expect(acquired).toHaveLength(10);
    clock.advance(20);
    expect(slots.release(acquired[0]!, false, 0)).toEqual([]);
    expect(slots.release(acquired[1]!, false, 3)).toEqual([{ subscriptionId: 'a', deliveries: 2 }]);
    expect(countOf('a')).toBe(2);
  });
  it('are no more while it has some in flight and deliveries to thousands of others come', () => {
    expect(countOf('a', { ip: '192.0.2.1' })).toBe(10);
    for (const id of names('other', 10_000)) attempt(id, 0, { ip: id });
    expect(slots.acquire('a')).toBeUndefined();
    expect(countOf('b', { host: 'a.test' })).toBe(0);
    expect(countOf('c', { ip: '192.0.2.1' })).toBe(0);
  });
  it('are as many if it is slow and no other address is', () => {
    attempt('a', 8_000);
    expect(countOf('a')).toBe(10);
  });
  it('are a fifth while it keeps failing, and all of them again after a success', () => {
    for (let i = 0; i < 6; i++) releaseAll(acquireAll('a', { most: 1 }), true);
    const acquired = acquireAll('a');
    expect(acquired).toHaveLength(10);
    releaseAll(acquired, true);
    const few = acquireAll('a');
    expect(few).toHaveLength(2);
    expect(slots.release(few.pop()!, undefined, 9)).toEqual([{ subscriptionId: 'a', deliveries: 1 }]);
    slots.release(few.pop()!, false, 0);
    expect(countOf('a')).toBe(10);
  });
});

describe('slots of thousands of addresses', () => {
  it('go to the next ones at each end until nothing is parked', () => {
    const ids = names('known', 3_000);
    for (const id of ids) attempt(id, 10);
    expect(leftParked(ids, 2)).toBe(0);
  });
});

describe('an address of which nothing is parked any more', () => {
  it('does not get the turn of one that has parked deliveries', () => {
    const ids = names('known', 103);
    for (const id of ids) attempt(id, 10);
    const [first, second] = ids.flatMap((id) => acquireAll(id, { most: 1 }));
    for (const id of ids.slice(100)) expect(slots.acquire(id)).toBeUndefined();
    expect(slots.release(first!, false, 0)).toEqual([{ subscriptionId: 'known-100', deliveries: 1 }]);
    // Another worker takes that, and this one a job of the last address, which was its only delivery.
    const [last] = acquireAll('known-102', { most: 1 });
    expect(slots.release(last!, false, 0)).toEqual([{ subscriptionId: 'known-101', deliveries: 1 }]);
    expect(slots.release(second!, false, 1)).toEqual([{ subscriptionId: 'known-1', deliveries: 1 }]);
  });
});

describe('slots of slow addresses', () => {
  it('that wait for one more on their host than they may have do not keep others there from their turn', () => {
    const host = 'shared.test';
    attempt('slow', 8_000, { host });
    for (const id of ['busy', 'other']) attempt(id, 200, { host });
    const busy = acquireAll('busy', { most: 2, host });
    const slow = countOf('slow', { host, most: 6 });
    busy.push(...acquireAll('busy', { host, most: 10 - 2 - slow }));
    expect([slow, busy.length]).toEqual([6, 4]);
    expect([slots.acquire('slow'), slots.acquire('other')]).toEqual([undefined, undefined]);
    expect(slots.release(busy[0]!, false, 100)).toContainEqual({ subscriptionId: 'other', deliveries: 1 });
  });
  it('on one host, however many wait there, do not keep the others there from their turn', () => {
    const host = 'shared.test';
    const slow = names('slow', 50);
    for (const id of slow) attempt(id, 8_000, { host });
    for (const id of ['busy', 'other']) attempt(id, 200, { host });
    const [busy] = acquireAll('busy', { most: 1, host });
    const taken = slow.flatMap((id) => acquireAll(id, { most: 1, host }));
    acquireAll('busy', { most: 9 - taken.length, host });
    for (const id of [...slow.slice(taken.length), 'other']) expect(slots.acquire(id)).toBeUndefined();
    expect(slots.release(busy!, false, 0)).toContainEqual({ subscriptionId: 'other', deliveries: 1 });
  });
  it('are not looked for among all who wait at one end, where these wait for a host that is full', () => {
    const costOf = (count: number) => {
      let calls = 0;
      const now = () => clock.now() + 0 * calls++;
      slots = new Slots({ total: 100, perAddress: 10, perHost: 10, now });
      const [tenants, slow] = [names('tenant', count), names('slow', 51)];
      for (const id of [...tenants, ...slow]) slots.presume(id, 'slow');
      const host = 'shared.test';
      for (const id of tenants) slots.release(acquireAll(id, { most: 1, host })[0]!, undefined, 0);
      const inFlight = slow.flatMap((id) => acquireAll(id, { most: 1 }));
      // They wait for any slot of slow addresses.
      for (const id of tenants) slots.acquire(id);
      for (const slot of inFlight.slice(1)) slots.release(slot, undefined, 0);
      const last = tenants.slice(-8).flatMap((id) => acquireAll(id, { most: 1, host }));
      expect(last).toHaveLength(8);
      calls = 0;
      slots.release(inFlight[0]!, undefined, 0);
      return calls;
    };
    expect(costOf(9_000)).toBeLessThan(2 * costOf(1_000));
  });
  it('are half of all slots, shared evenly; the rest is left to addresses that respond quickly', () => {
    const slow = names('slow', 20);
    for (const id of slow) attempt(id, 8_000);
    let taken = 0;
    // Each asks again and again, as its deliveries come.
    for (let round = 0; round < 20; round++) for (const id of slow) taken += countOf(id, { most: 1 });
    expect(taken).toBeLessThanOrEqual(50);
    expect(taken).toBeGreaterThanOrEqual(40);
    expect(names('soon', 5).map((id) => countOf(id))).toEqual([10, 10, 10, 10, 10]);
  });
  it('are at most one each if there are more slow addresses than slots, and pass on to those that wait', () => {
    const slow = names('slow', 60);
    const first = slow.flatMap((id) => acquireAll(id, { most: 1 }));
    clock.advance(8_000);
    releaseAll(first);
    const second = slow.flatMap((id) => acquireAll(id, { most: 1 }));
    expect(second).toHaveLength(50);
    for (const id of slow) expect(countOf(id, { most: 1 })).toBe(0);
    clock.advance(4_000);
    expect(slots.release(second[0]!, false, 0)).toEqual([{ subscriptionId: 'slow-50', deliveries: 1 }]);
    expect(countOf('slow-59', { most: 1 })).toBe(1);
  });
  it('go in turn to all that wait, also to one that has more deliveries once the others had theirs', () => {
    const slow = names('slow', 200);
    for (const id of slow) slots.presume(id, 'slow');
    const inFlight = slow.flatMap((id) => acquireAll(id, { most: 1 }));
    expect(inFlight).toHaveLength(50);
    const turns: string[] = [];
    // Each attempt takes longer than half a second.
    clock.advance(500);
    while (turns.length < 350) {
      clock.advance(11);
      for (const { subscriptionId } of slots.release(inFlight.shift()!, false, 1)) {
        turns.push(subscriptionId);
        inFlight.push(...acquireAll(subscriptionId, { most: 1 }));
      }
    }
    expect(turns.slice(0, 150)).toEqual(slow.slice(50));
    expect(turns.slice(150, 350)).toEqual(slow);
  });
  it('go to those that wait although more jobs of all that have slots were refused before', () => {
    const slow = names('slow', 51);
    for (const id of slow) slots.presume(id, 'slow');
    const inFlight = slow.flatMap((id) => acquireAll(id, { most: 1 })).reverse();
    expect(inFlight).toHaveLength(50);
    for (const id of slow.slice(0, 50)) expect(slots.acquire(id)).toBeUndefined();
    clock.advance(501);
    const [newest, next] = inFlight;
    expect(slots.release(newest!, false, 1)).toEqual([{ subscriptionId: 'slow-50', deliveries: 1 }]);
    expect(countOf('slow-50')).toBe(1);
    expect(slots.release(next!, false, 1)).toEqual([{ subscriptionId: 'slow-49', deliveries: 1 }]);
  });
  it('are given to no more than there are when many attempts end at once, and a moment later also to others', () => {
    const slow = names('slow', 300);
    for (const id of slow) slots.presume(id, 'slow');
    const inFlight = slow.flatMap((id) => acquireAll(id, { most: 1 }));
    // The others were refused so lately that they count in the shares: each may have one slot.
    clock.advance(4_000);
    const released = inFlight.slice(1).flatMap((slot) => slots.release(slot, true, 0));
    expect(released.map(({ subscriptionId }) => subscriptionId)).toEqual(slow.slice(50, 99));
    // Another worker has taken them.
    clock.advance(100);
    expect(slots.release(inFlight[0]!, true, 0)).toHaveLength(5);
  });
  it('go to the next ones at each end until nothing is parked, also once they respond quickly again', () => {
    const slow = names('slow', 300);
    for (const id of slow) slots.presume(id, 'slow');
    expect(leftParked(slow, 4)).toBe(0);
  });
  it('are limited as soon as an attempt in flight is slow, and no longer once the address responds quickly', () => {
    const stalled = acquireAll('a', { most: 3 });
    clock.advance(501);
    const others = names('other', 60).flatMap((id) => acquireAll(id, { most: 1 }));
    clock.advance(501);
    expect(countOf('a')).toBe(0);
    releaseAll([...others, ...stalled]);
    for (let i = 0; i < 20; i++) attempt('a', 5);
    expect(countOf('a')).toBe(10);
  });
});

describe('many fast addresses that begin to hang together', () => {
  it('leave slots to addresses with nothing in flight, and to all others once they are known to be slow', () => {
    const hanging = names('hanging', 12);
    for (const id of [...hanging, ...names('other', 10)]) attempt(id, 10);
    const taken = hanging.flatMap((id) => acquireAll(id));
    expect(taken.length).toBeLessThan(90);
    const others = names('other', 10).flatMap((id) => acquireAll(id, { most: 1 }));
    expect(others).toHaveLength(10);
    clock.advance(10);
    releaseAll(others);
    clock.advance(501);
    expect(countOf('other-0')).toBeGreaterThan(1);
    // They get no more than the share of slow ones, so the others have the rest as they time out.
    clock.advance(7_500);
    releaseAll(taken, true);
    const again = hanging.flatMap((id) => acquireAll(id));
    expect(again.length).toBeLessThanOrEqual(50);
  });
  it('get all slots if there are a hundred of them, but not a second time', () => {
    const hanging = names('hanging', 300);
    for (const id of [...hanging, 'healthy']) attempt(id, 5);
    const acquireOne = (id: string) => acquireAll(id, { most: 1 });
    const first = hanging.flatMap(acquireOne);
    expect(first).toHaveLength(100);
    clock.advance(8_000);
    releaseAll(first, true);
    attempt('healthy', 5);
    expect(hanging.slice(100).flatMap(acquireOne)).toHaveLength(70);
    clock.advance(501);
    expect(hanging.slice(170).flatMap(acquireOne)).toHaveLength(20);
    clock.advance(501);
    expect(hanging.slice(190).flatMap(acquireOne)).toHaveLength(0);
    // Nor do the jobs of the others wait in the process, where they would take the places of all jobs behind them.
    expect(slots.acquireSoon('hanging-299')).toBeUndefined();
    expect(countOf('healthy', { most: 1 })).toBe(1);
  });
});

describe('slots of one host', () => {
  it('are those of a single address, however many addresses it has, until it is known to be fast', () => {
    const taken = names('tenant', 300).flatMap((id) => acquireAll(id, { host: 'shared.test' }));
    expect(taken).toHaveLength(10);
    expect(countOf('other')).toBe(10);
  });
  it('are at most 70 % of all slots if its addresses are fast', () => {
    const tenants = names('tenant', 300);
    for (const id of tenants) attempt(id, 10, { host: 'shared.test' });
    expect(tenants.flatMap((id) => acquireAll(id, { host: 'shared.test' }))).toHaveLength(70);
  });
  it('are kept free for its fast and its new addresses when others of it are slow', () => {
    for (const id of names('slow', 20)) attempt(id, 8_000, { host: 'shared.test' });
    attempt('fast', 10, { host: 'shared.test' });
    const slow = names('slow', 20).flatMap((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    expect(slow.length).toBeLessThan(10);
    expect(countOf('fast', { host: 'shared.test' })).toBe(10);
    expect(countOf('new', { host: 'shared.test', most: 1 })).toBe(1);
  });
  it('go to the address that has waited longest', () => {
    const taken = names('tenant', 12).flatMap((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    expect(taken).toHaveLength(10);
    clock.advance(200);
    expect(slots.release(taken[0]!, false, 0)).toEqual([{ subscriptionId: 'tenant-10', deliveries: 1 }]);
    expect(countOf('tenant-10', { host: 'shared.test', most: 1 })).toBe(1);
    expect(slots.release(taken[1]!, false, 0)).toEqual([{ subscriptionId: 'tenant-11', deliveries: 1 }]);
  });
  it('are free once an attempt has its outcome; what waits is released when that is recorded', () => {
    const taken = names('tenant', 11).flatMap((id) =>
      acquireAll(id, { host: 'shared.test', ip: '192.0.2.1', most: 1 }),
    );
    expect(taken).toHaveLength(10);
    clock.advance(200);
    slots.answered(taken[0]!);
    slots.answered(taken[0]!);
    const [next] = acquireAll('tenant-11', { host: 'shared.test', ip: '192.0.2.1', most: 1 });
    expect(countOf('tenant-12', { host: 'shared.test', most: 1 })).toBe(0);
    slots.answered(next!);
    expect(slots.release(taken[0]!, false, 0)).toEqual([{ subscriptionId: 'tenant-10', deliveries: 1 }]);
  });
  it('go to all others that wait before they come back to an address that gave one up', () => {
    const taken = names('tenant', 12).flatMap((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    clock.advance(200);
    expect(slots.release(taken[0]!, false, 5)).toEqual([{ subscriptionId: 'tenant-10', deliveries: 1 }]);
    acquireAll('tenant-10', { host: 'shared.test', most: 1 });
    expect(slots.release(taken[1]!, false, 0)).toEqual([{ subscriptionId: 'tenant-11', deliveries: 1 }]);
    acquireAll('tenant-11', { host: 'shared.test', most: 1 });
    expect(slots.release(taken[2]!, false, 0)).toEqual([{ subscriptionId: 'tenant-0', deliveries: 1 }]);
  });
  it('count for the new host after a change of the url', () => {
    names('tenant', 9).map((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    attempt('a', 10, { host: 'shared.test' });
    expect(countOf('a', { host: 'own.test', most: 10 })).toBe(10);
    expect(countOf('tenant-9', { host: 'shared.test', most: 1 })).toBe(1);
  });
});

describe('slots of one IP address', () => {
  it('are those of a single address, however many names lead to it', () => {
    const taken = names('name', 300).flatMap((id) => acquireAll(id, { ip: '192.0.2.1', most: 1 }));
    expect(taken).toHaveLength(10);
    expect(countOf('other', { ip: '192.0.2.2' })).toBe(10);
    clock.advance(200);
    // The next time the IP is known before the name is resolved again.
    const [capacity] = slots.release(taken[0]!, false, 0);
    expect(capacity).toEqual({ subscriptionId: 'name-10', deliveries: 1 });
    expect(slots.acquire('name-299')).toBeDefined();
    expect(slots.acquire('name-298')).toBeUndefined();
  });
});

describe('an attempt', () => {
  it('releases its slot once, also if its address has been forgotten meanwhile', () => {
    const [slot] = acquireAll('a', { most: 1 });
    for (const id of names('many', 10_001)) releaseAll(acquireAll(id, { most: 1 }));
    slots.release(slot!, false, 0);
    expect(slots.release(slot!, false, 0)).toEqual([]);
    for (const id of names('b', 100)) attempt(id, 10);
    expect(names('b', 100).flatMap((id) => acquireAll(id, { most: 1 }))).toHaveLength(100);
  });
});

describe('addresses without a finished attempt', () => {
  const acquireOneOf = (ids: readonly string[]) => ids.flatMap((id) => acquireAll(id, { most: 1 }));

  it('leave slots to known addresses, and get theirs in the order in which they came', () => {
    attempt('known', 10);
    const fresh = names('fresh', 100).flatMap((id) => acquireAll(id, { most: 1 }));
    expect(fresh).toHaveLength(70);
    expect(countOf('known', { most: 1 })).toBe(1);
    clock.advance(200);
    expect(slots.release(fresh[0]!, false, 0)).toEqual([{ subscriptionId: 'fresh-70', deliveries: 1 }]);
  });
  it('leave slots to known addresses also once they hang', () => {
    for (const id of names('known', 10)) attempt(id, 10);
    const fresh = () => names('fresh', 300).flatMap((id) => acquireAll(id, { most: 1 })).length;
    expect(fresh()).toBe(70);
    clock.advance(501);
    expect(fresh()).toBe(20);
    clock.advance(501);
    expect(fresh()).toBe(0);
    expect(names('known', 10).map((id) => countOf(id))).toEqual(Array.from({ length: 10 }, () => 1));
  });
  it('leave slots to slow addresses also once they hang, which take turns there', () => {
    const slow = names('slow', 40);
    for (const id of slow) attempt(id, 1_000);
    const [hanging] = acquireOneOf(names('unknown', 300));
    clock.advance(501);
    const [first, ...others] = acquireOneOf(slow);
    expect(others).toHaveLength(19);
    expect(slots.acquire('unknown-299')).toBeUndefined();
    clock.advance(499);
    expect(slots.release(first!, false, 5)).toEqual([{ subscriptionId: 'slow-20', deliveries: 1 }]);
    expect(acquireOneOf(['slow-20'])).toHaveLength(1);
    expect(slots.release(hanging!, true, 0)).toEqual([{ subscriptionId: 'unknown-70', deliveries: 1 }]);
  });
  it('leave these to slow addresses until none of them has wanted one for a minute', () => {
    attempt('slow', 1_000);
    acquireAll('slow', { most: 1 });
    acquireOneOf(names('unknown', 70));
    clock.advance(59_999);
    expect(slots.acquire('unknown-70')).toBeUndefined();
    clock.advance(1);
    expect(acquireOneOf(names('unknown', 300))).toHaveLength(20 - 1);
  });
  it('have a tenth of all slots beside any number of known ones that always have attempts in flight', () => {
    const known = names('known', 100);
    for (const id of known) attempt(id, 10);
    const inFlight = acquireOneOf(known);
    expect(inFlight).toHaveLength(100);
    const unknown = names('unknown', 15);
    for (const id of unknown) expect(slots.acquire(id)).toBeUndefined();
    const acquired = unknown.flatMap((id, i) => {
      const woken = slots.release(inFlight[i]!, false, 5).some(({ subscriptionId }) => subscriptionId === id);
      return woken ? acquireOneOf([id]) : [];
    });
    expect(acquired).toHaveLength(10);
  });
  it('leave slots to slow addresses that nobody else waits for, which go on there without a turn', () => {
    const slow = names('slow', 12);
    for (const id of slow) attempt(id, 1_000);
    acquireOneOf(names('unknown', 70));
    clock.advance(501);
    const [first, ...others] = acquireOneOf(slow);
    expect(others).toHaveLength(11);
    expect(slots.release(first!, false, 5)).toEqual([{ subscriptionId: 'slow-0', deliveries: 1 }]);
  });
  it('get no further slot while the first attempts to them hang', () => {
    acquireAll('fresh', { most: 2 });
    clock.advance(501);
    expect(slots.acquire('fresh')).toBeUndefined();
  });
  it('do not stand in the way of known ones that wait for any slot, however many they are', () => {
    const known = names('known', 31);
    for (const id of known) attempt(id, 10);
    acquireOneOf(names('unknown', 1_000));
    const [first] = acquireOneOf(known);
    expect(slots.release(first!, false, 0)).toEqual([{ subscriptionId: 'known-30', deliveries: 1 }]);
  });
  it('leave slots to known addresses also together with slow ones', () => {
    for (const id of names('known', 20)) attempt(id, 10);
    for (const id of names('slow', 60)) attempt(id, 8_000);
    expect(acquireOneOf(names('unknown', 50))).toHaveLength(50);
    expect(acquireOneOf(names('slow', 60))).toHaveLength(40);
    expect(acquireOneOf(names('known', 20))).toHaveLength(10);
  });
  it('take none of those that slow addresses may have beside first attempts of known ones', () => {
    for (const id of names('known', 95)) attempt(id, 10);
    attempt('slow', 8_000);
    expect(acquireOneOf(names('known', 95))).toHaveLength(95);
    expect(countOf('slow')).toBe(5);
  });
  it('are not those that were slow before the process started, which leave slots to unknown ones also while they hang', () => {
    const dead = names('dead', 400);
    const takeAll = () => dead.reduce((sum, id) => sum + countOf(id, { most: 1 }), 0);
    for (const id of dead) slots.presume(id, 'slow');
    expect(takeAll()).toBe(50);
    clock.advance(600);
    expect(takeAll()).toBe(0);
    expect(countOf('unknown', { most: 1 })).toBe(1);
    // Without that, unknown ones have to wait for them.
    slots = new Slots({ total: 100, perAddress: 10, perHost: 10, now: clock.now });
    expect(takeAll()).toBe(70);
    clock.advance(600);
    expect(takeAll()).toBe(20);
    expect(countOf('unknown', { most: 1 })).toBe(0);
  });
  it('count as any other once an attempt was fast, although they were slow before', () => {
    for (const id of names('was-dead', 60)) slots.presume(id, 'slow');
    for (const id of names('was-dead', 60)) attempt(id, 20);
    expect(names('was-dead', 60).reduce((sum, id) => sum + countOf(id, { most: 1 }), 0)).toBe(60);
  });
  it('leave slots to those that succeeded before the process started, until almost all slots hang', () => {
    const good = names('good', 20);
    for (const id of good) slots.presume(id, 'succeeded');
    acquireOneOf(names('unknown', 100));
    clock.advance(501);
    expect(acquireOneOf(names('more', 100))).toHaveLength(20);
    const [acquired] = acquireOneOf(good);
    expect(slots.acquireSoon('good-11')).toBeInstanceOf(Promise);
    // All 100 hang.
    clock.advance(501);
    slots.release(acquired!, true, 0);
    expect(slots.acquire('good-12')).toBeUndefined();
  });
  it('let no job wait in the process, where it takes the place of others, once they have hung for half a second', async () => {
    expect(acquireOneOf(names('hanging', 70))).toHaveLength(70);
    const waiting = slots.acquireSoon('new');
    expect(waiting).toBeInstanceOf(Promise);
    clock.advance(501);
    const [hanging] = acquireOneOf(names('further', 20));
    expect(slots.acquireSoon('other')).toBeUndefined();
    slots.release(hanging!, false, 0);
    expect((await waiting)!.address.id).toBe('new');
  });
});

describe('the room of addresses', () => {
  const room = () => slots.room();
  it('is named once half of the slots of an address are in flight', () => {
    const four = acquireAll('a', { most: 4 });
    expect(room()).toEqual({ perAddress: 10, busy: '' });
    acquireAll('b', { most: 5 });
    acquireAll('c');
    expect(room().busy).toBe('b 5 c 0');
    releaseAll(four);
    expect(room().busy).toBe('b 5 c 0');
  });
  it('is an even share of half of all slots for slow ones, and none beyond', () => {
    for (const id of names('slow', 20)) attempt(id, 8_000);
    for (const id of names('slow', 20)) acquireAll(id, { most: 1 });
    // 50 for 20.
    expect(room().busy).toBe(
      names('slow', 20)
        .map((id) => `${id} 1`)
        .join(' '),
    );
    for (const id of names('slow', 20)) acquireAll(id, { most: 1 });
    expect(room().busy).toContain('slow-0 0 ');
  });
  it('is none for a moment where its host had no slot', () => {
    acquireAll('a', { host: 'shared.test' });
    expect(acquireAll('b', { host: 'shared.test' })).toEqual([]);
    expect(room().busy).toBe('a 0 b 0');
    clock.advance(50);
    expect(room().busy).toBe('a 0');
  });
  it('is what is left of a fifth for one that keeps failing', () => {
    for (let i = 0; i < 7; i++) releaseAll(acquireAll('a', { most: 1 }), true);
    acquireAll('a', { most: 1 });
    expect(room().busy).toBe('a 1');
    acquireAll('a', { most: 1 });
    expect(room().busy).toBe('a 0');
  });
});

describe('a delivery that was parked since it had no room', () => {
  it('is released at once if its address has a free slot by now', () => {
    releaseAll(acquireAll('a'));
    expect(slots.noteParked('a')).toBe(true);
  });
  it('is released by the next attempt to its address that ends, although that found nothing parked', () => {
    const [first, second] = acquireAll('a');
    expect(slots.noteParked('a')).toBe(false);
    expect(slots.release(first!, false, 0)).toEqual([{ subscriptionId: 'a', deliveries: 1 }]);
    expect(slots.release(second!, false, 0)).toEqual([]);
  });
  it('is released by a later one if the next gives its slot to another address', () => {
    attempt('a', 600, { host: 'shared.test' });
    const [first, second] = acquireAll('a', { host: 'shared.test', most: 2 });
    acquireAll('b', { host: 'shared.test' });
    expect(slots.noteParked('a')).toBe(false);
    expect(slots.release(first!, false, 0)).toEqual([{ subscriptionId: 'b', deliveries: 1 }]);
    expect(slots.release(second!, false, 0)).toContainEqual({ subscriptionId: 'a', deliveries: 1 });
  });
  it('is released when others end, if its address has no attempt in flight', () => {
    attempt('a', 600, { host: 'shared.test' });
    const others = names('b', 20).flatMap((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    expect(slots.noteParked('a')).toBe(false);
    expect(others.flatMap((slot) => slots.release(slot, false, 0))).toContainEqual({
      subscriptionId: 'a',
      deliveries: 1,
    });
  });
});

describe('an address whose attempt has succeeded', () => {
  const LAST = { kind: 'last' } as const;
  const first = (deliveries: number) => ({ kind: 'first', deliveries });
  const followUpOf = (slot: Slot, room = 100) => slots.followUpFor(slot, room);
  it('keeps the slot for the job of a parked delivery, and for no other one', () => {
    const [slot] = acquireAll('a');
    const followUp = followUpOf(slot!);
    expect(followUp).toEqual(first(1));
    expect(slots.release(slot!, false, 1, { followUp, jobs: [{ id: 'dlv_1.1' }] })).toEqual([]);
    expect(slots.acquire('a')).toBeUndefined();
    expect(slots.acquireSoon('a', 'dlv_2')).toBeUndefined();
    expect(slots.acquireSoon('a', 'dlv_1.1')).toMatchObject({ address: { id: 'a' } });
    expect(slots.acquireSoon('a', 'dlv_1.1')).toBeUndefined();
  });
  it('gets up to three further slots for parked deliveries, none of them twice', () => {
    const acquired = acquireAll('a', { most: 5 });
    const [one, two, three] = acquired.map((slot) => followUpOf(slot));
    // Five are free.
    expect([one, two, three]).toEqual([first(4), first(3), first(1)]);
    expect(
      slots.release(acquired[0]!, false, 9, {
        followUp: one!,
        jobs: [{ id: '1' }, { id: '2' }, { id: '3' }, { id: '4' }],
      }),
    ).toEqual([]);
    // Fewer were parked.
    expect(slots.release(acquired[1]!, false, 0, { followUp: two!, jobs: [{ id: '5' }] })).toEqual([]);
    for (const id of ['1', '2', '3', '4', '5']) expect(slots.acquireSoon('a', id)).toBeDefined();
    expect(followUpOf(acquired[2]!)).toEqual(first(3));
  });
  it('releases parked deliveries if none followed, and leaves them to the next attempt that ends if one did', () => {
    const acquired = acquireAll('a', { most: 2 });
    const followUp = followUpOf(acquired[0]!, 0);
    expect(followUp).toEqual(LAST);
    expect(slots.release(acquired[0]!, false, 9, { followUp, jobs: [{ id: '1' }] })).toEqual([]);
    expect(slots.release(acquired[1]!, false, 9, { followUp, jobs: [] })).toEqual([
      { subscriptionId: 'a', deliveries: 9 },
    ]);
  });
  it('comes after the queue if the process is full, or if its jobs wait for a slot', async () => {
    for (const id of names('b', 10)) attempt(id, 10);
    attempt('a', 10);
    const [slot] = acquireAll('a', { most: 1 });
    expect([followUpOf(slot!, 0), followUpOf(slot!).kind]).toEqual([LAST, 'first']);
    const busy = names('b', 10).flatMap((id) => acquireAll(id, { most: 8 }));
    const waiting = names('b', 10)
      .map((id) => slots.acquireSoon(id))
      .find((soon) => soon instanceof Promise);
    expect(waiting).toBeDefined();
    expect(followUpOf(slot!)).toEqual(LAST);
    releaseAll(busy);
    expect(await waiting).toBeDefined();
  });
  it('is followed by none if other addresses wait for its slot', () => {
    attempt('a', 10, { host: 'shared.test' });
    const [slot] = acquireAll('a', { host: 'shared.test', most: 1 });
    expect(followUpOf(slot!).kind).toBe('first');
    const others = names('b', 80).flatMap((id) => acquireAll(id, { host: 'shared.test', most: 1 }));
    expect(others.length).toBeLessThan(80);
    expect(followUpOf(slot!)).toEqual({ kind: 'none' });
  });
  it('releases parked deliveries ten times a second, so that other workers get a part of the backlog', () => {
    const [slot, other] = acquireAll('a', { most: 2 });
    const kinds = () => Array.from({ length: 3 }, () => followUpOf(slot!).kind);
    expect(kinds()).toEqual(['first', 'first', 'first']);
    clock.advance(99);
    expect(kinds()).toEqual(['first', 'first', 'first']);
    clock.advance(1);
    expect(kinds()).toEqual(['share', 'first', 'first']);
    const followUp = { kind: 'share' } as const;
    const share = (slot: Slot) => slots.release(slot, false, 99, { followUp, jobs: [] });
    expect(share(slot!)).toEqual([{ subscriptionId: 'a', deliveries: 9 }]);
    // Eight of them are for free slots of this process, and one for this end.
    expect(share(other!)).toEqual([{ subscriptionId: 'a', deliveries: 10 }]);
  });
  it('releases one that was parked while its end was recorded, when that is shared', () => {
    const [slot, ...others] = acquireAll('a');
    expect(slots.noteParked('a')).toBe(false);
    expect(slots.release(slot!, false, 0, { followUp: { kind: 'share' }, jobs: [] })).toEqual([
      { subscriptionId: 'a', deliveries: 1 },
    ]);
    expect(slots.release(others[0]!, false, 0)).toEqual([]);
  });
  it('takes no more than the process has room for, which several ends share, also if one is repeated', () => {
    const [one, two] = [acquireAll('a', { most: 1 })[0]!, acquireAll('b', { most: 1 })[0]!];
    expect([followUpOf(one, 4), followUpOf(one, 4), followUpOf(two, 4)]).toEqual([first(4), first(4), first(2)]);
    slots.release(one, false, 0, { followUp: { kind: 'first', deliveries: 4 }, jobs: [] });
    expect(followUpOf(two, 4)).toEqual(first(4));
  });
  it('has no turn if slow addresses compete for slots, or if it has more than its share', () => {
    attempt('a', 8_000);
    const [slot] = acquireAll('a');
    for (const id of names('slow', 9)) attempt(id, 8_000);
    for (const id of names('slow', 9)) acquireAll(id, { most: 1 });
    expect(followUpOf(slot!)).toEqual({ kind: 'none' });
  });
});

describe('parked deliveries of an address', () => {
  const share = (deliveries: number) => [{ subscriptionId: 'a', deliveries }];
  it('are not released again for slots that others were released for, until they come back or a tenth of a second is over', () => {
    const acquired = acquireAll('a', { most: 5 });
    const release = () => slots.release(acquired.pop()!, true, 20);
    expect(release()).toEqual(share(6));
    expect(release()).toEqual(share(1));
    // Two come back.
    expect([slots.acquireSoon('a', 'dlv_1.1'), slots.acquireSoon('a', 'dlv_2.1')]).not.toContain(undefined);
    expect(release()).toEqual(share(1));
    clock.advance(99);
    expect(release()).toEqual(share(1));
    clock.advance(1);
    expect(release()).toEqual(share(8));
  });
  it('may be released again if some were parked meanwhile', () => {
    const acquired = acquireAll('a');
    expect(slots.release(acquired.pop()!, false, 20)).toEqual(share(1));
    expect(slots.noteParked('a')).toBe(true);
    expect(slots.release(acquired.pop()!, false, 20)).toEqual(share(1));
  });
});

describe('a job that finds no slot', () => {
  const shared = { host: 'shared.test' };
  beforeEach(() => {
    jest.useFakeTimers();
    for (const id of names('tenant', 120)) attempt(id, 10, shared);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('waits for a fast attempt to end, and the first that waits gets its slot', async () => {
    const taken = names('tenant', 70).flatMap((id) => acquireAll(id, { ...shared, most: 1 }));
    const [first, second] = [slots.acquireSoon('tenant-100'), slots.acquireSoon('tenant-101')];
    expect(slots.release(taken[0]!, false, 0)).toEqual([]);
    expect((await first)!.address.id).toBe('tenant-100');
    jest.advanceTimersByTime(100);
    expect(await second).toBeUndefined();
    // Its delivery is parked, and has the next slot.
    clock.advance(20);
    expect(slots.release(taken[1]!, false, 0)).toEqual([{ subscriptionId: 'tenant-101', deliveries: 1 }]);
  });
  it('gets the slot of an attempt that has its outcome, before that is recorded, and how long recording takes does not make an address slow', async () => {
    const taken = names('tenant', 70).flatMap((id) => acquireAll(id, { ...shared, most: 1 }));
    const first = slots.acquireSoon('tenant-100');
    slots.answered(taken[0]!);
    expect((await first)!.address.id).toBe('tenant-100');
    for (const slot of taken) slots.answered(slot);
    clock.advance(8_000);
    releaseAll(taken);
    expect(countOf('tenant-0', { host: 'own.test' })).toBe(10);
    expect(names('tenant', 70).flatMap((id) => acquireAll(id, { ...shared, most: 1 })).length).toBeGreaterThan(50);
  });
  it('does not wait if too many do', async () => {
    names('tenant', 70).map((id) => acquireAll(id, { ...shared, most: 1 }));
    const waiting = names('tenant', 120)
      .slice(70, 100)
      .map((id) => slots.acquireSoon(id));
    expect(await slots.acquireSoon('tenant-110')).toBeUndefined();
    jest.advanceTimersByTime(100);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 30 }, () => undefined));
  });
  it('gets the slot of an attempt that was in its way, however many wait before it for slots elsewhere', async () => {
    const taken = names('tenant', 70).flatMap((id) => acquireAll(id, { ...shared, most: 1 }));
    for (const id of names('new', 13)) acquireAll(id, { host: 'new.test', most: 1 });
    const before = names('new', 13)
      .slice(10)
      .map((id) => slots.acquireSoon(id));
    const waiting = slots.acquireSoon('tenant-100');
    slots.release(taken[0]!, false, 0);
    // It has the slot, so nobody else gets it.
    expect(slots.acquire('tenant-101')).toBeUndefined();
    expect((await waiting)!.address.id).toBe('tenant-100');
    jest.advanceTimersByTime(100);
    expect(await Promise.all(before)).toEqual([undefined, undefined, undefined]);
  });
  it('waits on for a slot of the whole process if that has none by the time its host has one', async () => {
    for (const id of names('other', 30)) attempt(id, 10);
    const taken = names('tenant', 70).flatMap((id) => acquireAll(id, { ...shared, most: 1 }));
    const waiting = slots.acquireSoon('tenant-100');
    const [other] = names('other', 30).flatMap((id) => acquireAll(id, { most: 1 }));
    slots.answered(taken[0]!);
    slots.release(other!, false, 0);
    expect(slots.acquire('other-0')).toBeUndefined();
    expect((await waiting)!.address.id).toBe('tenant-100');
  });
  it('does not wait for attempts of its own address, nor at a host that is not fast, nor if its address is not', async () => {
    acquireAll('tenant-0', shared);
    expect(await slots.acquireSoon('tenant-0')).toBeUndefined();
    for (const id of names('slow', 10)) attempt(id, 200, { host: 'slow.test' });
    attempt('moved', 200);
    const [slot] = names('slow', 10).flatMap((id) => acquireAll(id, { host: 'slow.test', most: 1 }));
    const refused = slots.acquire('unknown')!;
    expect(slots.enterHost(refused, 'slow.test')).toBe(false);
    slots.release(refused, undefined, 0);
    names('new', 10).map((id) => acquireAll(id, { host: 'new.test', most: 1 }));
    expect(acquireAll('moved', { host: 'new.test' })).toEqual([]);
    expect(slots.acquireSoon('unknown')).toBeUndefined();
    expect(slots.acquireSoon('moved')).toBeUndefined();
    // The delivery is parked, and has the next slot.
    expect(slots.release(slot!, false, 0)).toEqual([{ subscriptionId: 'unknown', deliveries: 1 }]);
  });
  it('waits at a host that nothing is known of, but not once an attempt there has taken 100 ms', async () => {
    const [slot] = names('new', 11).flatMap((id) => acquireAll(id, { host: 'new.test', most: 1 }));
    clock.advance(100);
    const waiting = slots.acquireSoon('new-10');
    expect(waiting).toBeInstanceOf(Promise);
    slots.release(slot!, undefined, 0);
    expect((await waiting)!.address.id).toBe('new-10');
    clock.advance(1);
    expect(slots.acquireSoon('new-10')).toBeUndefined();
  });
});
