/** Counts the addresses that the latest jobs of a partition are for: the more there are, the more slots it needs. */

/** Addresses that are counted. More would not need more slots: by default, ten addresses can use all of a process. */
const MAX_ADDRESSES = 10;
/** An address counts until this many jobs for others were taken after its last one. */
const LATEST_JOBS = 64;

export class RecentAddresses {
  readonly #known: { address: string; takenAt: number }[] = [];
  /** Jobs taken so far. */
  #taken = 0;
  /** At least 1. */
  count = 1;

  /** Notes that a job for this address was taken. */
  took(address: string): void {
    this.#taken += 1;
    let isKnown = false;
    // Backwards, since one that has not been seen for long leaves the list meanwhile.
    for (let i = this.#known.length - 1; i >= 0; i--) {
      const one = this.#known[i];
      if (one?.address === address) {
        one.takenAt = this.#taken;
        isKnown = true;
      } else if (one && one.takenAt < this.#taken - LATEST_JOBS) this.#known.splice(i, 1);
    }
    if (!isKnown && this.#known.length < MAX_ADDRESSES) this.#known.push({ address, takenAt: this.#taken });
    this.count = this.#known.length;
  }
}
