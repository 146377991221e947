/** Bulk replays: starts one for an address and a period after showing the number of deliveries, and lists earlier ones. */

import { Group, SimpleGrid, Stack } from '@mantine/core';
import type { Replay } from '@posthorn/operator-api';
import dayjs from 'dayjs';
import { useState } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { call } from '../api.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { AddressPicker } from '../parts/address-picker.tsx';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { DateTimePicker } from '../parts/date-time-picker.ts';
import { Note, PageBody, RowLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Empty } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';
import { useChange, useFailedCount, useReplays, useSubscription, useUrls } from '../queries.ts';

export function ReplaysPage() {
  const list = useReplays();
  const urls = useUrls((list.data ?? []).map(({ subscription_id }) => subscription_id));
  const columns: Column<Replay>[] = [
    {
      header: 'Address',
      cell: ({ id, subscription_id }) => (
        <RowLink to={`/replays/${id}`} truncate>
          {urls.get(subscription_id) ?? subscription_id}
        </RowLink>
      ),
    },
    { header: 'Status', width: 110, cell: ({ status }) => <StatusBadge status={status} /> },
    {
      header: 'Replayed',
      width: 130,
      visibleFrom: 'sm',
      cell: ({ replayed, total }) => `${countText(replayed)} of ${countText(total)}`,
    },
    { header: 'Operator', width: 130, visibleFrom: 'md', cell: ({ operator }) => operator },
    { header: 'Started', width: 170, visibleFrom: 'xs', cell: ({ created_at }) => <Instant at={created_at} /> },
  ];
  const empty = (
    <Empty title="No bulk replays yet">After an outage of a receiver, replay the deliveries that failed.</Empty>
  );
  return (
    <PageBody title="Bulk replays">
      <Section title="Replay failed deliveries">
        <NewReplay />
      </Section>
      <PagedList list={list} what="list of bulk replays" title="Earlier bulk replays" empty={empty}>
        {(replays) => <DataTable aria-label="Bulk replays" columns={columns} rows={replays} highlightOnHover />}
      </PagedList>
    </PageBody>
  );
}

function NewReplay() {
  const [search] = useSearchParams();
  const [subscriptionId, setSubscriptionId] = useState(search.get('subscription_id'));
  const [from, setFrom] = useState<string | null>(null);
  const [to, setTo] = useState<string | null>(null);
  const address = useSubscription(subscriptionId);
  const navigate = useNavigate();
  const instant = (value: string | null) => (value === null ? undefined : dayjs(value).toISOString());
  const range = { from: instant(from), to: instant(to) };
  const failed = useFailedCount(subscriptionId, range);
  const start = useChange(() => call<Replay>('POST', '/v1/replays', { subscription_id: subscriptionId, ...range }), {
    onDone: ({ id }) => navigate(`/replays/${id}`),
  });
  const count = failed.data?.count;
  const isActive = address.data?.status === 'active';
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <AddressPicker label="Address" placeholder="Choose" value={subscriptionId} onChange={setSubscriptionId} />
        <DateTimePicker label="Created from" placeholder="The beginning" value={from} onChange={setFrom} />
        <DateTimePicker label="Created until" placeholder="Now" value={to} onChange={setTo} />
      </SimpleGrid>
      <Group>
        <ActionButton
          label={count ? `Replay ${countText(count)} failed ${count === 1 ? 'delivery' : 'deliveries'}` : 'Replay'}
          change={start}
          disabled={subscriptionId === null || !count || !isActive}
        />
        <Note aria-live="polite">
          {subscriptionId === null && 'Choose an address to see the number of failed deliveries.'}
          {address.data && !isActive && 'The address is not active: resume or validate it first.'}
          {isActive && count === 0 && 'No failed deliveries in this period.'}
          {address.error?.message ?? failed.error?.message}
        </Note>
      </Group>
    </Stack>
  );
}
