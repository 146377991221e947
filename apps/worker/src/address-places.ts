/** Shares the attempts that a process has in flight among addresses, so that no address and no number of slow ones takes them all. */

export interface AddressPlaces {
  /** Takes a place at an address; answers false where it gets none now. */
  take(subscriptionId: string): boolean;
  /** Gives a place back, once what it was taken for is over: an attempt that failed, or that did not, or (undefined) none. */
  free(subscriptionId: string, failed: boolean | undefined): void;
  /** How many more of the deliveries that wait for this address should be brought back now. */
  room(subscriptionId: string): number;
}

export interface PlacesOptions {
  /** Places in all. */
  total: number;
  /** Places of one address at most. */
  perAddress: number;
  /** Milliseconds since any fixed moment. */
  now: () => number;
}

/** An address whose attempts take longer than this is slow. */
const SLOW_MS = 500;
/** The share of all places that slow addresses have together; the others are for those that answer soon. */
const SHARE_OF_SLOW = 0.5;
/** An address of whose attempts more than this share failed, by the moving mean: none of the last seven succeeded. */
const FAILING = 0.9;
/** The share of one address's places that a failing one has. */
const SHARE_OF_FAILING = 0.2;
/** How much the newest attempt counts in the means. */
const WEIGHT = 0.3;
/** A slow address that was refused counts as one that waits for this long. */
const WAITS_MS = 5_000;
/** Addresses remembered. */
const REMEMBERED = 10_000;

interface Address {
  /** When each of its places was taken, oldest first. */
  taken: number[];
  /** Moving mean of how long its places were taken for. */
  meanMs: number;
  /** Moving mean of failed (1) or not (0). */
  failing: number;
  /** When it was last refused a place. */
  refusedAt: number;
}

/**
 * An address that answers soon takes up to `perAddress` places. Slow ones have half of all places together and share it evenly, so that
 * ten or a hundred of them that answer nothing until the limit keep no other address waiting. Slow is an address
 * whose attempts took long, or whose attempt in flight has been going for long: it takes no timeout to find out. One that keeps failing,
 * however soon, has a fifth of an address's places, or its backlog would cost the others more of the worker than any of them has.
 */
export function createAddressPlaces({ total, perAddress, now }: PlacesOptions): AddressPlaces {
  const addresses = new Map<string, Address>();
  const shareOfSlow = Math.max(1, Math.floor(total * SHARE_OF_SLOW));
  const placesOfFailing = Math.max(1, Math.floor(perAddress * SHARE_OF_FAILING));

  const isSlow = ({ taken, meanMs }: Address) =>
    meanMs > SLOW_MS || (taken[0] !== undefined && now() - taken[0] > SLOW_MS);
  const isWaiting = ({ refusedAt }: Address) => now() - refusedAt < WAITS_MS;
  /** Slow addresses that have a place or want one, and the places they have. */
  const slowOnes = () => {
    let count = 0;
    let places = 0;
    for (const address of addresses.values()) {
      if ((address.taken.length === 0 && !isWaiting(address)) || !isSlow(address)) continue;
      count += 1;
      places += address.taken.length;
    }
    return { count, places };
  };
  const roomOf = (address: Address): { free: number; contested: boolean } => {
    const free = (address.failing > FAILING ? placesOfFailing : perAddress) - address.taken.length;
    if (free <= 0 || !isSlow(address)) return { free, contested: false };
    const { count, places } = slowOnes();
    const fairShare = Math.max(1, Math.floor(shareOfSlow / Math.max(1, count)));
    return {
      free: Math.min(free, fairShare - address.taken.length, shareOfSlow - places),
      contested: places + count > shareOfSlow,
    };
  };
  return {
    take(subscriptionId) {
      let address = addresses.get(subscriptionId);
      if (!address) {
        forgetOne(addresses);
        address = { taken: [], meanMs: 0, failing: 0, refusedAt: Number.NEGATIVE_INFINITY };
        addresses.set(subscriptionId, address);
      }
      if (roomOf(address).free > 0) {
        address.taken.push(now());
        return true;
      }
      address.refusedAt = now();
      return false;
    },
    free(subscriptionId, failed) {
      const address = addresses.get(subscriptionId);
      const since = address?.taken.shift();
      if (!address || since === undefined) return;
      // Which of its places this one was does not matter: each is counted once.
      address.meanMs += WEIGHT * (now() - since - address.meanMs);
      if (failed !== undefined) address.failing += WEIGHT * (Number(failed) - address.failing);
    },
    room(subscriptionId) {
      const address = addresses.get(subscriptionId);
      if (!address) return 1;
      const { free, contested } = roomOf(address);
      // Where slow addresses wait for each other, the housekeeper says whose turn it is, or the first would keep its places for ever.
      return contested ? 0 : free;
    },
  };
}

/** Makes room for one more address by forgetting the oldest that has nothing in flight. */
function forgetOne(addresses: Map<string, Address>): void {
  if (addresses.size < REMEMBERED) return;
  for (const [id, { taken }] of addresses) {
    if (taken.length > 0) continue;
    addresses.delete(id);
    return;
  }
}
