/** What Redis says of the attempts of other processes to an address that this process meets for the first time. */
import { readLastOutcome, type Store } from '@posthorn/store';
import { SLOW_MS } from './slot-limits.ts';
import type { Slots } from './slots.ts';

interface Parts {
  store: Store;
  slots: Slots;
  /** Called if Redis can't be read. */
  onError: (error: Error) => void;
}

/**
 * Reads how the last attempts to new addresses ended. Otherwise a worker that starts knows no address, so hundreds that
 * hang may take the slots of all unknown ones, for one time limit after the other.
 */
export class EarlierAttempts {
  readonly #parts: Parts;
  readonly #reading = new Map<string, Promise<void>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * To be awaited before an attempt acquires a slot. Returns a promise only for an address that is new here; it never
   * rejects: an address that Redis does not tell of is unknown.
   */
  learn(subscriptionId: string): Promise<void> | undefined {
    if (!this.#parts.slots.isNew(subscriptionId)) return undefined;
    let reading = this.#reading.get(subscriptionId);
    if (!reading) {
      reading = this.#read(subscriptionId).finally(() => this.#reading.delete(subscriptionId));
      this.#reading.set(subscriptionId, reading);
    }
    return reading;
  }

  async #read(subscriptionId: string): Promise<void> {
    const { store, slots, onError } = this.#parts;
    const last = await readLastOutcome(store, subscriptionId, SLOW_MS).catch((err: Error) => {
      onError(err);
      return undefined;
    });
    slots.presume(subscriptionId, last);
  }
}
