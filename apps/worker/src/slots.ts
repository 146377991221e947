/**
 * Admission control for the attempts of one process: no address, no host and no number of slow ones takes all of its slots.
 * docs/architecture.md says why each rule is there.
 */
import { LRUCache } from 'lru-cache';

export interface SlotOptions {
  /** Attempts in flight in all. */
  total: number;
  /** Attempts in flight to one address. */
  perAddress: number;
  /** Attempts in flight to one host, and to one IP, of addresses that are not known to be fast. */
  perHost: number;
  /** Milliseconds since any fixed moment. */
  now: () => number;
  /** How long `acquireSoon` waits. Default 100 ms. */
  shortWaitMs?: number;
}

export interface Slots {
  /** Acquires a slot for an attempt to an address; undefined if the delivery has to be parked. */
  acquire(subscriptionId: string): Slot | undefined;
  /** The same, but where only fast attempts are in the way it waits for one of them to end: that costs less than parking. */
  acquireSoon(subscriptionId: string): Promise<Slot | undefined>;
  /** Whether an attempt to an address would get a slot now. */
  hasRoom(subscriptionId: string): boolean;
  /** Counts the attempt for the host of its address. Returns false if the host has no slot for it: then it must not be made. */
  enterHost(slot: Slot, host: string): boolean;
  /** The same for the IP that is to be connected to. */
  enterIp(slot: Slot, ip: string): boolean;
  /**
   * Ends the attempt: it failed, or it did not, or (undefined) it was not made. `parked` deliveries of its address wait. Returns the addresses
   * that have room for deliveries that wait, and for how many.
   */
  release(slot: Slot, failed: boolean | undefined, parked: number): Room[];
}

export interface Room {
  subscriptionId: string;
  deliveries: number;
}

/** What an attempt in flight has acquired. */
export interface Slot {
  readonly address: Address;
  readonly acquiredAtMs: number;
  readonly groups: Set<Group>;
}

/** An address whose attempts take longer than this is slow, also while one of them is still in flight. */
const SLOW_MS = 500;
/** An address whose attempts take less than this is fast. */
const FAST_MS = 100;
/** The share of all slots that slow addresses have together. */
const SLOW_SHARE = 0.5;
/**
 * The share of all slots for attempts that are not an address's only one, or whose address is not known yet. The rest is for known addresses
 * that have none in flight.
 */
const FURTHER_SHARE = 0.7;
/** The share of all slots that the fast addresses of one host, or of one IP, may use. */
const FAST_HOST_SHARE = 0.7;
/** How long a job waits in this process for a fast attempt to end before its delivery is parked. */
const SHORT_WAIT_MS = 100;
/** The share of all jobs in hand that may wait so. */
const SHORT_WAIT_SHARE = 0.3;
/** Jobs that wait so and are refused again when an attempt ends, before the rest is left for the next one: the cost of an end is bounded. */
const MAX_REFUSED_AGAIN = 3;
/** The share of a host's slots that its slow addresses leave to those that are not known yet. */
const NEW_SHARE = 0.2;
/** An address of whose attempts more than this share failed, by the moving mean: none of the last seven succeeded. */
const FAILING = 0.9;
/** The share of an address's slots that it keeps while it is failing. */
const FAILING_SHARE = 0.2;
/** How much the latest attempt counts in the moving means. */
const WEIGHT = 0.3;
/** A slow address that was refused counts as waiting for this long. */
const WAITING_MS = 5_000;
const MAX_ADDRESSES = 10_000;
/** Addresses remembered as waiting: for one host or IP, for any slot, and of the slow ones. */
const MAX_WAITING = 1_000;
/** Waiting addresses that one attempt which ends brings back, of each of its groups. */
const MAX_BROUGHT_BACK = 5;

interface Address {
  id: string;
  inFlight: Set<Slot>;
  /** Moving mean of how long its attempts took; undefined before the first has ended. */
  meanMs: number | undefined;
  /** Moving mean of failed (1) or not (0). */
  failing: number;
  refusedAtMs: number;
  /** The host and the IP of its last attempt. */
  host: string | undefined;
  ip: string | undefined;
}

/** The attempts in flight to one host, or to one IP, or all of them. */
interface Group {
  key: string;
  inFlight: Set<Slot>;
  /** Moving mean of how long its attempts took. */
  meanMs: number | undefined;
  /** Addresses that were refused here, the one that has waited longest first. */
  waiting: Set<string>;
}

