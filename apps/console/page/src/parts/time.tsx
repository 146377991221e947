/** Shows instants. The exact instant is in the tooltip. */
import { Text } from '@mantine/core';
import dayjs from 'dayjs';
import relativeTime from 'dayjs/plugin/relativeTime';
import utc from 'dayjs/plugin/utc';
import { useEffect, useState } from 'react';
import { now } from '../clock.ts';
import { durationText } from './numbers.ts';
import { useUtc } from './utc.tsx';

dayjs.extend(relativeTime);
dayjs.extend(utc);

/** Making one takes a browser longer than everything else about an instant. */
const zoneFormat = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' });

/** Returns the short name of the browser's zone at an instant, for example `CET` or `GMT+2`. */
function zoneName(at: string): string {
  const parts = zoneFormat.formatToParts(new Date(at));
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/**
 * Returns how an instant is shown: in the zone of the browser or in UTC, and the name of that zone. Text without a zone
 * is in that one.
 */
export function useZone() {
  const [isUtc] = useUtc();
  return {
    inZone: (at: string | number) => (isUtc ? dayjs.utc(at) : dayjs(at)),
    zoneAt: (at: string) => (isUtc ? 'UTC' : zoneName(at)),
  };
}

/** Returns the current time and updates it at an interval. */
function useNow(everyMs: number): number {
  const [nowMs, setNowMs] = useState(now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return nowMs;
}

function Time({ at, text }: { at: string; text: string }) {
  return (
    <time dateTime={at} title={at} className="numbers" style={{ whiteSpace: 'nowrap' }}>
      {text}
    </time>
  );
}

/** The width in pixels of a column in which an instant and its zone have room in one line. */
export const INSTANT_WIDTH = 200;

/** Shows for example `21 Nov, 08:23:11 CET`. In a narrow column the zone is on the next line. */
export function Instant({ at }: { at: string }) {
  const { inZone, zoneAt } = useZone();
  const instant = inZone(at);
  const sameYear = instant.year() === inZone(now()).year();
  return (
    <>
      <Time at={at} text={instant.format(sameYear ? 'D MMM, HH:mm:ss' : 'D MMM YYYY, HH:mm')} />{' '}
      <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
        {zoneAt(at)}
      </Text>
    </>
  );
}

/** Shows for example `3 minutes ago`. */
export function Ago({ at }: { at: string }) {
  const nowMs = useNow(10_000);
  return <Time at={at} text={dayjs(at).from(nowMs)} />;
}

/** Counts down to an instant, for example `in 4 min 12 s`. */
export function Countdown({ at }: { at: string }) {
  const leftMs = Date.parse(at) - useNow(1_000);
  return <Time at={at} text={leftMs <= 0 ? 'any moment' : `in ${durationText(leftMs)}`} />;
}
