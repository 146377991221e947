/** Counts attempts for their host and their IP, once these are known (slots.ts). */
import { atMost, knownOrNew } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { type Group, join, leave, newGroup, type Slot } from './slot-groups.ts';
import type { SlotLimits, SlotState } from './slot-limits.ts';

const MAX_GROUPS = 10_000;

export class HostGroups {
  readonly #state: Pick<SlotState, 'all' | 'busy'>;
  readonly #limits: SlotLimits;
  /** Groups are kept longer than their attempts, for their moving means. */
  readonly #hosts = new LRUCache<string, Group>(atMost(MAX_GROUPS));
  readonly #ips = new LRUCache<string, Group>(atMost(MAX_GROUPS));
  /** A group that has left its cache may still have attempts in flight. */
  readonly #hostOrNew = (name: string) =>
    this.#state.busy.find(({ host }) => host?.name === name)?.host ?? newGroup(name);
  readonly #ipOrNew = (name: string) => this.#state.busy.find(({ ip }) => ip?.name === name)?.ip ?? newGroup(name);

  constructor(state: Pick<SlotState, 'all' | 'busy'>, limits: SlotLimits) {
    this.#state = state;
    this.#limits = limits;
  }

  /** Counts an attempt for its host. Returns false if the host has no free slot. */
  enterHost(slot: Slot, host: string): boolean {
    const group = knownOrNew(this.#hosts, host, this.#hostOrNew);
    // The url of the address has changed: its old IP no longer counts either.
    if (slot.address.host !== group) slot.address.ip = undefined;
    slot.address.host = group;
    return this.#enter(slot, group);
  }

  /** Counts an attempt for its IP. Returns false if the IP has no free slot. */
  enterIp(slot: Slot, ip: string): boolean {
    const group = knownOrNew(this.#ips, ip, this.#ipOrNew);
    slot.address.ip = group;
    return this.#enter(slot, group);
  }

  #enter(slot: Slot, group: Group): boolean {
    const { host, ip } = slot.address;
    const isOld = (each: Group) => each !== this.#state.all && each !== host && each !== ip;
    for (let old = slot.groups.find(isOld); old; old = slot.groups.find(isOld)) leave(slot, old);
    if (slot.groups.includes(group)) return true;
    if (this.#limits.capacityIn(group, slot.address) <= 0) return false;
    join(slot, group);
    return true;
  }
}
