/** Places: what one address gets, and what slow ones get together. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeClock, fakeClock } from '@posthorn/testing';
import { type AddressPlaces, createAddressPlaces } from './address-places.ts';

let clock: FakeClock;
let places: AddressPlaces;
beforeEach(() => {
  clock = fakeClock(1_000_000);
  places = createAddressPlaces({ total: 100, perAddress: 10, now: clock.now });
});
/** Takes as many places at an address as it gets, at most `most`. */
function takeAll(id: string, most = 1_000): number {
  let taken = 0;
  while (taken < most && places.take(id)) taken += 1;
  return taken;
}
function makeSlow(id: string): void {
  places.take(id);
  clock.advance(8_000);
  places.free(id, false);
}

describe('places', () => {
  it('an address that answers soon, or is new, takes as many as one may', () => {
    expect(takeAll('a')).toBe(10);
    expect(places.room('a')).toBe(0);
    clock.advance(20);
    places.free('a', false);
    expect(places.room('a')).toBe(1);
    expect(takeAll('a')).toBe(1);
  });
  it('a slow address alone may take as many too', () => {
    makeSlow('a');
    expect(takeAll('a')).toBe(10);
  });
  it('slow addresses together take half, shared evenly, and leave the rest to those that answer soon', () => {
    const slow = Array.from({ length: 20 }, (_, i) => `slow-${i}`);
    for (const id of slow) makeSlow(id);
    let taken = 0;
    // Each asks again and again, as their deliveries come.
    for (let round = 0; round < 20; round++) for (const id of slow) taken += takeAll(id, 1);
    expect(taken).toBeLessThanOrEqual(50);
    expect(taken).toBeGreaterThanOrEqual(40);
    expect(Array.from({ length: 5 }, (_, i) => takeAll(`soon-${i}`))).toEqual([10, 10, 10, 10, 10]);
  });
  it('more slow addresses than places: one each at most, and none keeps its place where others wait', () => {
    const slow = Array.from({ length: 120 }, (_, i) => `slow-${i}`);
    for (const id of slow) places.take(id);
    clock.advance(8_000);
    for (const id of slow) places.free(id, false);
    for (const id of slow) takeAll(id, 1);
    for (const id of slow) expect(takeAll(id, 1)).toBe(0);
    clock.advance(4_000);
    places.free('slow-0', false);
    expect(places.room('slow-0')).toBe(0);
    expect(places.take('slow-119')).toBe(true);
  });
  it('an address that begins to hang is slow before its first timeout, and is itself again once it answers', () => {
    for (let i = 0; i < 3; i++) places.take('a');
    clock.advance(501);
    const others = Array.from({ length: 60 }, (_, i) => `other-${i}`);
    for (const id of others) places.take(id);
    clock.advance(501);
    expect(places.take('a')).toBe(false);
    for (const id of others) places.free(id, false);
    for (let i = 0; i < 3; i++) places.free('a', false);
    for (let i = 0; i < 10; i++) {
      expect(places.take('a')).toBe(true);
      clock.advance(5);
      places.free('a', false);
    }
    expect(takeAll('a')).toBe(10);
  });
  it('an address that keeps failing, however soon, has a fifth of the places, and all of them again once it succeeds', () => {
    for (let i = 0; i < 6; i++) {
      places.take('a');
      places.free('a', true);
    }
    expect(takeAll('a')).toBe(10);
    for (let i = 0; i < 10; i++) places.free('a', true);
    expect(takeAll('a')).toBe(2);
    expect(places.room('a')).toBe(0);
    places.free('a', undefined);
    expect(takeAll('a')).toBe(1);
    places.free('a', false);
    expect(takeAll('a')).toBe(9);
  });
});
