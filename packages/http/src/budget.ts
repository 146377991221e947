/** Shares something scarce (memory for bodies, events in flight) among callers, so that no caller can use up all of it. */

/** What one request holds of a budget. */
interface Claim {
  /** Whether `growTo(amount)` would succeed now. */
  hasRoomFor(amount: number): boolean;
  /** Raises what the request holds to `amount`; never lowers it. False, and nothing changed, where there is no room. */
  growTo(amount: number): boolean;
  /** Gives everything back. May be called more than once. */
  release(): void;
}

export interface Budget {
  claimFor(caller: string): Claim;
}

/**
 * A budget of `total` in which a caller may hold at most as much as is still free. One caller alone gets half of it; with `n` callers that
 * take all they can, each has a share of `1 / (n + 1)`, and as much stays free for the next one.
 */
export function createBudget(total: number): Budget {
  const heldBy = new Map<string, number>();
  let free = total;
  const change = (caller: string, by: number) => {
    free -= by;
    const held = (heldBy.get(caller) ?? 0) + by;
    if (held === 0) heldBy.delete(caller);
    else heldBy.set(caller, held);
  };
  return {
    claimFor(caller) {
      let held = 0;
      let released = false;
      const hasRoomFor = (amount: number) =>
        !released && (amount <= held || (heldBy.get(caller) ?? 0) + amount - held <= free);
      return {
        hasRoomFor,
        growTo(amount) {
          if (!hasRoomFor(amount)) return false;
          if (amount > held) {
            change(caller, amount - held);
            held = amount;
          }
          return true;
        },
        release() {
          if (released) return;
          released = true;
          change(caller, -held);
        },
      };
    },
  };
}
