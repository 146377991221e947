/** Incidents: addresses that began to fail at about the same time, which points to one cause. */

/** Fewer addresses than this are a coincidence. */
const MIN_ADDRESSES = 3;
/** Each began to fail at most this long after the one before it, */
const MAX_GAP_MS = 120_000;
/** and this long after the first one: a large installation always has some address that begins to fail. */
const MAX_LENGTH_MS = 600_000;

export interface Incident {
  /** Stays the same while the first address of the incident fails. */
  id: string;
  startedAtMs: number;
  subscriptionIds: string[];
}

/** Groups failing addresses by the time since which they fail. Returns the incidents, the newest first. */
export function findIncidents(failing: readonly { subscriptionId: string; sinceMs: number }[]): Incident[] {
  const groups: { subscriptionId: string; sinceMs: number }[][] = [];
  for (const address of failing.toSorted((a, b) => a.sinceMs - b.sinceMs)) {
    const group = groups.at(-1);
    const first = group?.[0];
    const last = group?.at(-1);
    const belongs =
      first && last && address.sinceMs - last.sinceMs <= MAX_GAP_MS && address.sinceMs - first.sinceMs <= MAX_LENGTH_MS;
    if (group && belongs) group.push(address);
    else groups.push([address]);
  }
  return groups
    .filter((group) => group.length >= MIN_ADDRESSES)
    .map((group) => ({
      id: `inc_${group[0]?.sinceMs}`,
      startedAtMs: group[0]?.sinceMs ?? 0,
      subscriptionIds: group.map(({ subscriptionId }) => subscriptionId),
    }))
    .reverse();
}
