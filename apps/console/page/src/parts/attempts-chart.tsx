/** A stacked chart of succeeded and failed attempts over time. */
import { BarChart } from '@mantine/charts';
import { Text } from '@mantine/core';
import dayjs from 'dayjs';
import type { Attempts } from '../api.ts';

export function AttemptsChart({
  series,
  unit,
  height = 190,
}: {
  series: Attempts['series'];
  unit: 'minute' | 'hour';
  height?: number;
}) {
  const total = series.reduce((sum, { succeeded, failed }) => sum + succeeded + failed, 0);
  const failed = series.reduce((sum, period) => sum + period.failed, 0);
  const span = unit === 'minute' ? 'the last hour' : 'the last 24 hours';
  return (
    <figure style={{ margin: 0 }} aria-label={`Attempts over ${span}: ${total - failed} succeeded, ${failed} failed`}>
      {total === 0 ? (
        <Text c="dimmed" size="sm" h={height} style={{ display: 'grid', placeItems: 'center' }}>
          No attempts in {span}.
        </Text>
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

/** Returns for example `98.7 %`, or a dash if there were no attempts. */
export function percent(rate: number | null): string {
  if (rate === null) return '–';
  return `${rate === 1 ? '100' : (Math.floor(rate * 1_000) / 10).toFixed(1)} %`;
}
