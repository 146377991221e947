/** All subscriptions: searched, filtered by status and environment, sorted, page by page. */
import { Button, Group, Select, Text } from '@mantine/core';
import type { Subscription } from '@posthorn/operator-api';
import { PlusIcon } from '@primer/octicons-react';
import { Link } from 'react-router';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { ClearFilters, filterWidth, SearchFilter, SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, RowLink } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { ResumePaused } from '../parts/resume-paused.tsx';
import { Empty } from '../parts/states.tsx';
import { AddressBadges, statusOptions } from '../parts/status.tsx';
import { environmentLabels, environments, typesText } from '../parts/subscription-fields.tsx';
import { Ago } from '../parts/time.tsx';
import { useSubscriptions } from '../queries.ts';

const statuses = statusOptions(['awaiting_validation', 'active', 'paused', 'refused']);

const orders = [
  { value: 'newest', label: 'Newest first' },
  { value: 'url', label: 'By address' },
  { value: 'worst', label: 'Worst first' },
];

const healths = [
  { value: 'failing', label: 'Failing' },
  { value: 'healthy', label: 'Healthy' },
  { value: 'unknown', label: 'No attempts yet' },
];

const columns: Column<Subscription>[] = [
  {
    header: 'Address',
    cell: ({ id, url, description, health: { state, verdict } }) => (
      <>
        <RowLink to={`/subscriptions/${id}`} fw={500} truncate title={url}>
          {url}
        </RowLink>
        {description && (
          <Note size="xs" truncate>
            {description}
          </Note>
        )}
        {state === 'failing' && (
          <Text size="xs" truncate {...(verdict !== null && { title: verdict })}>
            {verdict}
          </Text>
        )}
      </>
    ),
  },
  {
    header: 'Status',
    width: { base: 170, sm: 185 },
    cell: ({ status, health }) => <AddressBadges status={status} isFailing={health.state === 'failing'} />,
  },
  {
    header: 'Environment',
    width: 120,
    visibleFrom: 'sm',
    cell: ({ environment }) => environmentLabels[environment],
  },
  { header: 'Event types', width: 190, visibleFrom: 'md', cell: ({ event_types }) => typesText(event_types) },
  {
    header: 'Held',
    width: 90,
    visibleFrom: 'sm',
    ta: 'right',
    cell: ({ held_deliveries }) => countText(held_deliveries),
  },
  {
    header: 'Created',
    width: 165,
    visibleFrom: 'lg',
    cell: ({ created_at }) => (
      <Note>
        <Ago at={created_at} />
      </Note>
    ),
  },
];

export function SubscriptionsPage() {
  const filters = useFilters(['q', 'status', 'health', 'environment', 'sort']);
  const { filter } = filters;
  const list = useSubscriptions(filter);
  const { total } = list;
  const create = (
    <Button component={Link} to="/subscriptions/new" leftSection={<PlusIcon size={16} />}>
      New subscription
    </Button>
  );
  const empty = filters.isFiltered ? (
    <Empty title="No matching subscriptions">Change or clear the search and the filters.</Empty>
  ) : (
    <Empty title="No subscriptions yet" action={create}>
      A subscription says which events go to which address.
    </Empty>
  );
  return (
    <PageBody title="Subscriptions" actions={create}>
      <Group gap="sm">
        <SearchFilter
          filters={filters}
          name="q"
          label="Search subscriptions"
          placeholder="Address, description, id"
          w={{ base: '100%', xs: 280 }}
        />
        <SelectFilter filters={filters} name="status" label="Status" data={statuses} widthPx={185} />
        <SelectFilter filters={filters} name="health" label="Health" data={healths} widthPx={150} />
        <SelectFilter filters={filters} name="environment" label="Environment" data={environments} widthPx={175} />
        <Select
          aria-label="Order"
          data={orders}
          value={filter.sort ?? 'newest'}
          onChange={(sort) => filters.set({ sort: sort === 'newest' ? null : sort })}
          allowDeselect={false}
          w={filterWidth(150)}
        />
        <ClearFilters filters={filters} />
        {filter.status === 'paused' && total !== undefined && total > 0 && (
          <ResumePaused q={filter.q} environment={filter.environment} health={filter.health} />
        )}
        {total !== undefined && list.data !== undefined && (
          <Note aria-live="polite">
            {amountText(total, 'subscription')}
            {list.data.length < total && `, the first ${countText(list.data.length)} are shown`}
          </Note>
        )}
      </Group>
      <PagedList list={list} what="list of subscriptions" empty={empty}>
        {(subscriptions) => (
          <DataTable aria-label="Subscriptions" columns={columns} rows={subscriptions} highlightOnHover />
        )}
      </PagedList>
    </PageBody>
  );
}
