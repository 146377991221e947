/**
 * Admission control for the attempts of one process: no address, no host and no number of slow addresses takes all of
 * its slots. slot-limits.ts has the rules, slot-groups.ts the state. This file acquires and releases slots.
 */
import { ActiveList, atMost, knownOrNew } from '@posthorn/core';
import type { LastOutcome } from '@posthorn/store';
import { LRUCache } from 'lru-cache';
import { HostGroups } from './host-groups.ts';
import { ReleasedDeliveries } from './released-deliveries.ts';
import { ShortWaits } from './short-waits.ts';
import {
  type Address,
  type Group,
  hostAndIpOf,
  join,
  learn,
  leave,
  newAddress,
  newGroup,
  type Slot,
} from './slot-groups.ts';
import { type LimitOptions, SLOW_MS, SlotLimits } from './slot-limits.ts';
import { WaitingAddresses } from './waiting-addresses.ts';

export type { Slot };

/**
 * How parked deliveries may follow an attempt to their address. `first`: this many are taken before the jobs of the
 * queue, because the process has room for them and no job in it waits for a slot. `last`: one, if the queue has no job
 * for this process. `share`: they are released into the queue, so that other workers get a part of the backlog.
 * `none`: other addresses wait, or this one has more than its share.
 */
type FollowUp = { kind: 'first'; deliveries: number } | { kind: 'last' | 'share' | 'none' };

/** The parked deliveries that were taken with the end of an attempt. */
export interface FollowedBy {
  followUp: FollowUp;
  jobs: readonly { id: string }[];
}

interface SlotOptions extends LimitOptions {
  /** How long `acquireSoon` waits. Default 100 ms. */
  shortWaitMs?: number;
}

/** How many parked deliveries of an address may acquire a slot. */
export interface Capacity {
  subscriptionId: string;
  deliveries: number;
}

/** How long a job waits in this process for an attempt to end before its delivery is parked. */
const SHORT_WAIT_MS = 100;
/** The share of all jobs in flight that may wait like this. */
const SHORT_WAIT_SHARE = 0.3;
/** How often the backlog of an address is shared with other workers. */
const SHARE_EVERY_MS = 100;
const NOT_FOLLOWED: FollowedBy = { followUp: { kind: 'none' }, jobs: [] };
const MAX_ADDRESSES = 10_000;

/** Why an attempt gets no slot: the group in which an attempt has to end first, and whether one probably ends soon. */
interface Refusal {
  group: Group | undefined;
  isSoon: boolean;
}

export class Slots {
  readonly #now: () => number;
  readonly #shortWaits: ShortWaits;
  readonly #waiting: WaitingAddresses;
  readonly #limits: SlotLimits;
  readonly #addresses = new LRUCache<string, Address>(atMost(MAX_ADDRESSES));
  readonly #hostGroups: HostGroups;
  readonly #all = newGroup('all');
  readonly #busy = new ActiveList<Address>();
  /** Slots that are kept for jobs, by job id, which have been taken and begin next. */
  readonly #kept = new ActiveList<{ jobId: string; slot: Slot }>();
  /** An address that has left its cache may still have attempts in flight. */
  readonly #busyOrNew = (id: string) => this.#busy.find((one) => one.id === id) ?? newAddress(id);
  readonly #perAddress: number;
  readonly #released: ReleasedDeliveries;

