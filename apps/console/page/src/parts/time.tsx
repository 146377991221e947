/** Formats instants and durations. The exact instant is in the tooltip. */
import { Text, Tooltip } from '@mantine/core';
import dayjs from 'dayjs';
import relativeTime from 'dayjs/plugin/relativeTime';
import { useEffect, useState } from 'react';

dayjs.extend(relativeTime);

/** Returns the current time and updates it at an interval. */
function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Shows for example `21 Nov, 08:23:11`. */
export function Instant({ at }: { at: string }) {
  const sameYear = dayjs(at).year() === dayjs().year();
  return (
    <Tooltip label={at} openDelay={300}>
      <time dateTime={at} className="numbers" style={{ whiteSpace: 'nowrap' }}>
        {dayjs(at).format(sameYear ? 'D MMM, HH:mm:ss' : 'D MMM YYYY, HH:mm')}
      </time>
    </Tooltip>
  );
}

/** Shows for example `3 minutes ago`. */
export function Ago({ at }: { at: string }) {
  const now = useNow(10_000);
  return (
    <Tooltip label={at} openDelay={300}>
      <time dateTime={at} style={{ whiteSpace: 'nowrap' }}>
        {dayjs(at).from(now)}
      </time>
    </Tooltip>
  );
}

/** Counts down to an instant, for example `in 4 min 12 s`. */
export function Countdown({ to }: { to: string }) {
  const leftMs = Date.parse(to) - useNow(1_000);
  return (
    <Tooltip label={to} openDelay={300}>
      <Text span inherit className="numbers">
        {leftMs <= 0 ? 'any moment' : `in ${durationText(leftMs)}`}
      </Text>
    </Tooltip>
  );
}

/** Returns for example `840 ms`, `12.4 s`, `4 min 12 s`, `11 h 59 min` or `3 d 4 h`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${ms < 10_000 ? (ms / 1_000).toFixed(1) : Math.round(ms / 1_000)} s`;
  const [units, sizes] = [
    ['min', 'h', 'd'],
    [60_000, 3_600_000, 86_400_000],
  ];
  const largest = ms < sizes[1]! ? 0 : ms < sizes[2]! ? 1 : 2;
  const whole = Math.floor(ms / sizes[largest]!);
  const rest = ms - whole * sizes[largest]!;
  const smaller = largest === 0 ? Math.floor(rest / 1_000) : Math.floor(rest / sizes[largest - 1]!);
  const smallerUnit = largest === 0 ? 's' : units[largest - 1];
  return smaller === 0 ? `${whole} ${units[largest]}` : `${whole} ${units[largest]} ${smaller} ${smallerUnit}`;
}
