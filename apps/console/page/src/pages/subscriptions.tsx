/** All subscriptions, filtered by status and environment. */
import { Button, Group } from '@mantine/core';
import type { Subscription } from '@posthorn/operator-api';
import { IconPlus } from '@tabler/icons-react';
import { Link } from 'react-router';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, PageLink } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Empty } from '../parts/states.tsx';
import { StatusBadge, statusOptions } from '../parts/status.tsx';
import { environmentLabels, environments, typesText } from '../parts/subscription-fields.tsx';
import { Ago } from '../parts/time.tsx';
import { useSubscriptions } from '../queries.ts';

const statuses = statusOptions(['awaiting_validation', 'active', 'paused', 'refused']);

const columns: Column<Subscription>[] = [
  {
    header: 'Address',
    cell: ({ id, url, description }) => (
      <>
        <PageLink to={`/subscriptions/${id}`} fw={500} truncate title={url}>
          {url}
        </PageLink>
        {description && (
          <Note size="xs" truncate>
            {description}
          </Note>
        )}
      </>
    ),
  },
  { header: 'Status', width: { base: 150, sm: 185 }, cell: ({ status }) => <StatusBadge status={status} /> },
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
  const filters = useFilters(['status', 'environment'], false);
  const list = useSubscriptions(filters.filter);
  const create = (
    <Button component={Link} to="/subscriptions/new" leftSection={<IconPlus size={16} />}>
      New subscription
    </Button>
  );
  const empty =
    filters.filter.status || filters.filter.environment ? (
      <Empty title="No matching subscriptions">Choose another status or environment.</Empty>
    ) : (
      <Empty title="No subscriptions yet" action={create}>
        A subscription says which events go to which address.
      </Empty>
    );
  return (
    <PageBody title="Subscriptions" actions={create}>
      <Group gap="sm">
        <SelectFilter filters={filters} name="status" label="Status" data={statuses} widthPx={200} />
        <SelectFilter filters={filters} name="environment" label="Environment" data={environments} widthPx={200} />
      </Group>
      <PagedList list={list} what="list of subscriptions" empty={empty}>
        {(subscriptions) => (
          <DataTable aria-label="Subscriptions" columns={columns} rows={subscriptions} highlightOnHover />
        )}
      </PagedList>
    </PageBody>
  );
}
