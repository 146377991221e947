/** Keeps the addresses whose deliveries found no slot, and picks those whose turn it is when an attempt ends. */
import { type Address, type Group, hostAndIpOf } from './slot-groups.ts';
import { isUnknown, type SlotLimits, type SlotState } from './slot-limits.ts';

interface WaitingOptions extends Pick<SlotState, 'all' | 'waitingSlow'> {
  limits: SlotLimits;
  now: () => number;
  addressOf: (subscriptionId: string) => Address;
  /** How many deliveries were released a moment ago and will need slots of a group. */
  releasedIn: (group: Group) => number;
  /** Why an address gets no slot now; undefined if it gets one. `group`: where an attempt has to end first. */
  refusalOf: (address: Address) => { group: Group | undefined } | undefined;
}

/** How long an address counts as without room after its host or IP had no slot for it. */
const REFUSED_MS = 50;
const MAX_REFUSED = 100;
/** The most addresses remembered as waiting: for one host or IP, for any slot, or as slow addresses. */
const MAX_WAITING = 10_000;
/** The most slow addresses that count as waiting when shares are calculated: that goes through all of them. */
const MAX_SHARING = 1_000;
/** The most waiting addresses, and slow ones, that an ending attempt wakes in each of its groups. */
const MAX_WOKEN = 5;
/** The most of them that it looks at: thousands may wait for a host that is full. */
const MAX_LOOKED_AT = 500;
const NOBODY: readonly string[] = [];

export class WaitingAddresses {
  readonly #options: WaitingOptions;
  /** Unknown addresses that wait for any slot, longest wait first. */
  readonly #unknownWaiting = new Set<string>();
  /** Addresses whose host or IP had no slot a moment ago. */
  readonly #refused = new Set<Address>();

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  /**
   * An address has no slot until an attempt ends in the group. Undefined: until one to the address itself ends, or, if
   * it is slow and has none in flight, until its turn comes.
   */
  add(address: Address, group: Group | undefined): void {
    const { all, waitingSlow, limits, now } = this.#options;
    address.refusedAtMs = now();
    if (limits.isSlow(address) && waitingSlow.size < MAX_SHARING) waitingSlow.add(address);
    this.#addTo(group, address);
    if (group && group !== all && this.#refused.size < MAX_REFUSED) this.#refused.add(address);
  }

  #addTo(group: Group | undefined, address: Address): void {
    const { all, limits } = this.#options;
    // One with an attempt in flight could not be woken, and waits from the end of that.
    if (!group && (!limits.isSlow(address) || address.inFlight.size > 0)) return;
    const line = this.#lineOf(address, group ?? all);
    if (line.size < MAX_WAITING) line.add(address.id);
  }

  /** Where an address waits for a group. Unknown and slow ones may have no slot where others have one. */
  #lineOf(address: Address, group: Group): Set<string> {
    const { all, limits } = this.#options;
    if (limits.isSlow(address)) return group.slowWaiting;
    return group === all && isUnknown(address) ? this.#unknownWaiting : group.waiting;
  }

  /** Nothing of an address is parked any more. */
  remove(address: Address): void {
    this.#unknownWaiting.delete(address.id);
    for (const { waiting, slowWaiting } of [this.#options.all, ...hostAndIpOf(address)]) {
      waiting.delete(address.id);
      slowWaiting.delete(address.id);
    }
  }

  /** Whether an address that is not slow waits for any slot. */
  isAnyWaiting(): boolean {
    return this.#options.all.waiting.size + this.#unknownWaiting.size > 0;
  }

  /**
   * Removes and returns the addresses that have waited longest for a group and can acquire a slot now. Of each line it
   * is one in any case, since another worker may take what was released a moment ago; more if there are slots for that
   * and for them. But if unknown addresses go on, which have a limit of their own, others need slots beside them.
   */
  wake(group: Group): readonly string[] {
    const unknown = group === this.#options.all ? this.#wake(this.#unknownWaiting, group, 0) : NOBODY;
    const others = this.#wake(group.waiting, group, unknown.length);
    return unknown.concat(others, this.#wake(group.slowWaiting, group, unknown.length));
  }

  /** `taken`: slots that addresses of another line get first. */
  #wake(line: Set<string>, group: Group, taken: number): readonly string[] {
    if (line.size === 0) return NOBODY;
    const { limits, addressOf, releasedIn, refusalOf } = this.#options;
    const ids: string[] = [];
    const released = releasedIn(group);
    let lookedAt = 0;
    for (const id of line) {
      if (ids.length >= MAX_WOKEN || lookedAt++ >= MAX_LOOKED_AT) break;
      const address = addressOf(id);
      if (this.#lineOf(address, group) !== line) {
        // It has become known, slow or fast since it was refused.
        line.delete(id);
        this.#addTo(group, address);
        continue;
      }
      const used = ids.length + taken === 0 ? 0 : ids.length + taken + released;
      if (used >= limits.capacityIn(group, address)) break;
      line.delete(id);
      const refusal = refusalOf(address);
      if (refusal) this.#addTo(refusal.group, address);
      else ids.push(id);
    }
    return ids;
  }

  /** The addresses whose host or IP refused them a moment ago. */
  refused(): ReadonlySet<Address> {
    const nowMs = this.#options.now();
    for (const address of this.#refused) if (nowMs - address.refusedAtMs >= REFUSED_MS) this.#refused.delete(address);
    return this.#refused;
  }

  /** An address has acquired a slot. */
  acquired(address: Address): void {
    this.#refused.delete(address);
    this.#options.all.slowWaiting.delete(address.id);
  }
}
