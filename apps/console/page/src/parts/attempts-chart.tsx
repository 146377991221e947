/** A stacked chart of succeeded and failed attempts over time. */
import { Center } from '@mantine/core';
import type { Overview } from '@posthorn/operator-api';
import { Suspense } from 'react';
import { lazyPart } from '../lazy-part.ts';
import { Note } from './layout.tsx';
import { countText } from './numbers.ts';
import { Loading } from './states.tsx';
import { useZone } from './time.tsx';

const StackedBars = lazyPart(async () => (await import('./stacked-bars.tsx')).StackedBars);

interface AttemptsChartProps {
  series: Overview['last_hour']['series'];
  /** The length of a period of the series. */
  unit: 'minute' | 'hour';
  height?: number;
}

export function AttemptsChart({ series, unit, height = 190 }: AttemptsChartProps) {
  const { inZone, zoneAt } = useZone();
  const total = series.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0);
  const failed = series.reduce((sum, period) => sum + period.failed, 0);
  const span = unit === 'minute' ? 'the last hour' : 'the last 24 hours';
  return (
    <figure
      style={{ margin: 0 }}
      aria-label={`Attempts over ${span}: ${countText(total - failed)} succeeded, ${countText(failed)} failed`}
    >
      {total === 0 ? (
        <Center h={height}>
          <Note>No attempts in {span}.</Note>
        </Center>
      ) : (
        <Suspense fallback={<Loading height={height} />}>
          <StackedBars
            height={height}
            data={series.map((period) => ({ ...period, time: inZone(period.from).format('HH:mm') }))}
            zone={zoneAt(series.at(-1)?.from ?? '')}
          />
        </Suspense>
      )}
    </figure>
  );
}
