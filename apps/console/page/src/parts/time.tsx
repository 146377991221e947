/** Shows instants. The exact instant is in the tooltip. */
import { Tooltip } from '@mantine/core';
import dayjs from 'dayjs';
import relativeTime from 'dayjs/plugin/relativeTime';
import { useEffect, useState } from 'react';
import { durationText } from './numbers.ts';

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

function Time({ at, text }: { at: string; text: string }) {
  return (
    <Tooltip label={at} openDelay={300}>
      <time dateTime={at} className="numbers" style={{ whiteSpace: 'nowrap' }}>
        {text}
      </time>
    </Tooltip>
  );
}

/** Shows for example `21 Nov, 08:23:11`. */
export function Instant({ at }: { at: string }) {
  const sameYear = dayjs(at).year() === dayjs().year();
  return <Time at={at} text={dayjs(at).format(sameYear ? 'D MMM, HH:mm:ss' : 'D MMM YYYY, HH:mm')} />;
}

/** Shows for example `3 minutes ago`. */
export function Ago({ at }: { at: string }) {
  const now = useNow(10_000);
  return <Time at={at} text={dayjs(at).from(now)} />;
}

/** Counts down to an instant, for example `in 4 min 12 s`. */
export function Countdown({ at }: { at: string }) {
  const leftMs = Date.parse(at) - useNow(1_000);
  return <Time at={at} text={leftMs <= 0 ? 'any moment' : `in ${durationText(leftMs)}`} />;
}
