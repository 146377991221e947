/** Bulk replays: starts one for an address and a period after showing the number of deliveries, and lists earlier ones. */

import { Checkbox, Group, Select, SimpleGrid, Stack } from '@mantine/core';
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
import { failureTexts, StatusBadge } from '../parts/status.tsx';
import { sessionEventTypes } from '../parts/subscription-fields.tsx';
import { INSTANT_WIDTH, Instant } from '../parts/time.tsx';
import { useChange, useFailedCount, useReplays, useSubscription, useUrls } from '../queries.ts';

const eventTypes = [...sessionEventTypes, 'webhook.test'];
const errors = Object.entries(failureTexts)
  .filter(([value]) => value !== 'subscription_deleted')
  .map(([value, label]) => ({ value, label }));

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
    { header: 'Outcome', width: 240, visibleFrom: 'md', cell: ({ outcome }) => outcomeText(outcome) },
    { header: 'Operator', width: 130, visibleFrom: 'md', cell: ({ operator }) => operator },
    {
      header: 'Started',
      width: INSTANT_WIDTH,
      visibleFrom: 'xs',
      cell: ({ created_at }) => <Instant at={created_at} />,
    },
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

function outcomeText({ delivered, failed, waiting }: Replay['outcome']): string {
  const parts = [
    `${countText(delivered)} delivered`,
    failed > 0 && `${countText(failed)} failed`,
    waiting > 0 && `${countText(waiting)} waiting`,
  ];
  return parts.filter(Boolean).join(', ');
}

function NewReplay() {
  const [search] = useSearchParams();
  const [subscriptionId, setSubscriptionId] = useState(search.get('subscription_id'));
  const [from, setFrom] = useState<string | null>(null);
  const [to, setTo] = useState<string | null>(null);
  const [failedFrom, setFailedFrom] = useState<string | null>(null);
  const [failedTo, setFailedTo] = useState<string | null>(null);
  const [eventType, setEventType] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [canary, setCanary] = useState(true);
  const address = useSubscription(subscriptionId);
  const navigate = useNavigate();
  const instant = (value: string | null) => (value === null ? undefined : dayjs(value).toISOString());
  const scope = {
    from: instant(from),
    to: instant(to),
    failed_from: instant(failedFrom),
    failed_to: instant(failedTo),
    event_type: eventType ?? undefined,
    error: error ?? undefined,
  };
  const failed = useFailedCount(subscriptionId, scope);
  const start = useChange(
    () => call<Replay>('POST', '/v1/replays', { subscription_id: subscriptionId, ...scope, canary }),
    { onDone: ({ id }) => navigate(`/replays/${id}`) },
  );
  const count = failed.data?.count;
  const isActive = address.data?.status === 'active';
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <AddressPicker label="Address" placeholder="Choose" value={subscriptionId} onChange={setSubscriptionId} />
        <Select
          label="Event type"
          placeholder="Any event type"
          data={eventTypes}
          value={eventType}
          onChange={setEventType}
          clearable
        />
        <Select label="Error" placeholder="Any error" data={errors} value={error} onChange={setError} clearable />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        <DateTimePicker label="Created from" placeholder="The beginning" value={from} onChange={setFrom} clearable />
        <DateTimePicker label="Created until" placeholder="Now" value={to} onChange={setTo} clearable />
        <DateTimePicker
          label="Failed from"
          placeholder="The beginning"
          value={failedFrom}
          onChange={setFailedFrom}
          clearable
        />
        <DateTimePicker label="Failed until" placeholder="Now" value={failedTo} onChange={setFailedTo} clearable />
      </SimpleGrid>
      <Checkbox
        label="Send 5 first, and the others only when all 5 have arrived"
        checked={canary}
        onChange={(event) => setCanary(event.currentTarget.checked)}
      />
      <Group>
        <ActionButton
          label={count ? `Replay ${countText(count)} failed ${count === 1 ? 'delivery' : 'deliveries'}` : 'Replay'}
          change={start}
          disabled={subscriptionId === null || !count || !isActive}
        />
        <Note aria-live="polite">
          {subscriptionId === null && 'Choose an address to see the number of failed deliveries.'}
          {address.data && !isActive && 'The address is not active: resume or validate it first.'}
          {isActive && count === 0 && 'No failed deliveries match.'}
          {address.error?.message ?? failed.error?.message}
        </Note>
      </Group>
    </Stack>
  );
}
