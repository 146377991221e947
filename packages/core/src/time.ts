/** Instants and durations as people and programs write them. */
import { z } from 'zod';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Beyond this a timer or an expiry would overflow. */
const LONGEST_MS = 10 * 365 * 86_400_000;

/** Milliseconds of a duration such as `90s` or `1.5h`, or undefined where it is none. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) return undefined;
  const ms = Math.round(Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]);
  return ms >= 1 && ms <= LONGEST_MS ? ms : undefined;
}

/** An ISO 8601 instant with a zone that Date can hold; years 0000 to 9999, so that its UTC form keeps 24 characters. */
export const instantSchema = z
  .string()
  .regex(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)$/i,
    'Expected an ISO 8601 instant with a zone',
  )
  .refine((text) => /^\d{4}-/.test(utcInstant(text) ?? ''), 'Not a real instant');

/** The same, as milliseconds since 1970. */
export const instantMsSchema = instantSchema.transform((text) => Date.parse(utcInstant(text)!));

/** The same instant in UTC with milliseconds and `Z`, or undefined where the text names no real instant (30 February, hour 25). */
export function utcInstant(text: string): string | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)$/i.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute] = match.slice(1, 6).map(Number) as [number, number, number, number, number];
  const second = Number(match[6] ?? 0);
  const millisecond = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, Math.min(second, 59), millisecond);
  const real =
    local.getUTCMonth() === month - 1 && local.getUTCDate() === day && hour < 24 && minute < 60 && second <= 60;
  const offsetMs = zoneOffsetMs(match[8]!);
  return real && offsetMs !== undefined ? new Date(local.getTime() - offsetMs).toISOString() : undefined;
}

function zoneOffsetMs(zone: string): number | undefined {
  if (/^z$/i.test(zone)) return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(3).replace(':', '') || 0);
  if (hours > 23 || minutes > 59) return undefined;
  return (zone[0] === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
