/** Bulk replays: starts one for an address and a period after showing the number of deliveries, and lists earlier ones. */

import { Anchor, Button, Group, Select, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import type { Replay } from '@posthorn/operator-api';
import dayjs from 'dayjs';
import { useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { call } from '../api.ts';
import { PageBody, Section } from '../parts/layout.tsx';
import { Empty, Loaded, MoreButton } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';
import { useAddresses, useChange, useFailedCount, useReplays, useUrls } from '../queries.ts';

export function ReplaysPage() {
  const list = useReplays({});
  const urls = useUrls();
  return (
    <PageBody title="Bulk replays">
      <Section title="Replay failed deliveries">
        <NewReplay />
      </Section>
      <Section title="Earlier bulk replays" flush>
        <Loaded query={list} what="list of bulk replays">
          {({ pages }) => {
            const replays = pages.flatMap(({ data }) => data);
            if (replays.length === 0)
              return (
                <Empty title="No bulk replays yet">
                  After an outage of a receiver, replay the deliveries that failed.
                </Empty>
              );
            return (
              <Table highlightOnHover verticalSpacing={7} layout="fixed" aria-label="Bulk replays">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Address</Table.Th>
                    <Table.Th w={110}>Status</Table.Th>
                    <Table.Th w={130} visibleFrom="sm">
                      Replayed
                    </Table.Th>
                    <Table.Th w={130} visibleFrom="md">
                      Operator
                    </Table.Th>
                    <Table.Th w={170} visibleFrom="xs">
                      Started
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {replays.map((replay) => (
                    <Table.Tr key={replay.id}>
                      <Table.Td>
                        <Anchor component={Link} to={`/replays/${replay.id}`} size="sm" truncate display="block">
                          {urls.get(replay.subscription_id) ?? replay.subscription_id}
                        </Anchor>
                      </Table.Td>
                      <Table.Td>
                        <StatusBadge status={replay.status} />
                      </Table.Td>
                      <Table.Td visibleFrom="sm" className="numbers">
                        {replay.replayed.toLocaleString('en')} of {replay.total.toLocaleString('en')}
                      </Table.Td>
                      <Table.Td visibleFrom="md">{replay.operator}</Table.Td>
                      <Table.Td visibleFrom="xs">
                        <Instant at={replay.created_at} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            );
          }}
        </Loaded>
        <MoreButton list={list} />
      </Section>
    </PageBody>
  );
}

function NewReplay() {
  const [search] = useSearchParams();
  const [subscriptionId, setSubscriptionId] = useState(search.get('subscription_id'));
  const [from, setFrom] = useState<string | null>(null);
  const [to, setTo] = useState<string | null>(null);
  const addresses = useAddresses();
  const navigate = useNavigate();
  const instant = (value: string | null) => (value === null ? undefined : dayjs(value).toISOString());
  const range = { from: instant(from), to: instant(to) };
  const failed = useFailedCount(subscriptionId, range);
  const start = useChange(() => call<Replay>('POST', '/v1/replays', { subscription_id: subscriptionId, ...range }), {
    onDone: ({ id }) => navigate(`/replays/${id}`),
  });
  const chosen = addresses.data?.data.find(({ id }) => id === subscriptionId);
  const count = failed.data?.count;
  const isActive = chosen === undefined || chosen.status === 'active';
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <Select
          label="Address"
          placeholder="Choose"
          data={(addresses.data?.data ?? []).map(({ id, url }) => ({ value: id, label: url }))}
          value={subscriptionId}
          onChange={setSubscriptionId}
          searchable
          nothingFoundMessage="No matching addresses"
        />
        <DateTimePicker
          label="Made from"
          placeholder="The beginning"
          value={from}
          onChange={setFrom}
          valueFormat="D MMM YYYY, HH:mm"
          clearable
        />
        <DateTimePicker
          label="Made until"
          placeholder="Now"
          value={to}
          onChange={setTo}
          valueFormat="D MMM YYYY, HH:mm"
          clearable
        />
      </SimpleGrid>
      <Group>
        <Button
          disabled={subscriptionId === null || !count || !isActive}
          loading={start.isPending}
          onClick={() => start.mutate(undefined)}
        >
          {count ? `Replay ${count.toLocaleString('en')} failed ${count === 1 ? 'delivery' : 'deliveries'}` : 'Replay'}
        </Button>
        <Text size="sm" c="dimmed" aria-live="polite">
          {subscriptionId === null && 'Choose an address to see the number of failed deliveries.'}
          {subscriptionId !== null && !isActive && 'The address is not active: resume or validate it first.'}
          {subscriptionId !== null && isActive && count === 0 && 'No failed deliveries in this period.'}
          {failed.error?.message}
        </Text>
      </Group>
    </Stack>
  );
}
