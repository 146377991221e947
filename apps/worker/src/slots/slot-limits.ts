/**
 * The rules of admission control: how many more slots an address may acquire. docs/architecture.md says why each rule
 * exists.
 */
import { type ActiveList, FAST_MS } from '@posthorn/core';
import type { Address, Group } from './slot-groups.ts';

export interface LimitOptions {
  /** Attempts in flight in all. */
  total: number;
  /** Attempts in flight to one address. */
  perAddress: number;
  /** Attempts in flight to one host, and to one IP, of addresses that are not known to be fast. */
  perHost: number;
  /** Milliseconds since any fixed moment. */
  now: () => number;
}

/** The attempts in flight and the addresses that wait. */
export interface SlotState {
  all: Group;
  /** Addresses with attempts in flight. */
  busy: ActiveList<Address>;
  /** Slow addresses that were refused recently and have nothing in flight. */
  waitingSlow: Set<Address>;
}

/** An address is slow if its attempts take longer than this, or one in flight already has. */
export const SLOW_MS = 500;
/** The share of all slots that slow addresses have together. */
const SLOW_SHARE = 0.5;
/** The share of all slots for further attempts and unknown addresses. The rest is for first attempts of known ones. */
const FURTHER_SHARE = 0.7;
/** The share of all slots that slow and unknown addresses always leave to first attempts of known ones. */
const KNOWN_SHARE = 0.1;
/** The share of all slots that unknown addresses have although first attempts of known ones would take all. */
const UNKNOWN_SHARE = 0.1;
/** The share of all slots that the fast addresses of one host, or of one IP, may use. */
const FAST_HOST_SHARE = 0.7;
/** The share of a host's slots that its slow addresses leave to unknown ones. */
const NEW_SHARE = 0.2;
/** An address is failing if its moving mean of failed attempts is above this: none of the last seven succeeded. */
const FAILING = 0.9;
/** The share of its slots that a failing address keeps. */
const FAILING_SHARE = 0.2;
/** A slow address that was refused counts as waiting for this long. */
const WAITING_MS = 5_000;
/** Unknown addresses leave slots to slow ones for this long after one of these wanted a slot last. */
const SLOW_ARE_HERE_MS = 60_000;

/**
 * The slow addresses that have or want slots, and the slots that they have; apart from them the slots of unknown
 * addresses whose first attempts hang.
 */
interface SlowAddresses {
  count: number;
  slots: number;
  unknownSlots: number;
}

/** Slots in flight. The first one of each known address that is not slow counts in none of these. */
interface Taken {
  all: number;
  /** Without those of slow addresses. */
  further: number;
  /** Of unknown addresses, also of those that hang. */
  unknown: number;
}

