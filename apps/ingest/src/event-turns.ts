/**
 * Begins a few events in each turn of the event loop, and alternates between publishers. Node accepts one connection
 * per turn, so long turns would delay every new call, even one that is then refused.
 */

/** A turn with this many takes a millisecond or less. More of them in a script would not make an event cheaper. */
const EVENTS_OF_A_TURN = 16;
/** A turn that has taken this long begins no more: a large event or body takes longer than 16 small ones. */
const MAX_TURN_MS = 2;

interface Waiting {
  publisher: string;
  /** Not empty. */
  begins: (() => void)[];
}

export class EventTurns {
  /** The publishers whose events wait; the next one first. */
  readonly #waiting: Waiting[] = [];
  readonly #now: () => number;
  #begun = 0;
  #beganAtMs = 0;
  #isScheduled = false;

  /** `now` is in milliseconds since any fixed moment. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Returns undefined if an event or large body of this publisher may begin now, else a promise that resolves then. */
  turnFor(publisher: string): Promise<void> | undefined {
    this.#schedule();
    if (this.#waiting.length === 0 && this.#hasRoom()) {
      this.#begin();
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
    setImmediate(async () => {
      this.#isScheduled = false;
      await this.#beginTurn();
      if (this.#begun > 0) this.#schedule();
    });
  }

  async #beginTurn(): Promise<void> {
    this.#begun = 0;
    while (this.#hasRoom()) {
      const next = this.#waiting.shift();
      if (!next) return;
      if (next.begins.length > 1) this.#waiting.push(next);
      this.#begin();
      next.begins.shift()?.();
      // Lets the event run until its first wait.
      await undefined;
    }
  }

  #hasRoom(): boolean {
    return this.#begun === 0 || (this.#begun < EVENTS_OF_A_TURN && this.#now() - this.#beganAtMs < MAX_TURN_MS);
  }

  #begin(): void {
    if (this.#begun === 0) this.#beganAtMs = this.#now();
    this.#begun += 1;
  }
}
