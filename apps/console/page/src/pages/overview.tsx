/** The overview: attempts over time, waiting deliveries, workers, and the addresses with problems. */

import { Alert, Anchor, Group, SegmentedControl, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import type { Overview } from '@posthorn/operator-api';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import { AttemptsChart, percent } from '../parts/attempts-chart.tsx';
import { Figure, FigureCard, PageBody, Section } from '../parts/layout.tsx';
import { Loaded } from '../parts/states.tsx';
import { labelOf, StatusBadge } from '../parts/status.tsx';
import { Ago, durationText, Instant } from '../parts/time.tsx';
import { useOverview } from '../queries.ts';

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
  const [unit, setUnit] = useState<'minute' | 'hour'>('minute');
  const { deliveries, queue, workers, addresses } = overview;
  const attempts = unit === 'minute' ? overview.last_hour : overview.last_day;
  const ms = (value: number | null) => (value === null ? '–' : durationText(value));
  return (
    <Stack>
      {workers.length === 0 && (
        <Alert color="orange" icon={<IconAlertTriangle />} title="No worker is running">
          Events are accepted and kept, but nothing is delivered until one is started.
        </Alert>
      )}
      {workers
        .filter(({ outage_since }) => outage_since !== null)
        .map(({ id, host, pid, outage_since }) => (
          <Alert
            key={id}
            color="orange"
            icon={<IconAlertTriangle />}
            title={
              <>
                Worker {host}:{pid} has reached nothing since <Instant at={outage_since!} />
              </>
            }
          >
            Its network or name resolution fails. It makes no attempts, and none is counted, until it can reach a
            receiver again.
          </Alert>
        ))}
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="sm">
        {(['succeeded', 'pending', 'waiting_for_retry', 'held', 'failed'] as const).map((status) => (
          <FigureCard
            key={status}
            label={labelOf(status)}
            value={deliveries[status].toLocaleString('en')}
            hint="deliveries"
            to={`/deliveries?status=${status}`}
          />
        ))}
      </SimpleGrid>
      <Section
        title="Attempts"
        aside={
          <SegmentedControl
            size="xs"
            value={unit}
            onChange={(value) => setUnit(value as typeof unit)}
            data={[
              { value: 'minute', label: 'Last hour' },
              { value: 'hour', label: 'Last day' },
            ]}
            aria-label="Time shown"
          />
        }
      >
        <Stack gap="md">
          <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm">
            <Figure
              label="Success rate"
              value={percent(attempts.success_rate)}
              hint={`of ${attempts.attempts.toLocaleString('en')} attempts`}
            />
            <Figure
              label="Attempt takes"
              value={ms(attempts.attempt_ms.p50)}
              hint={`p99 ${ms(attempts.attempt_ms.p99)}`}
            />
            <Figure
              label="Accepted to arrived"
              value={ms(attempts.arrival_ms.p50)}
              hint={`p99 ${ms(attempts.arrival_ms.p99)}`}
            />
            <Figure label="Failed attempts" value={attempts.failed.toLocaleString('en')} />
          </SimpleGrid>
          <AttemptsChart series={attempts.series} unit={unit} />
        </Stack>
      </Section>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Section title="Queue">
          <SimpleGrid cols={2} spacing="sm">
            <Figure
              label="Waiting for a worker"
              value={queue.waiting.toLocaleString('en')}
              hint={`${queue.active} in hand`}
            />
            <Figure
              label="Oldest not attempted yet"
              value={queue.oldest_pending_age_ms === 0 ? '–' : durationText(queue.oldest_pending_age_ms)}
              hint={`${queue.delayed} due later`}
            />
          </SimpleGrid>
        </Section>
        <Section title="Workers" flush={workers.length > 0}>
          {workers.length === 0 ? (
            <Text size="sm" c="dimmed">
              None is alive.
            </Text>
          ) : (
            <Table verticalSpacing={6} aria-label="Workers">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Process</Table.Th>
                  <Table.Th>In flight</Table.Th>
                  <Table.Th>Started</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {workers.map((worker) => (
                  <Table.Tr key={worker.id}>
                    <Table.Td className="mono">
                      {worker.host}:{worker.pid}
                    </Table.Td>
                    <Table.Td className="numbers">
                      {worker.in_flight} of {worker.concurrency}
                    </Table.Td>
                    <Table.Td>
                      <Ago at={worker.started_at} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </Section>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Section title="Most failing addresses" flush>
          <Ranking
            addresses={addresses.most_failing}
            figure={(address) => `${address.failed} of ${address.failed + address.succeeded}`}
            heading="Failed attempts"
            none="No attempt failed in the last hour or two."
          />
        </Section>
        <Section title="Slowest addresses" flush>
          <Ranking
            addresses={addresses.slowest}
            figure={(address) => ms(address.mean_ms)}
            heading="Mean"
            none="No attempts in the last hour or two."
          />
        </Section>
      </SimpleGrid>
      <Section
        title="Paused addresses"
        flush
        aside={
          addresses.paused.length > 0 && (
            <Anchor component={Link} to="/subscriptions?status=paused" size="sm">
              All {overview.subscriptions.paused}
            </Anchor>
          )
        }
      >
        {addresses.paused.length === 0 ? (
          <Text size="sm" c="dimmed" px="md" pb="md">
            None is paused.
          </Text>
        ) : (
          <Table verticalSpacing={7} aria-label="Paused addresses">
            <Table.Tbody>
              {addresses.paused.map((subscription) => (
                <Table.Tr key={subscription.id}>
                  <Table.Td maw={420}>
                    <AddressLink id={subscription.id} url={subscription.url} />
                  </Table.Td>
                  <Table.Td ta="right" className="numbers">
                    {subscription.held_deliveries.toLocaleString('en')} held
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </Section>
    </Stack>
  );
}

function AddressLink({ id, url }: { id: string; url: string }) {
  return (
    <Anchor component={Link} to={`/subscriptions/${id}`} size="sm" truncate display="block" title={url}>
      {url}
    </Anchor>
  );
}

type Ranked = Overview['addresses']['slowest'][number];

function Ranking({
  addresses,
  figure,
  heading,
  none,
}: {
  addresses: Ranked[];
  figure: (address: Ranked) => string;
  heading: string;
  none: string;
}) {
  const shown = addresses.slice(0, 5);
  if (shown.length === 0)
    return (
      <Text size="sm" c="dimmed" px="md" pb="md">
        {none}
      </Text>
    );
  return (
    <Table verticalSpacing={7} layout="fixed" aria-label={heading}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Address</Table.Th>
          <Table.Th w={150} ta="right">
            {heading}
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {shown.map((address) => (
          <Table.Tr key={address.subscription_id}>
            <Table.Td>
              <Group gap="xs" wrap="nowrap">
                <div style={{ minWidth: 0 }}>
                  <AddressLink id={address.subscription_id} url={address.url} />
                </div>
                {address.status !== 'active' && <StatusBadge status={address.status} />}
              </Group>
            </Table.Td>
            <Table.Td ta="right" className="numbers">
              {figure(address)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
