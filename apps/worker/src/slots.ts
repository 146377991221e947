/**
 * Admission control for the attempts of one process: no address, no host and no number of slow addresses takes all of its slots.
 * slot-limits.ts has the rules; this file acquires and releases slots, and knows who waits for one.
 */
import { LRUCache } from 'lru-cache';
import { type Address, createLimits, type Group, type LimitOptions, type Slot } from './slot-limits.ts';

export type { Slot };

export interface SlotOptions extends LimitOptions {
  /** How long `acquireSoon` waits. Default 100 ms. */
  shortWaitMs?: number;
}

export interface Slots {
  /** Acquires a slot for an attempt to an address; undefined if the delivery has to be parked. */
  acquire(subscriptionId: string): Slot | undefined;
  /** The same, but if only fast attempts are in the way, waits up to `shortWaitMs` for one of them to end: that costs less than parking. */
  acquireSoon(subscriptionId: string): Promise<Slot | undefined>;
  /** Whether an attempt to an address can acquire a slot now. */
  canAcquire(subscriptionId: string): boolean;
  /** Counts the attempt for the host of its address. Returns false if the host has no free slot: then the attempt must not be made. */
  enterHost(slot: Slot, host: string): boolean;
  /** The same for the IP that is to be connected to. */
  enterIp(slot: Slot, ip: string): boolean;
  /**
   * Ends the attempt: it failed, or it did not, or (undefined) it was not made. `parked`: how many deliveries of its address are parked.
   * Returns the addresses whose parked deliveries may acquire slots now.
   */
  release(slot: Slot, failed: boolean | undefined, parked: number): Capacity[];
}

/** How many parked deliveries of an address may acquire a slot. */
export interface Capacity {
  subscriptionId: string;
  deliveries: number;
}

/** How long a job waits in this process for a fast attempt to end before its delivery is parked. */
const SHORT_WAIT_MS = 100;
/** The share of all jobs in flight that may wait like this. */
const SHORT_WAIT_SHARE = 0.3;
/** When an attempt ends, no more waiting jobs are tried after so many were refused again: this bounds the cost of each end. */
const MAX_REFUSED_AGAIN = 3;
/** Weight of the latest attempt in the moving means. */
const WEIGHT = 0.3;
const MAX_ADDRESSES = 10_000;
/** Addresses remembered as waiting: for one host or IP, for any slot, and slow ones. */
const MAX_WAITING = 1_000;
/** Waiting addresses of each of its groups that an ending attempt wakes. */
const MAX_WOKEN = 5;

/** Why an attempt gets no slot: in which group an attempt has to end first, and whether that is soon. */
interface Refusal {
  group: Group | undefined;
  isSoon: boolean;
}

