/** Lets jobs wait in this process for an attempt that probably ends soon: this costs less than parking deliveries. */
import { ActiveList } from '@posthorn/core';
import type { Address, Group, Slot } from './slot-groups.ts';

interface ShortWaitOptions {
  /** How long a job waits at most. 0: none waits. */
  waitMs: number;
  /** How many wait at once. */
  max: number;
  /** Why an address gets no slot now; undefined if it gets one. `group`: where an attempt has to end first. */
  refusalOf: (address: Address) => { group: Group | undefined } | undefined;
  acquire: (address: Address) => Slot;
  /** The last try when the time is up: if it gets no slot, the address counts as waiting from then on. */
  acquireOrWait: (address: Address) => Slot | undefined;
}

/** When an attempt ends, jobs that wait are tried until this many are refused: a bound on the cost of each end. */
const MAX_REFUSED_AGAIN = 3;

export class ShortWaits {
  readonly #options: ShortWaitOptions;
  /** In order of arrival. */
  readonly #waiting = new ActiveList<{ address: Address; group: Group; resolve: (slot: Slot) => void }>();

  constructor(options: ShortWaitOptions) {
    this.#options = options;
  }

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  hasRoom(): boolean {
    return this.#options.waitMs > 0 && this.#waiting.size < this.#options.max;
  }

  /** Waits for a slot of a group; resolves to undefined if there was none in time. */
  wait(address: Address, group: Group): Promise<Slot | undefined> {
    const { waitMs, acquireOrWait } = this.#options;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        resolve(acquireOrWait(address));
      }, waitMs);
      const waiting = {
        address,
        group,
        resolve(slot: Slot) {
          clearTimeout(timer);
          resolve(slot);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  /** An attempt has ended in these groups: gives free slots to the jobs that wait for them, in order of arrival. */
  attemptEnded(groups: readonly Group[]): void {
    if (this.isEmpty()) return;
    const { refusalOf, acquire } = this.#options;
    let refused = 0;
    for (const waiting of this.#waiting) {
      if (!groups.includes(waiting.group)) continue;
      const refusal = refusalOf(waiting.address);
      if (!refusal) {
        this.#waiting.delete(waiting);
        waiting.resolve(acquire(waiting.address));
        continue;
      }
      waiting.group = refusal.group ?? waiting.group;
      refused += 1;
      if (refused === MAX_REFUSED_AGAIN) return;
    }
  }
}
