/** Shares a limited resource (memory for bodies, events in flight) among callers, so that no caller can exhaust it. */

export type Budget = ReturnType<typeof createBudget>;

/**
 * Creates a budget that lets a caller's total grow to at most what is free before the growth. A single caller that
 * grows in small steps gets half of `total`. If `n` callers take as much as they can, each holds `1 / (n + 1)` of it,
 * and the same share stays free for the next caller.
 */
export function createBudget(total: number) {
  const heldBy = new Map<string, number>();
  let free = total;
  const change = (caller: string, by: number) => {
    free -= by;
    const held = (heldBy.get(caller) ?? 0) + by;
    if (held === 0) heldBy.delete(caller);
    else heldBy.set(caller, held);
  };
  /**
   * The share of the budget that one request holds. A class, since a request makes up to two: their methods are made
   * only once.
   */
  class Share {
    readonly #caller: string;
    #held = 0;
    #isReleased = false;
    constructor(caller: string) {
      this.#caller = caller;
    }
    /** Returns whether `growTo(amount)` would succeed now. */
    hasRoomFor(amount: number): boolean {
      return (
        !this.#isReleased && (amount <= this.#held || (heldBy.get(this.#caller) ?? 0) + amount - this.#held <= free)
      );
    }
    /** Raises the share to `amount`; never lowers it. Returns false and changes nothing if the budget is exhausted. */
    growTo(amount: number): boolean {
      if (!this.hasRoomFor(amount)) return false;
      if (amount > this.#held) {
        change(this.#caller, amount - this.#held);
        this.#held = amount;
      }
      return true;
    }
    /** Returns the whole share to the budget. Idempotent. */
    release(): void {
      if (this.#isReleased) return;
      this.#isReleased = true;
      change(this.#caller, -this.#held);
    }
  }
  return { shareFor: (caller: string) => new Share(caller) };
}