/** Why an attempt gets no slot: what has to end first, and whether that is soon. */
interface Refusal {
  group: Group | undefined;
  isSoon: boolean;
}

export function createSlots({ total, perAddress, perHost, now, shortWaitMs = SHORT_WAIT_MS }: SlotOptions): Slots {
  const addresses = new LRUCache<string, Address>({ max: MAX_ADDRESSES });
  /** Addresses with attempts in flight. */
  const busy = new Set<Address>();
  /** Slow addresses that were refused a short time ago and have nothing in flight. */
  const waitingSlow = new Set<Address>();
  /** Kept for a while without attempts, for what is known of them. */
  const groups = new LRUCache<string, Group>({ max: MAX_ADDRESSES });
  const all: Group = newGroup('all');

  const atLeastOne = (slots: number) => Math.max(1, Math.floor(slots));
  const slowLimit = atLeastOne(total * SLOW_SHARE);
  const furtherLimit = atLeastOne(total * FURTHER_SHARE);
  const failingLimit = atLeastOne(perAddress * FAILING_SHARE);
  const fastHostLimit = Math.max(perHost, atLeastOne(total * FAST_HOST_SHARE));
  const slowHostLimit = atLeastOne(perHost * (1 - NEW_SHARE));
  const maxShortWaits = shortWaitMs > 0 ? Math.floor(total * SHORT_WAIT_SHARE) : 0;
  /** Jobs in hand that wait for a fast attempt to end, in the order in which they came. */
  const shortWaits = new Set<{ address: Address; resolve: (slot: Slot) => void }>();

  const isStalled = ({ inFlight }: Address | Group) => {
    for (const { acquiredAtMs } of inFlight) return now() - acquiredAtMs > SLOW_MS;
    return false;
  };
  const isSlow = (address: Address) => (address.meanMs ?? 0) > SLOW_MS || isStalled(address);
  const isFast = (one: Address | Group) => one.meanMs !== undefined && one.meanMs < FAST_MS && !isStalled(one);

  /** Slots that count as further: those of addresses that are not slow, but for the first one of each known address. */
  const furtherSlots = () => {
    let slots = 0;
    for (const address of busy) {
      if (!isSlow(address)) slots += address.inFlight.size - (address.meanMs === undefined ? 0 : 1);
    }
    return slots;
  };
  /** Slow addresses that have slots or want some, and the slots they have. */
  const countSlow = () => {
    let count = 0;
    let slots = 0;
    for (const address of busy) {
      if (!isSlow(address)) continue;
      count += 1;
      slots += address.inFlight.size;
    }
    for (const address of waitingSlow) {
      if (now() - address.refusedAtMs > WAITING_MS || busy.has(address)) waitingSlow.delete(address);
      else count += 1;
    }
    return { count, slots };
  };

  /**
   * How many more attempts the address may have, as far as all addresses together go. `waitsFor` says what has to end first where there
   * are none: one of its own attempts, one of any address, or (slow) whatever maintenance lets through next.
   */
  const roomOf = (address: Address): { free: number; waitsFor: 'own' | 'any' | 'turn' } => {
    const own = address.inFlight.size;
    const ownFree = (address.failing > FAILING ? failingLimit : perAddress) - own;
    if (ownFree <= 0) return { free: 0, waitsFor: 'own' };
    const totalFree = total - all.inFlight.size;
    if (isSlow(address)) {
      const { count, slots } = countSlow();
      const fairShare = atLeastOne(slowLimit / Math.max(1, count));
      const free = Math.min(ownFree, totalFree, fairShare - own, slowLimit - slots);
      return { free, waitsFor: slots + count > slowLimit ? 'turn' : 'own' };
    }
    const free = Math.min(ownFree, totalFree);
    // Even if all slots were further ones, there would be enough: nothing to count.
    if (all.inFlight.size + free <= furtherLimit) return { free, waitsFor: 'any' };
    const first = own === 0 && address.meanMs !== undefined ? 1 : 0;
    return { free: Math.min(free, first + Math.max(0, furtherLimit - furtherSlots())), waitsFor: 'any' };
  };

  const countsAsFast = (address: Address, group: Group) =>
    isFast(address) || (address.meanMs === undefined && isFast(group));
  /** How many more attempts a host or an IP has slots for, if they are like one of the address. */
  const roomIn = (group: Group, address: Address): number => {
    if (group === all) return roomOf(address).free;
    if (countsAsFast(address, group)) return fastHostLimit - group.inFlight.size;
    let others = 0;
    let isShared = false;
    for (const { address: other } of group.inFlight) {
      if (other !== address) isShared = true;
      if (!countsAsFast(other, group)) others += 1;
    }
    return (isShared && isSlow(address) ? slowHostLimit : perHost) - others;
  };

  const addressOf = (id: string): Address => {
    let address = addresses.get(id);
    if (!address) {
      address = {
        id,
        inFlight: new Set(),
        meanMs: undefined,
        failing: 0,
        refusedAtMs: Number.NEGATIVE_INFINITY,
        host: undefined,
        ip: undefined,
      };
      addresses.set(id, address);
    }
    return address;
  };
  const groupOf = (key: string): Group => {
    let group = groups.get(key);
    if (!group) {
      group = newGroup(key);
      groups.set(key, group);
    }
    return group;
  };
  const wait = (address: Address, group?: Group): void => {
    address.refusedAtMs = now();
    if (isSlow(address) && waitingSlow.size < MAX_WAITING) waitingSlow.add(address);
    if (group && group.waiting.size < MAX_WAITING) group.waiting.add(address.id);
  };
  const enter = (slot: Slot, key: string): boolean => {
    const group = groupOf(key);
    if (slot.groups.has(group)) return true;
    if (roomIn(group, slot.address) <= 0) {
      wait(slot.address, group);
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
    const { free, waitsFor } = roomOf(address);
    if (free <= 0) return waitsFor === 'any' ? { group: all, isSoon: true } : { group: undefined, isSoon: false };
    const full = groupsOf(address).find((group) => roomIn(group, address) <= 0);
    return full && { group: full, isSoon: countsAsFast(address, full) };
  };
  /** The addresses that have waited longest for a group and would get a slot now. */
  const bringBack = (group: Group): string[] => {
    const ids: string[] = [];
    for (const id of group.waiting) {
      const address = addressOf(id);
      if (ids.length >= Math.min(MAX_BROUGHT_BACK, roomIn(group, address))) break;
      group.waiting.delete(id);
      const refusal = refusalOf(address);
      if (!refusal) ids.push(id);
      else if (refusal.group !== group) refusal.group?.waiting.add(id);
    }
    return ids;
  };
  const take = (address: Address): Slot => {
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
        waiting.resolve(take(waiting.address));
      }
    }
  };
  const waitForSlot = (address: Address) =>
    new Promise<Slot | undefined>((resolve) => {
      const timer = setTimeout(() => {
        shortWaits.delete(waiting);
        const refusal = refusalOf(address);
        if (refusal) wait(address, refusal.group);
        resolve(refusal ? undefined : take(address));
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
      if (!refusal) return take(address);
      wait(address, refusal.group);
      return undefined;
    },
    async acquireSoon(subscriptionId) {
      const address = addressOf(subscriptionId);
      const refusal = refusalOf(address);
      if (!refusal) return take(address);
      if (refusal.isSoon && shortWaits.size < maxShortWaits) return await waitForSlot(address);
      wait(address, refusal.group);
      return undefined;
    },
    hasRoom: (subscriptionId) => refusalOf(addressOf(subscriptionId)) === undefined,
    enterHost(slot, host) {
      const { address } = slot;
      if (address.host !== host) {
        // Its url has changed: what it was counted for is not where it goes.
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
        for (const one of [address, ...shared]) {
          one.meanMs = one.meanMs === undefined ? tookMs : one.meanMs + WEIGHT * (tookMs - one.meanMs);
        }
        address.failing += WEIGHT * (Number(failed) - address.failing);
      }
      endShortWaits();
      const waiting = new Set(shared.flatMap(bringBack));
      const rooms = [...waiting].map((subscriptionId) => ({ subscriptionId, deliveries: 1 }));
      const { free, waitsFor } = roomOf(address);
      // Where slow addresses compete, maintenance decides whose turn it is, or the first would keep its slots for ever.
      if (waitsFor === 'turn' || parked === 0) return rooms;
      const own =
        waiting.size > 0 ? 0 : Math.min(free, parked, ...groupsOf(address).map((group) => roomIn(group, address)));
      if (own > 0) rooms.push({ subscriptionId: address.id, deliveries: own });
      else if (address.inFlight.size === 0) wait(address, refusalOf(address)?.group ?? groupsOf(address)[0] ?? all);
      return rooms;
    },
  };
}

function newGroup(key: string): Group {
  return { key, inFlight: new Set(), meanMs: undefined, waiting: new Set() };
}