/** The loops run for each attempt, so they go by index: the iterator of an ActiveList would copy the list. */
export class SlotLimits {
  readonly #options: LimitOptions;
  readonly #state: SlotState;
  readonly #slow: number;
  readonly #further: number;
  readonly #unreserved: number;
  readonly #unknown: number;
  readonly #failing: number;
  readonly #fastHost: number;
  readonly #slowHost: number;
  /** When known addresses last hung together and had all slots: what was known of any address then may be wrong. */
  #hungAtMs = Number.NEGATIVE_INFINITY;
  /** When a known slow address last wanted a slot. */
  #slowCameAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: LimitOptions, state: SlotState) {
    const { total, perAddress, perHost } = options;
    this.#options = options;
    this.#state = state;
    this.#slow = atLeastOne(total * SLOW_SHARE);
    this.#further = atLeastOne(total * FURTHER_SHARE);
    this.#unreserved = atLeastOne(total * (1 - KNOWN_SHARE));
    this.#unknown = atLeastOne(total * UNKNOWN_SHARE);
    this.#failing = atLeastOne(perAddress * FAILING_SHARE);
    this.#fastHost = Math.max(perHost, atLeastOne(total * FAST_HOST_SHARE));
    this.#slowHost = atLeastOne(perHost * (1 - NEW_SHARE));
  }

  /**
   * How many more slots the address may acquire, apart from the limits of its host and IP. `waitsFor` says what must
   * happen first if there are none: an attempt to this address or to any address ends, or the turn of a slow one comes.
   */
  capacityOf(address: Address): { free: number; waitsFor: 'own' | 'any' | 'turn' } {
    const own = address.inFlight.size;
    const ownFree = this.#ownFreeOf(address);
    if (ownFree <= 0) return { free: 0, waitsFor: 'own' };
    if (this.isSlow(address)) {
      if (!isUnknown(address)) this.#slowCameAtMs = this.#options.now();
      const slow = this.#countSlow();
      return { free: Math.min(this.#freeForSlow(slow), this.#slowFreeOf(address, slow)), waitsFor: 'turn' };
    }
    const inFlight = this.#state.all.inFlight.size;
    const free = Math.min(ownFree, this.#options.total - inFlight);
    // The address fits even if all attempts in flight were further ones: no need to count those.
    if (inFlight + free <= this.#further) return { free, waitsFor: 'any' };
    const first = own === 0 && this.#isKnown(address) ? 1 : 0;
    const taken = this.#countTaken();
    const left = isUnknown(address) ? this.#freeForUnknown(taken) : this.#unreserved - inFlight;
    const further = Math.min(this.#further - taken.further, left);
    return { free: Math.min(free, first + Math.max(0, further)), waitsFor: 'any' };
  }

  /** To be called when an attempt is over, before its slot is free. */
  attemptOver(): void {
    const { all } = this.#state;
    if (all.inFlight.size < this.#options.total) return;
    const nowMs = this.#options.now();
    if (!isStalled(all, nowMs)) return;
    const { slots, unknownSlots } = this.#countSlow();
    if (slots + unknownSlots > this.#unreserved) this.#hungAtMs = nowMs;
  }

  /** How many more slots of a host or an IP (or of all) are free for addresses like this one. */
  capacityIn(group: Group, address: Address): number {
    if (group === this.#state.all)
      return this.isSlow(address) ? this.#freeForSlow(this.#countSlow()) : this.capacityOf(address).free;
    const nowMs = this.#options.now();
    if (this.countsAsFast(address, group, nowMs)) return this.#fastHost - group.inFlight.size;
    let others = 0;
    let isShared = false;
    for (let i = 0, slot = group.inFlight.at(0); slot; slot = group.inFlight.at(++i)) {
      const { address: other } = slot;
      if (other !== address) isShared = true;
      if (!this.countsAsFast(other, group, nowMs)) others += 1;
    }
    return (isShared && this.isSlow(address, nowMs) ? this.#slowHost : this.#options.perHost) - others;
  }

  /**
   * For each address that is slow or uses half of its slots: how many more of its deliveries may be taken. Only its own
   * attempts count: an address that waits for those of others soon gets a slot.
   */
  roomOfBusy(): { address: Address; room: number }[] {
    const nowMs = this.#options.now();
    const { busy } = this.#state;
    let slow: SlowAddresses | undefined;
    const rooms: { address: Address; room: number }[] = [];
    for (let i = 0, address = busy.at(0); address; address = busy.at(++i)) {
      const ownFree = this.#ownFreeOf(address);
      if (this.isSlow(address, nowMs)) {
        slow ??= this.#countSlow();
        rooms.push({ address, room: Math.max(0, this.#slowFreeOf(address, slow)) });
      } else if (address.inFlight.size >= ownFree) rooms.push({ address, room: Math.max(0, ownFree) });
    }
    return rooms;
  }

  /** Whether the address has no more slots than it may have now, and no slow address waits for a slot. */
  isWithinShare(address: Address): boolean {
    if (!this.isSlow(address)) return this.#ownFreeOf(address) >= 0;
    const slow = this.#countSlow();
    return this.#slowFreeOf(address, slow) >= 0 && slow.slots + slow.count <= this.#sharedBy(slow);
  }

  /** Whether the address is fast; an unknown address counts as fast in a fast group. */
  countsAsFast(address: Address, group: Group, nowMs = this.#options.now()): boolean {
    return isFast(address, nowMs) || (address.meanMs === undefined && isFast(group, nowMs));
  }

  /**
   * Whether an attempt in a group that is full for the address probably ends soon. It does if the address counts as
   * fast there; if neither the address nor the group is known yet and no attempt in the group has taken long; or if a
   * known address only waits for one of all slots. (One that was known before all slots hung may hang as well.)
   */
  endsSoon(address: Address, group: Group): boolean {
    if (group === this.#state.all && !isUnknown(address)) return this.#isKnown(address);
    const nowMs = this.#options.now();
    if (this.countsAsFast(address, group, nowMs)) return true;
    return address.meanMs === undefined && group.meanMs === undefined && !hasTaken(group, FAST_MS, nowMs);
  }

  isSlow(address: Address, nowMs = this.#options.now()): boolean {
    return (address.meanMs ?? 0) > SLOW_MS || isStalled(address, nowMs);
  }

  /** Whether an attempt to it has ended, and since all slots hung last. Before that, one in another process counts. */
  #isKnown({ learnedAtMs }: Address): boolean {
    return learnedAtMs > this.#hungAtMs;
  }

  #ownFreeOf(address: Address): number {
    return (address.failing > FAILING ? this.#failing : this.#options.perAddress) - address.inFlight.size;
  }

  /** How many more slots all slow addresses may have together. */
  #freeForSlow({ slots }: SlowAddresses): number {
    const totalFree = this.#options.total - this.#state.all.inFlight.size;
    return Math.min(totalFree, this.#unreserved - this.#countTaken().all, this.#slow - slots);
  }

  /** How many more slots all unknown addresses may have together. */
  #freeForUnknown({ all, unknown }: Taken): number {
    const besideFirst = Math.min(this.#unknown - unknown, this.#unreserved - all);
    const left = Math.max(besideFirst, this.#unreserved - this.#state.all.inFlight.size);
    return Math.min(this.#mostUnknown() - unknown, left);
  }

  /** How many slots all unknown addresses may have. */
  #mostUnknown(): number {
    return this.#options.now() - this.#slowCameAtMs < SLOW_ARE_HERE_MS ? this.#further : this.#unreserved;
  }

  /** How many slots all slow addresses share. */
  #sharedBy({ unknownSlots }: SlowAddresses): number {
    return Math.min(this.#slow, this.#unreserved - unknownSlots);
  }

  /**
   * How many more slots a slow address may have; negative if it has more than its share. None if only its attempts in
   * flight say that it is slow.
   */
  #slowFreeOf(address: Address, slow: SlowAddresses): number {
    if (isUnknown(address)) return 0;
    const shared = this.#sharedBy(slow);
    const fairShare = atLeastOne(shared / Math.max(1, slow.count));
    return Math.min(this.#ownFreeOf(address), fairShare - address.inFlight.size, shared - slow.slots);
  }

  #countTaken(): Taken {
    const taken: Taken = { all: 0, further: 0, unknown: 0 };
    const nowMs = this.#options.now();
    const { busy } = this.#state;
    for (let i = 0, address = busy.at(0); address; address = busy.at(++i)) {
      const isSlow = this.isSlow(address, nowMs);
      const slots = address.inFlight.size - (!isSlow && this.#isKnown(address) ? 1 : 0);
      taken.all += slots;
      if (!isSlow) taken.further += slots;
      if (isUnknown(address)) taken.unknown += slots;
    }
    return taken;
  }

  #countSlow(): SlowAddresses {
    let count = 0;
    let slots = 0;
    let unknownSlots = 0;
    const nowMs = this.#options.now();
    const { busy, waitingSlow } = this.#state;
    for (let i = 0, address = busy.at(0); address; address = busy.at(++i)) {
      if (!this.isSlow(address, nowMs)) continue;
      if (isUnknown(address)) unknownSlots += address.inFlight.size;
      else {
        count += 1;
        slots += address.inFlight.size;
      }
    }
    for (const address of waitingSlow) {
      if (nowMs - address.refusedAtMs > WAITING_MS || address.inFlight.size > 0) waitingSlow.delete(address);
      else count += 1;
    }
    return { count, slots, unknownSlots };
  }
}

function atLeastOne(slots: number): number {
  return Math.max(1, Math.floor(slots));
}

/** Whether nothing is known of an address, neither from an attempt that ended nor from other processes. */
export function isUnknown({ meanMs, learnedAtMs }: Address): boolean {
  return meanMs === undefined && learnedAtMs < 0;
}

function isFast(where: Address | Group, nowMs: number): boolean {
  return where.meanMs !== undefined && where.meanMs < FAST_MS && !isStalled(where, nowMs);
}

/** Whether its oldest attempt in flight already makes it slow. */
function isStalled(where: Address | Group, nowMs: number): boolean {
  return hasTaken(where, SLOW_MS, nowMs);
}

/** Whether an attempt in flight has taken longer than that. */
function hasTaken({ inFlight }: Address | Group, overMs: number, nowMs: number): boolean {
  const oldest = inFlight.at(0);
  return oldest !== undefined && nowMs - oldest.acquiredAtMs > overMs;
}
