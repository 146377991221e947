/** Jobs that wait in this process for a fast attempt to end: that costs less than parking their deliveries. */
import { ActiveList } from '@posthorn/core';
import type { Address, Slot } from './slot-groups.ts';

export interface ShortWaitOptions {
  /** How long a job waits at most. 0: none waits. */
  waitMs: number;
  /** How many wait at once. */
  max: number;
  /** Acquires a slot if one is free. */
  acquireIfFree: (address: Address) => Slot | undefined;
  /** The last try, when the time is up: without a slot, the address waits from then on. */
  acquireOrWait: (address: Address) => Slot | undefined;
}

/** When an attempt ends and this many waiting jobs are refused again, the others are not tried. This bounds the cost of each end. */
const MAX_REFUSED_AGAIN = 3;

export class ShortWaits {
  readonly #options: ShortWaitOptions;
  /** In order of arrival. */
  readonly #waiting = new ActiveList<{ address: Address; resolve: (slot: Slot) => void }>();

  constructor(options: ShortWaitOptions) {
    this.#options = options;
  }

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  hasRoom(): boolean {
    return this.#options.waitMs > 0 && this.#waiting.size < this.#options.max;
  }

  /** Waits for a slot; resolves to undefined if there was none in time. */
  wait(address: Address): Promise<Slot | undefined> {
    const { waitMs, acquireOrWait } = this.#options;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        resolve(acquireOrWait(address));
      }, waitMs);
      const waiting = {
        address,
        resolve(slot: Slot) {
          clearTimeout(timer);
          resolve(slot);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  /** An attempt has ended: gives free slots to the jobs that wait for one, in order of arrival. */
  attemptEnded(): void {
    for (let refused = 0; refused < MAX_REFUSED_AGAIN; ) {
      const waiting = this.#waiting.at(refused);
      if (!waiting) return;
      const slot = this.#options.acquireIfFree(waiting.address);
      if (slot) {
        this.#waiting.delete(waiting);
        waiting.resolve(slot);
      } else refused += 1;
    }
  }
}
