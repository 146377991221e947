/** Converts times for the operator API. */

/** Returns milliseconds since 1970 as ISO 8601 in UTC; null stays null. */
export function instant(ms: number): string;
export function instant(ms: number | null): string | null;
export function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
