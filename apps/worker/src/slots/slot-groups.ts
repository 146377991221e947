/** The state of admission control (slots.ts): attempts in flight, their addresses, and the groups they count in. */
import { ActiveList } from '@posthorn/core';

/** An attempt in flight. */
export interface Slot {
  readonly address: Address;
  readonly acquiredAtMs: number;
  /** The groups in which it counts: that of all attempts, its host and its IP. */
  readonly groups: Group[];
  /** Deliveries of its address that are being taken with its end, beyond the one that gets this slot. */
  further?: number;
  /** When its outcome was known, and the host and IP that it has left since. */
  answered?: { atMs: number; groups: readonly Group[] };
}

export interface Address {
  id: string;
  inFlight: ActiveList<Slot>;
  /** Moving mean of how long its attempts took; undefined before the first has ended. */
  meanMs: number | undefined;
  /** When its last attempt ended; before the first one, -Infinity, or 0 if it succeeded in an earlier process. */
  learnedAtMs: number;
  /** Whether neither an attempt has ended nor `Slots.presume` was called. */
  isNew: boolean;
  /** Moving mean of the attempts' outcomes: 1 for a failure, 0 for a success. */
  failing: number;
  refusedAtMs: number;
  /** Deliveries of it were parked since its last attempt ended. */
  mayHaveParked: boolean;
  /** When a parked delivery was last released for other workers; before the first time, when an attempt ended. */
  sharedAtMs: number | undefined;
  /** Its deliveries that were released and have not come back as jobs, and when the first of them was. */
  released: number;
  releasedAtMs: number;
  /** The host and the IP of its last attempt. */
  host: Group | undefined;
  ip: Group | undefined;
}

/** The attempts in flight to one host, or to one IP, or all of them. */
export interface Group {
  readonly name: string;
  inFlight: ActiveList<Slot>;
  /** Moving mean of how long its attempts took. */
  meanMs: number | undefined;
  /** Addresses that were refused here, longest wait first. */
  waiting: Set<string>;
  /**
   * The same for slow ones, which may have no slot where others have one. In the group of all attempts: those without
   * an attempt in flight, which compete for the slots of slow addresses.
   */
  slowWaiting: Set<string>;
}

/** Weight of the latest attempt in the moving means. */
const WEIGHT = 0.3;

/** Counts a slot in a group. */
export function join(slot: Slot, group: Group): void {
  group.inFlight.add(slot);
  slot.groups.push(group);
}

/** The opposite of `join`. Idempotent. */
export function leave(slot: Slot, group: Group): void {
  const at = slot.groups.indexOf(group);
  if (at === -1) return;
  slot.groups.splice(at, 1);
  group.inFlight.delete(slot);
}

/** Updates the moving means after an attempt, which counted in these groups. */
export function learn(
  { address, acquiredAtMs, answered }: Slot,
  failed: boolean,
  groups: readonly Group[],
  now: () => number,
): void {
  const tookMs = (answered?.atMs ?? now()) - acquiredAtMs;
  addToMean(address, tookMs);
  address.learnedAtMs = now();
  address.isNew = false;
  for (const group of groups) addToMean(group, tookMs);
  address.failing += WEIGHT * (Number(failed) - address.failing);
}

function addToMean(where: Address | Group, tookMs: number): void {
  where.meanMs = where.meanMs === undefined ? tookMs : where.meanMs + WEIGHT * (tookMs - where.meanMs);
}

/** The host and the IP of the last attempt to an address. */
export function hostAndIpOf({ host, ip }: Address): Group[] {
  return [host, ip].filter((group) => group !== undefined);
}

export function newAddress(id: string): Address {
  return {
    id,
    inFlight: new ActiveList(),
    meanMs: undefined,
    learnedAtMs: Number.NEGATIVE_INFINITY,
    isNew: true,
    failing: 0,
    refusedAtMs: 0,
    mayHaveParked: false,
    sharedAtMs: undefined,
    released: 0,
    releasedAtMs: Number.NEGATIVE_INFINITY,
    host: undefined,
    ip: undefined,
  };
}

export function newGroup(name: string): Group {
  return { name, inFlight: new ActiveList(), meanMs: undefined, waiting: new Set(), slowWaiting: new Set() };
}
