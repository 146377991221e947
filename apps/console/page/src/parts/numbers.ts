/** Formats numbers and durations. */

/** Returns for example `12,345`, or a dash if the number is unknown. */
export function countText(count: number | undefined): string {
  return count?.toLocaleString('en') ?? '–';
}

/** Returns for example `1 event` or `12,345 events`: `one` with its plural. */
export function amountText(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Returns for example `98.7 %`, or a dash if there were no attempts. */
export function percentText(rate: number | null | undefined): string {
  if (rate == null) return '–';
  return `${rate === 1 ? '100' : (Math.floor(rate * 1_000) / 10).toFixed(1)} %`;
}

/** The two units of a duration from a minute on. `limit` is the first number of small units that needs larger ones. */
const UNITS = [
  { large: 'min', small: 's', smallMs: 1_000, perLarge: 60, limit: 3_600 },
  { large: 'h', small: 'min', smallMs: 60_000, perLarge: 60, limit: 1_440 },
  { large: 'd', small: 'h', smallMs: 3_600_000, perLarge: 24, limit: Number.POSITIVE_INFINITY },
] as const;

/**
 * Returns for example `840 ms`, `12 s`, `4 min 12 s`, `11 h 59 min` or `3 d 4 h`, or a dash if there is no duration. It
 * is rounded to the smallest unit that is shown. Clocks that differ make a negative one, which is shown as none.
 */
export function durationText(ms: number | null | undefined): string {
  if (ms == null) return '–';
  if (Math.round(ms) < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (Math.round(ms / 100) < 100) return `${(Math.round(ms / 100) / 10).toFixed(1)} s`;
  if (Math.round(ms / 1_000) < 60) return `${Math.round(ms / 1_000)} s`;
  const { large, small, smallMs, perLarge } = UNITS.find(({ smallMs, limit }) => Math.round(ms / smallMs) < limit)!;
  const count = Math.round(ms / smallMs);
  const rest = count % perLarge;
  return `${Math.floor(count / perLarge)} ${large}${rest > 0 ? ` ${rest} ${small}` : ''}`;
}

/** Returns for example `8 s` or `4 min 12 s`: an estimate has no fractions of a second. */
export function secondsText(seconds: number): string {
  return seconds < 10 ? `${seconds} s` : durationText(1_000 * seconds);
}
