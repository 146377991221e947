/** The overview: first what needs an operator, then attempts over time, then deliveries, queue and workers. */
import { Alert, Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Overview } from '@posthorn/operator-api';
import { useState } from 'react';
import { AddressLink } from '../parts/address.tsx';
import { AttemptsChart } from '../parts/attempts-chart.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Figure, FigureCard, Note, PageBody, Section } from '../parts/layout.tsx';
import { amountText, countText, durationText, percentText } from '../parts/numbers.ts';
import { Loaded, Unreadable } from '../parts/states.tsx';
import { looks, StatusBadge } from '../parts/status.tsx';
import { Ago, Instant } from '../parts/time.tsx';
import { Triage } from '../parts/triage.tsx';
import { useOverview } from '../queries.ts';

type Worker = Overview['workers'][number];
type Ranked = Overview['addresses']['slowest'][number];

const workerColumns: Column<Worker>[] = [
  { header: 'Process', cell: ({ host, pid }) => <span className="mono">{`${host}:${pid}`}</span> },
  { header: 'In flight', cell: ({ in_flight, concurrency }) => `${in_flight} of ${concurrency}` },
  { header: 'Started', cell: ({ started_at }) => <Ago at={started_at} /> },
];

const rankingColumns = (header: string, figure: (address: Ranked) => string): Column<Ranked>[] => [
  {
    header: 'Address',
    cell: ({ subscription_id, url, status }) => (
      <Group gap="xs" wrap="nowrap">
        <div style={{ minWidth: 0 }}>
          <AddressLink id={subscription_id} url={url} />
        </div>
        {status !== 'active' && <StatusBadge status={status} />}
      </Group>
    ),
  },
  { header, width: 150, ta: 'right', cell: figure },
];

/** The first of a ranking, as rows of a table. */
const ranked = (addresses: Ranked[]) =>
  addresses.slice(0, 5).map((address) => ({ ...address, id: address.subscription_id }));

export function OverviewPage() {
  const overview = useOverview();
  return (
    <PageBody title="Overview">
      <Loaded query={overview} what="overview">
        {(data) => <Content overview={data} />}
      </Loaded>
    </PageBody>
  );
}

function Content({ overview }: { overview: Overview }) {
  const { deliveries, queue, workers, addresses } = overview;
  return (
    <Stack>
      <Unreadable ids={overview.unreadable} />
      <Triage overview={overview} />
      <UpgradeNote format={overview.format} />
      <Attempts overview={overview} />
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="sm">
        {(['succeeded', 'pending', 'waiting_for_retry', 'held', 'failed'] as const).map((status) => (
          <FigureCard
            key={status}
            label={looks[status].label}
            value={countText(deliveries[status])}
            hint="deliveries"
            to={`/deliveries?status=${status}`}
          />
        ))}
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Panel
          title="Most failing addresses"
          columns={rankingColumns(
            'Failed attempts',
            ({ failed, succeeded }) => `${countText(failed)} of ${countText(failed + succeeded)}`,
          )}
          rows={ranked(addresses.most_failing)}
          none="No attempt failed in the last hour or two."
        />
        <Panel
          title="Slowest addresses"
          columns={rankingColumns('Mean', ({ mean_ms }) => durationText(mean_ms))}
          rows={ranked(addresses.slowest)}
          none="No attempts in the last hour or two."
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Section title="Queue">
          <SimpleGrid cols={2} spacing="sm">
            <Figure
              label="Waiting for a worker"
              value={countText(queue.waiting)}
              hint={`${countText(queue.active)} in flight`}
            />
            <Figure
              label="Oldest pending delivery"
              value={durationText(queue.oldest_pending_age_ms || null)}
              hint={`${countText(queue.delayed)} due later`}
            />
          </SimpleGrid>
        </Section>
        <Panel
          title="Workers"
          columns={workerColumns}
          rows={workers}
          layout="auto"
          none={overview.writes_refused === null ? 'No worker is running.' : 'Redis refuses what workers report.'}
        />
      </SimpleGrid>
    </Stack>
  );
}

/** Says, after an upgrade, until when the release before can be started again. */
function UpgradeNote({ format }: Pick<Overview, 'format'>) {
  const { current, newest, waits_for, raises_at } = format;
  if (current === newest) return null;
  if (waits_for.length > 0)
    return (
      <Alert color="blue" title="An upgrade is in progress">
        These processes are of the release before: {waits_for.join(', ')}.
      </Alert>
    );
  return (
    <Alert color="blue" title="The release before can still be started again">
      {raises_at === null ? (
        'Until a worker raises the stored format.'
      ) : (
        <>
          Until <Instant at={raises_at} />. Then the stored format is raised from {current} to {newest}.
        </>
      )}
    </Alert>
  );
}

function Attempts({ overview }: { overview: Overview }) {
  const [unit, setUnit] = useState<'minute' | 'hour'>('minute');
  const attempts = unit === 'minute' ? overview.last_hour : overview.last_day;
  const isBad = attempts.success_rate !== null && attempts.success_rate < overview.rules.min_success_rate;
  const choice = (
    <SegmentedControl
      size="xs"
      value={unit}
      onChange={setUnit}
      data={[
        { value: 'minute', label: 'Last hour' },
        { value: 'hour', label: 'Last day' },
      ]}
      aria-label="Time shown"
    />
  );
  return (
    <Section title="Attempts" aside={choice}>
      <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm" mb="md">
        <Figure
          label="Success rate"
          value={
            <Text
              inherit
              component="span"
              {...(isBad && {
                c: 'light-dark(var(--mantine-color-red-9), var(--mantine-color-red-4))',
              })}
            >
              {percentText(attempts.success_rate)}
            </Text>
          }
          hint={`of ${amountText(attempts.attempts, 'attempt')}`}
        />
        <Durations label="Median attempt time" ms={attempts.attempt_ms} />
        <Durations label="Median delivery time" ms={attempts.arrival_ms} />
        <Figure label="Failed attempts" value={countText(attempts.failed)} />
      </SimpleGrid>
      <AttemptsChart series={attempts.series} unit={unit} />
    </Section>
  );
}

/** The median and the 99th percentile of a duration. */
function Durations({ label, ms }: { label: string; ms: Overview['last_hour']['attempt_ms'] }) {
  return <Figure label={label} value={durationText(ms.p50)} hint={`p99 ${durationText(ms.p99)}`} />;
}

interface PanelProps<T> {
  title: string;
  columns: Column<T>[];
  rows: T[];
  layout?: 'auto';
  /** Shown instead of an empty table. */
  none: string;
}

function Panel<T extends { id: string }>({ title, none, ...table }: PanelProps<T>) {
  return (
    <Section title={title} flush>
      {table.rows.length === 0 ? (
        <Note px="md" pb="md">
          {none}
        </Note>
      ) : (
        <DataTable aria-label={title} {...table} />
      )}
    </Section>
  );
}
