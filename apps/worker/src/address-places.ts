/** Counts the attempts in flight to each address in this process, so that one address can't take them all. */

export interface AddressPlaces {
  /** Takes a place at an address; answers false where all are taken. */
  take(subscriptionId: string): boolean;
  /** Gives a place back. */
  free(subscriptionId: string): void;
}

/** At most `perAddress` places at each address. */
export function createAddressPlaces(perAddress: number): AddressPlaces {
  const taken = new Map<string, number>();
  return {
    take(subscriptionId) {
      const count = taken.get(subscriptionId) ?? 0;
      if (count >= perAddress) return false;
      taken.set(subscriptionId, count + 1);
      return true;
    },
    free(subscriptionId) {
      const count = (taken.get(subscriptionId) ?? 0) - 1;
      if (count > 0) taken.set(subscriptionId, count);
      else taken.delete(subscriptionId);
    },
  };
}