  constructor(options: SlotOptions) {
    this.#now = options.now;
    this.#perAddress = options.perAddress;
    this.#released = new ReleasedDeliveries(options.now);
    const state = { all: this.#all, busy: this.#busy, waitingSlow: new Set<Address>() };
    this.#limits = new SlotLimits(options, state);
    this.#hostGroups = new HostGroups(state, this.#limits);
    this.#waiting = new WaitingAddresses({
      ...state,
      limits: this.#limits,
      now: options.now,
      addressOf: (id) => this.#addressOf(id),
      releasedIn: (group) => this.#released.countIn(group, this.#all),
      refusalOf: (address) => this.#refusalOf(address),
    });
    this.#shortWaits = new ShortWaits({
      waitMs: options.shortWaitMs ?? SHORT_WAIT_MS,
      max: Math.floor(options.total * SHORT_WAIT_SHARE),
      refusalOf: (address) => this.#refusalOf(address),
      acquire: (address) => this.#acquire(address),
      acquireOrWait: ({ id }) => this.acquire(id),
    });
  }

  /** Whether nothing is known of an address, and `presume` was not called for it. */
  isNew(subscriptionId: string): boolean {
    return this.#addressOf(subscriptionId).isNew;
  }

  /**
   * Notes how the last attempts to a new address ended in other processes. If they were slow, it counts as slow until
   * an attempt has been fast. If they succeeded, it counts as known, though not as fast.
   */
  presume(subscriptionId: string, last: LastOutcome | undefined): void {
    const address = this.#addressOf(subscriptionId);
    if (!address.isNew) return;
    address.isNew = false;
    if (last === 'slow') address.meanMs = SLOW_MS + 1;
    else if (last === 'succeeded') address.learnedAtMs = 0;
  }

  /** Acquires a slot for an attempt to an address, without a wait; undefined if the delivery has to be parked. */
  acquire(subscriptionId: string): Slot | undefined {
    const address = this.#addressOf(subscriptionId);
    const refusal = this.#refusalOf(address);
    if (!refusal) return this.#acquire(address);
    this.#waiting.add(address, refusal.group);
    return undefined;
  }

  /**
   * Like `acquire`, for a job, which may have a slot that was kept for it. If an attempt that holds the slot probably
   * ends soon, waits up to `shortWaitMs` for it: this costs less than parking. Returns a promise only if it waits.
   */
  acquireSoon(subscriptionId: string, jobId?: string): Slot | undefined | Promise<Slot | undefined> {
    if (jobId !== undefined) {
      const kept = this.#kept.find((one) => one.jobId === jobId);
      if (kept) {
        this.#kept.delete(kept);
        return kept.slot;
      }
    }
    this.#released.cameBack(this.#addressOf(subscriptionId));
    return this.acquireAgain(subscriptionId);
  }

  /**
   * Like `acquireSoon`, but without a kept slot: also for a job that released its first slot because its host or IP,
   * unknown until then, was full.
   */
  acquireAgain(subscriptionId: string): Slot | undefined | Promise<Slot | undefined> {
    const address = this.#addressOf(subscriptionId);
    const refusal = this.#refusalOf(address);
    if (!refusal) return this.#acquire(address);
    const { group, isSoon } = refusal;
    if (group && isSoon && this.#shortWaits.hasRoom()) return this.#shortWaits.wait(address, group);
    this.#waiting.add(address, group);
    return undefined;
  }

  /** How many more deliveries of its addresses this process should take; see `Room` of packages/store. */
  room(): { perAddress: number; busy: string } {
    const busy = this.#limits.roomOfBusy().map(({ address, room }) => `${address.id} ${room}`);
    for (const { id } of this.#waiting.refused()) busy.push(`${id} 0`);
    return { perAddress: this.#perAddress, busy: busy.join(' ') };
  }

  /**
   * Notes that deliveries of an address were parked because it had no room. Returns true if the address can acquire a
   * slot now: the caller must then release one. Otherwise the next attempt that ends releases some, even if none was
   * parked when its end was recorded.
   */
  noteParked(subscriptionId: string): boolean {
    const address = this.#addressOf(subscriptionId);
    const refusal = this.#refusalOf(address);
    this.#released.forget(address);
    if (!refusal) {
      this.#released.add(address, 1);
      return true;
    }
    if (address.inFlight.size === 0) this.#waiting.add(address, refusal.group);
    else address.mayHaveParked = true;
    return false;
  }

  /**
   * Decides how parked deliveries may follow an attempt to their address that is over. `room`: how many further jobs
   * the process may take. To be called again if taking the deliveries failed.
   */
  followUpFor(slot: Slot, room: number): FollowUp {
    const { address } = slot;
    const nowMs = this.#now();
    this.#released.endFurther(slot);
    address.sharedAtMs ??= nowMs;
    if (nowMs - address.sharedAtMs >= SHARE_EVERY_MS) {
      address.sharedAtMs = nowMs;
      return { kind: 'share' };
    }
    const waitThere = ({ waiting, slowWaiting }: Group) => waiting.size + slowWaiting.size > 0;
    const othersWait = this.#waiting.isAnyWaiting() || hostAndIpOf(address).some(waitThere);
    if (othersWait || !this.#limits.isWithinShare(address)) return { kind: 'none' };
    if (room <= 0 || !this.#shortWaits.isEmpty()) return { kind: 'last' };
    return { kind: 'first', deliveries: 1 + this.#released.beginFurther(slot, room, this.#freeOf(address)) };
  }

  /** Whether an address has no free slot because its own attempts take all of them, and they are fast. */
  isFullButFast(subscriptionId: string): boolean {
    const address = this.#addressOf(subscriptionId);
    const { free, waitsFor } = this.#limits.capacityOf(address);
    return free <= 0 && waitsFor === 'own' && this.#limits.countsAsFast(address, this.#all);
  }

  /** Counts the attempt for its host. Returns false if the host has no free slot: then it must not be made. */
  enterHost(slot: Slot, host: string): boolean {
    return this.#hostGroups.enterHost(slot, host);
  }

  /** The same for the IP that is to be connected to. */
  enterIp(slot: Slot, ip: string): boolean {
    return this.#hostGroups.enterIp(slot, ip);
  }

  /** The attempt has its outcome, which is to be recorded: its host and its IP are free for others. */
  answered(slot: Slot): void {
    const { host, ip } = slot.address;
    slot.answered ??= { atMs: this.#now(), groups: slot.groups.filter((group) => group === host || group === ip) };
    for (const group of slot.answered.groups) leave(slot, group);
    this.#shortWaits.attemptEnded(slot.answered.groups);
  }

  /**
   * Ends the attempt: it failed, or it did not, or (undefined) it was not made. `parked`: how many deliveries of its
   * address are parked. `followedBy`: those of them that came with this end; where the address keeps slots for them,
   * `acquireSoon` returns those. Returns the addresses whose parked deliveries may acquire slots now.
   */
  release(slot: Slot, failed: boolean | undefined, parked: number, followedBy = NOT_FOLLOWED): Capacity[] {
    const { address } = slot;
    if (!address.inFlight.has(slot)) return [];
    this.#limits.attemptOver();
    address.inFlight.delete(slot);
    if (address.inFlight.size === 0) this.#busy.delete(address);
    const groups = slot.answered ? slot.groups.concat(slot.answered.groups) : slot.groups.slice();
    for (const group of groups) leave(slot, group);
    if (failed !== undefined) learn(slot, failed, groups, this.#now);
    const { followUp, jobs } = followedBy;
    this.#released.endFurther(slot);
    if (followUp.kind === 'first') {
      for (const { id } of jobs)
        if (!this.#refusalOf(address)) this.#kept.add({ jobId: id, slot: this.#acquire(address) });
    } else this.#released.add(address, jobs.length);
    this.#shortWaits.attemptEnded(groups);
    if (failed !== undefined && parked === 0 && !address.mayHaveParked) this.#waiting.remove(address);
    const capacities: Capacity[] = [];
    for (const group of groups) this.#addWoken(this.#waiting.wake(group), capacities);
    // If others have followed, their ends empty the lane: deliveries released now would only wait in the queue.
    const isFollowed = jobs.length > 0 && address.inFlight.size > 0;
    const mayRelease = isFollowed ? 0 : Math.max(parked, Number(address.mayHaveParked));
    const own = mayRelease > 0 ? this.#ownCapacity(address, mayRelease, capacities.length > 0) : 0;
    if (own > 0 || address.inFlight.size === 0) address.mayHaveParked = false;
    if (own > 0) {
      capacities.push({ subscriptionId: address.id, deliveries: own });
      // A delivery that is shared is for other workers.
      this.#released.add(address, followUp.kind === 'share' ? own - 1 : own);
    }
    return capacities;
  }

  /** Adds addresses that were woken, each for one delivery. */
  #addWoken(subscriptionIds: readonly string[], capacities: Capacity[]): void {
    for (const subscriptionId of subscriptionIds) {
      if (capacities.some((known) => known.subscriptionId === subscriptionId)) continue;
      capacities.push({ subscriptionId, deliveries: 1 });
      this.#released.add(this.#addressOf(subscriptionId), 1);
    }
  }

  /** How many parked deliveries may go out when an attempt to their address ends. If none may, the address waits. */
  #ownCapacity(address: Address, parked: number, othersWoken: boolean): number {
    const own = othersWoken ? 0 : Math.min(parked, this.#freeOf(address));
    if (own <= 0 && address.inFlight.size === 0) {
      const refusal = this.#refusalOf(address);
      this.#waiting.add(address, refusal ? refusal.group : this.#afterOthers(address));
    }
    return own;
  }

  /**
   * Where an address that has room waits while others go first: at its host or IP if attempts are in flight there,
   * since only their ends would wake it; otherwise among slow addresses (undefined), or for any attempt.
   */
  #afterOthers(address: Address): Group | undefined {
    const shared = hostAndIpOf(address).find(({ inFlight }) => inFlight.size > 0);
    return shared ?? (this.#limits.isSlow(address) ? undefined : this.#all);
  }

  /**
   * How many more slots an address may acquire, without those for which deliveries were just released. These count only
   * while the address has a slot: other workers may have taken the deliveries.
   */
  #freeOf(address: Address): number {
    const { free } = this.#limits.capacityOf(address);
    const inGroups = hostAndIpOf(address).map((group) => this.#limits.capacityIn(group, address));
    return Math.min(free, ...inGroups) - (address.inFlight.size > 0 ? this.#released.count(address) : 0);
  }

  #acquire(address: Address): Slot {
    const slot: Slot = { address, acquiredAtMs: this.#now(), groups: [] };
    if (address.inFlight.size === 0) this.#busy.add(address);
    address.inFlight.add(slot);
    this.#waiting.acquired(address);
    join(slot, this.#all);
    if (address.host) join(slot, address.host);
    if (address.ip) join(slot, address.ip);
    return slot;
  }

  #refusalOf(address: Address): Refusal | undefined {
    const { free, waitsFor } = this.#limits.capacityOf(address);
    if (free <= 0 && waitsFor !== 'any') return { group: undefined, isSoon: false };
    const full = free <= 0 ? this.#all : (this.#fullOf(address, address.host) ?? this.#fullOf(address, address.ip));
    return full && { group: full, isSoon: this.#limits.endsSoon(address, full) };
  }

  /** The group, if it has no slot for the address. */
  #fullOf(address: Address, group: Group | undefined): Group | undefined {
    return group && this.#limits.capacityIn(group, address) <= 0 ? group : undefined;
  }

  #addressOf(subscriptionId: string): Address {
    return knownOrNew(this.#addresses, subscriptionId, this.#busyOrNew);
  }
}
