/** How visible data is refreshed. */

/** The interval of refreshing visible data. */
const LIVE_MS = 2_000;

/**
 * The options of a read that is refreshed while it is visible. If it gets no answer, the page says so
 * (parts/freshness.tsx).
 */
export const LIVE = { refetchInterval: LIVE_MS, meta: { live: true } } as const;
