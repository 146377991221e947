/**
 * The bars of the chart of attempts. They have a file of their own because the chart library is large: it is loaded
 * when needed.
 */
import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { countText } from './numbers.ts';

interface StackedBarsProps {
  height: number;
  data: { time: string; succeeded: number; failed: number }[];
  /** In which the times are. */
  zone: string;
}

export function StackedBars({ height, data, zone }: StackedBarsProps) {
  return (
    <BarChart
      h={height}
      data={data}
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
      xAxisLabel={zone}
      xAxisProps={{ minTickGap: 30 }}
      valueFormatter={countText}
      yAxisProps={{ allowDecimals: false, width: 'auto' }}
      barProps={{ isAnimationActive: false }}
    />
  );
}
