/** A stacked chart of succeeded and failed attempts over time. */
import { BarChart } from '@mantine/charts';
import { Center } from '@mantine/core';
import type { Overview } from '@posthorn/operator-api';
import dayjs from 'dayjs';
import { Note } from './layout.tsx';

interface AttemptsChartProps {
  series: Overview['last_hour']['series'];
  /** The length of a period of the series. */
  unit: 'minute' | 'hour';
  height?: number;
}

export function AttemptsChart({ series, unit, height = 190 }: AttemptsChartProps) {
  const total = series.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0);
  const failed = series.reduce((sum, period) => sum + period.failed, 0);
  const span = unit === 'minute' ? 'the last hour' : 'the last 24 hours';
  return (
    <figure style={{ margin: 0 }} aria-label={`Attempts over ${span}: ${total - failed} succeeded, ${failed} failed`}>
      {total === 0 ? (
        <Center h={height}>
          <Note>No attempts in {span}.</Note>
        </Center>
      ) : (
        <BarChart
          h={height}
          data={series.map((period) => ({ ...period, time: dayjs(period.from).format('HH:mm') }))}
          dataKey="time"
          type="stacked"
          series={[
            { name: 'succeeded', label: 'Succeeded', color: 'teal.6' },
            { name: 'failed', label: 'Failed', color: 'red.6' },
          ]}
          tickLine="none"
          gridAxis="x"
          withLegend
          legendProps={{ verticalAlign: 'top', height: 30 }}
          maxBarWidth={24}
          xAxisProps={{ minTickGap: 30 }}
          yAxisProps={{ allowDecimals: false, width: 44 }}
          barProps={{ isAnimationActive: false }}
        />
      )}
    </figure>
  );
}
