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

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** Returns for example `840 ms`, `12 s`, `4 min 12 s`, `11 h 59 min` or `3 d 4 h`, or a dash if there is no duration. */
export function durationText(ms: number | null | undefined): string {
  if (ms == null) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${ms < 10_000 ? (ms / 1_000).toFixed(1) : Math.round(ms / 1_000)} s`;
  const largest = UNITS.findIndex(([, unitMs]) => ms >= unitMs);
  let restMs = ms;
  const parts = UNITS.slice(largest, largest + 2).map(([unit, unitMs]) => {
    const whole = Math.floor(restMs / unitMs);
    restMs -= whole * unitMs;
    return { unit, whole };
  });
  return parts
    .filter(({ whole }) => whole > 0)
    .map(({ unit, whole }) => `${whole} ${unit}`)
    .join(' ');
}

/** Returns for example `8 s` or `4 min 12 s`: an estimate has no fractions of a second. */
export function secondsText(seconds: number): string {
  return seconds < 10 ? `${seconds} s` : durationText(1_000 * seconds);
}
