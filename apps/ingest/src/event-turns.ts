/**
 * Begins a few events in each turn of the event loop, those of publishers in turns. Node accepts one connection in a turn, so long turns would let calls wait
 * to be accepted, in place of a response that refuses them.
 */

/** A turn with so many takes a millisecond or less. More of them in a script would not make an event cheaper. */
const EVENTS_OF_A_TURN = 16;

interface Waiting {
  publisher: string;
  /** Not empty. */
  begins: (() => void)[];
}

export class EventTurns {
  /** The publishers whose events wait; the next one first. */
  readonly #waiting: Waiting[] = [];
  #begun = 0;
  #isScheduled = false;

  /** Returns undefined if an event of this publisher may begin now, or else a promise that resolves when it may. */
  turnFor(publisher: string): Promise<void> | undefined {
    this.#schedule();
    if (this.#begun < EVENTS_OF_A_TURN) {
      this.#begun += 1;
      return undefined;
    }
    return new Promise((resolve) => {
      const own = this.#waiting.find((one) => one.publisher === publisher);
      if (own) own.begins.push(resolve);
      else this.#waiting.push({ publisher, begins: [resolve] });
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#beginTurn();
      if (this.#begun > 0) this.#schedule();
    });
  }

  #beginTurn(): void {
    for (this.#begun = 0; this.#begun < EVENTS_OF_A_TURN; this.#begun++) {
      const next = this.#waiting.shift();
      if (!next) return;
      next.begins.shift()?.();
      if (next.begins.length > 0) this.#waiting.push(next);
    }
  }
}