export function createSlots(options: SlotOptions): Slots {
  const { total, now, shortWaitMs = SHORT_WAIT_MS } = options;
  const addresses = new LRUCache<string, Address>({ max: MAX_ADDRESSES });
  /** Kept after their last attempt, for their moving means. */
  const groups = new LRUCache<string, Group>({ max: MAX_ADDRESSES });
  const all: Group = newGroup('all');
  const busy = new Set<Address>();
  const waitingSlow = new Set<Address>();
  const { capacityOf, capacityIn, countsAsFast, isSlow } = createLimits(options, { all, busy, waitingSlow });
  const maxShortWaits = shortWaitMs > 0 ? Math.floor(total * SHORT_WAIT_SHARE) : 0;
  /** Jobs that wait for a fast attempt to end, in order of arrival. */
  const shortWaits = new Set<{ address: Address; resolve: (slot: Slot) => void }>();

  const addressOf = (id: string): Address => {
    const address = addresses.get(id) ?? newAddress(id);
    addresses.set(id, address);
    return address;
  };
  const groupOf = (key: string): Group => {
    const group = groups.get(key) ?? newGroup(key);
    groups.set(key, group);
    return group;
  };
  const addWaiting = (address: Address, group?: Group): void => {
    address.refusedAtMs = now();
    if (isSlow(address) && waitingSlow.size < MAX_WAITING) waitingSlow.add(address);
    if (group && group.waiting.size < MAX_WAITING) group.waiting.add(address.id);
  };
  const enter = (slot: Slot, key: string): boolean => {
    const group = groupOf(key);
    if (slot.groups.has(group)) return true;
    if (capacityIn(group, slot.address) <= 0) {
      addWaiting(slot.address, group);
      return false;
    }
    group.inFlight.add(slot);
    slot.groups.add(group);
    return true;
  };
  const leave = (slot: Slot, group: Group) => {
    group.inFlight.delete(slot);
    slot.groups.delete(group);
  };
  const drop = (slot: Slot) => {
    const { address } = slot;
    if (!address.inFlight.delete(slot)) return false;
    if (address.inFlight.size === 0) busy.delete(address);
    for (const group of slot.groups) leave(slot, group);
    return true;
  };
  const hostKey = (host: string) => `host ${host}`;
  const ipKey = (ip: string) => `ip ${ip}`;
  /** The host and the IP that an address had last. */
  const groupsOf = ({ host, ip }: Address): Group[] => [
    ...(host === undefined ? [] : [groupOf(hostKey(host))]),
    ...(ip === undefined ? [] : [groupOf(ipKey(ip))]),
  ];
  const refusalOf = (address: Address): Refusal | undefined => {
    const { free, waitsFor } = capacityOf(address);
    if (free <= 0) return waitsFor === 'any' ? { group: all, isSoon: true } : { group: undefined, isSoon: false };
    const full = groupsOf(address).find((group) => capacityIn(group, address) <= 0);
    return full && { group: full, isSoon: countsAsFast(address, full) };
  };
  /** Removes and returns the addresses that have waited longest for a group and can acquire a slot now. */
  const wakeWaiting = (group: Group): string[] => {
    const ids: string[] = [];
    for (const id of group.waiting) {
      const address = addressOf(id);
      if (ids.length >= Math.min(MAX_WOKEN, capacityIn(group, address))) break;
      group.waiting.delete(id);
      const refusal = refusalOf(address);
      if (!refusal) ids.push(id);
      else if (refusal.group !== group) refusal.group?.waiting.add(id);
    }
    return ids;
  };
  const acquireFor = (address: Address): Slot => {
    const slot: Slot = { address, acquiredAtMs: now(), groups: new Set([all, ...groupsOf(address)]) };
    address.inFlight.add(slot);
    busy.add(address);
    for (const group of slot.groups) group.inFlight.add(slot);
    return slot;
  };
  const endShortWaits = (): void => {
    let refused = 0;
    for (const waiting of shortWaits) {
      if (refusalOf(waiting.address)) {
        refused += 1;
        if (refused === MAX_REFUSED_AGAIN) return;
      } else {
        shortWaits.delete(waiting);
        waiting.resolve(acquireFor(waiting.address));
      }
    }
  };
  const waitForSlot = (address: Address) =>
    new Promise<Slot | undefined>((resolve) => {
      const timer = setTimeout(() => {
        shortWaits.delete(waiting);
        const refusal = refusalOf(address);
        if (refusal) addWaiting(address, refusal.group);
        resolve(refusal ? undefined : acquireFor(address));
      }, shortWaitMs);
      const waiting = {
        address,
        resolve(slot: Slot) {
          clearTimeout(timer);
          resolve(slot);
        },
      };
      shortWaits.add(waiting);
    });

  return {
    acquire(subscriptionId) {
      const address = addressOf(subscriptionId);
      const refusal = refusalOf(address);
      if (!refusal) return acquireFor(address);
      addWaiting(address, refusal.group);
      return undefined;
    },
    async acquireSoon(subscriptionId) {
      const address = addressOf(subscriptionId);
      const refusal = refusalOf(address);
      if (!refusal) return acquireFor(address);
      if (refusal.isSoon && shortWaits.size < maxShortWaits) return await waitForSlot(address);
      addWaiting(address, refusal.group);
      return undefined;
    },
    canAcquire: (subscriptionId) => refusalOf(addressOf(subscriptionId)) === undefined,
    enterHost(slot, host) {
      const { address } = slot;
      if (address.host !== host) {
        // The url of the address has changed: the old host and IP no longer count.
        for (const group of slot.groups) if (group !== all) leave(slot, group);
        address.host = host;
        address.ip = undefined;
      }
      return enter(slot, hostKey(host));
    },
    enterIp(slot, ip) {
      const { address } = slot;
      if (address.ip !== ip) {
        for (const group of slot.groups) if (group.key.startsWith('ip ')) leave(slot, group);
        address.ip = ip;
      }
      return enter(slot, ipKey(ip));
    },
    release(slot, failed, parked) {
      const { address } = slot;
      const shared = [...slot.groups];
      if (!drop(slot)) return [];
      if (failed !== undefined) {
        const tookMs = now() - slot.acquiredAtMs;
        for (const where of [address, ...shared]) {
          where.meanMs = where.meanMs === undefined ? tookMs : where.meanMs + WEIGHT * (tookMs - where.meanMs);
        }
        address.failing += WEIGHT * (Number(failed) - address.failing);
      }
      endShortWaits();
      const woken = new Set(shared.flatMap(wakeWaiting));
      const capacities = [...woken].map((subscriptionId) => ({ subscriptionId, deliveries: 1 }));
      const { free, waitsFor } = capacityOf(address);
      // Where slow addresses compete, maintenance picks the next one, or the first would keep its slots for ever.
      if (waitsFor === 'maintenance' || parked === 0) return capacities;
      const own =
        woken.size > 0 ? 0 : Math.min(free, parked, ...groupsOf(address).map((group) => capacityIn(group, address)));
      if (own > 0) capacities.push({ subscriptionId: address.id, deliveries: own });
      else if (address.inFlight.size === 0)
        addWaiting(address, refusalOf(address)?.group ?? groupsOf(address)[0] ?? all);
      return capacities;
    },
  };
}

function newAddress(id: string): Address {
  return { id, inFlight: new Set(), meanMs: undefined, failing: 0, refusedAtMs: 0, host: undefined, ip: undefined };
}

function newGroup(key: string): Group {
  return { key, inFlight: new Set(), meanMs: undefined, waiting: new Set() };
}
