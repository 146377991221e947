/**
 * Counts the deliveries that were released, or are being taken, for free slots of this process and have not come yet:
 * no others may be released for the same slots.
 */
import { type Address, type Group, hostAndIpOf, type Slot } from './slot-groups.ts';

/** After this, a released delivery has come back as a job, or another worker has it, or it waits behind others. */
const RELEASED_MS = 100;
/** How many parked deliveries may follow an attempt, besides the one that gets its slot. */
const MAX_FURTHER = 3;

export class ReleasedDeliveries {
  readonly #now: () => number;
  /** The addresses that they belong to, oldest release first. */
  readonly #addresses = new Set<Address>();
  /** Deliveries that are being taken beyond the one for each attempt that ends. */
  #further = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many deliveries of an address were released a moment ago and will need slots of this process. */
  count(address: Address): number {
    return this.#now() - address.releasedAtMs < RELEASED_MS ? address.released : 0;
  }

  /** The same for all addresses, or for those of a host or an IP. */
  countIn(group: Group, all: Group): number {
    let deliveries = 0;
    for (const address of this.#addresses)
      if (group === all || hostAndIpOf(address).includes(group)) deliveries += this.count(address);
    return deliveries;
  }

  add(address: Address, deliveries: number): void {
    if (deliveries === 0) return;
    const before = this.count(address);
    if (before === 0) {
      address.releasedAtMs = this.#now();
      this.#addresses.delete(address);
      this.#addresses.add(address);
    }
    address.released = before + deliveries;
    for (const oldest of this.#addresses) {
      if (this.count(oldest) > 0) break;
      this.#addresses.delete(oldest);
    }
  }

  /** A job of an address has come, perhaps that of a released one. */
  cameBack(address: Address): void {
    if (address.released > 0) address.released -= 1;
  }

  /** Deliveries of an address were parked, perhaps those that were released. */
  forget(address: Address): void {
    address.released = 0;
  }

  /**
   * Counts the parked deliveries that may follow an attempt, besides the one that gets its slot. Returns their number:
   * at most `free`, and at most `room` over all attempts.
   */
  beginFurther(slot: Slot, room: number, free: number): number {
    const further = Math.max(0, Math.min(MAX_FURTHER, room - this.#further, free));
    slot.further = further;
    this.#further += further;
    this.add(slot.address, further);
    return further;
  }

  /** To be called when these deliveries were taken, or could not be. */
  endFurther(slot: Slot): void {
    const further = slot.further ?? 0;
    this.#further -= further;
    slot.address.released = Math.max(0, slot.address.released - further);
    slot.further = 0;
  }
}
