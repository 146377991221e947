/** Units of time; parses instants and durations. */
import { z } from 'zod';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const UNIT_MS = { ms: 1, s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
/** Beyond this a timer or an expiry would overflow. */
const MAX_DURATION_MS = 10 * 365 * DAY_MS;

/**
 * Milliseconds of a duration such as `90s` or `1.5h`. Undefined where it is none, less than 1 ms or more than ten
 * years.
 */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) return undefined;
  const ms = Math.round(Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]);
  return ms >= 1 && ms <= MAX_DURATION_MS ? ms : undefined;
}

const latest = { ms: 0, text: new Date(0).toISOString() };

/**
 * An instant in UTC with milliseconds and `Z`. Many are asked for within a millisecond, and Date takes half a
 * microsecond for each.
 */
export function isoInstant(ms: number): string {
  if (ms !== latest.ms) {
    latest.text = new Date(ms).toISOString();
    latest.ms = ms;
  }
  return latest.text;
}

/** An instant for people, such as `2026-11-22 05:51:13 UTC`. Throws `RangeError` for a number that is none. */
export function utcText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/**
 * Year, a hyphen or nothing (the basic format), month, day, hour, a colon or nothing, minute, second, fraction; then
 * the zone: sign, hours, minutes, or nothing for `Z`.
 */
const INSTANT_PARTS =
  /^(\d{4})(-?)(\d\d)\2(\d\d)[Tt](\d\d)(:?)(\d\d)(?:\6(\d\d)(?:[.,](\d+))?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)$/;

/**
 * The same, as OpenAPI has it: without a flag and without references to what was found, which not every language has.
 */
const INSTANT =
  /^(?:\d{4}-\d\d-\d\d|\d{8})[Tt](?:\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?|\d{4}(?:\d\d(?:[.,]\d+)?)?)(?:[Zz]|[+-]\d\d(?::?\d\d)?)$/;

/** An ISO 8601 instant with a zone that Date can hold; years 0000 to 9999, so that its UTC form keeps 24 characters. */
export const instantSchema = z
  .string()
  .regex(INSTANT, { error: 'Expected an ISO 8601 instant with a zone, such as 2026-01-31T12:00:00Z', abort: true })
  .refine((text) => utcInstant(text)?.length === 24, 'Not a real instant');

/** The same, as milliseconds since 1970. */
export const instantMsSchema = instantSchema.transform((text) => Date.parse(String(utcInstant(text))));

/**
 * The same instant in UTC with milliseconds and `Z`, or undefined where the text names no real instant (30 February,
 * hour 25). 24:00 is the midnight at the end of the day. A leap second counts as the second before it. A zone may take
 * a year out of 0000 to 9999; the result is then longer.
 */
export function utcInstant(text: string): string | undefined {
  const match = INSTANT_PARTS.exec(text);
  if (!match) return undefined;
  const numberAt = (group: number) => Number(match[group] ?? 0);
  const [year, month, day] = [numberAt(1), numberAt(3), numberAt(4)];
  const [hour, minute, second] = [numberAt(5), numberAt(7), numberAt(8)];
  const [zoneHours, zoneMinutes] = [numberAt(11), numberAt(12)];
  if (minute > 59 || second > 60 || zoneHours > 23 || zoneMinutes > 59) return undefined;
  const millisecond = Number((match[9] ?? '').slice(0, 3).padEnd(3, '0'));
  const isEndOfDay = hour === 24 && minute === 0 && second === 0 && Number(match[9] ?? 0) === 0;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(isEndOfDay ? 0 : hour, minute, Math.min(second, 59), millisecond);
  // A day or an hour that does not exist has moved the date on.
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined;
  const offsetMs = (match[10] === '-' ? -1 : 1) * (zoneHours * 60 + zoneMinutes) * MINUTE_MS;
  return new Date(local.getTime() + (isEndOfDay ? DAY_MS : 0) - offsetMs).toISOString();
}
