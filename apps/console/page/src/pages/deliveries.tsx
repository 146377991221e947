/** All deliveries, newest first, refreshed, filtered by address, event, type, environment, status, error and time. */
import { Group, Pill } from '@mantine/core';
import { PagedList } from '../parts/data-table.tsx';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { AddressFilter, ClearFilters, SearchFilter, SelectFilter, useFilters } from '../parts/filters.tsx';
import { PageBody } from '../parts/layout.tsx';
import { Empty } from '../parts/states.tsx';
import { failureOptions, statusOptions } from '../parts/status.tsx';
import { eventEnvironments, eventTypes } from '../parts/subscription-fields.tsx';
import { TimeFilter } from '../parts/time-picker.tsx';
import { TryWaiting } from '../parts/try-waiting.tsx';
import { useDeliveries, useUrls } from '../queries.ts';

const statuses = statusOptions(['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed']);
// Only failed deliveries have an error.
const NO_ERROR = { error: null };
const FAILED = { status: 'failed' };
const names = [
  'subscription_id',
  'event_id',
  'event_type',
  'environment',
  'status',
  'error',
  'from',
  'to',
  'replay_id',
] as const;

export function DeliveriesPage() {
  const filters = useFilters(names);
  const { filter } = filters;
  const { status, error: _, ...shownBy } = filter;
  const list = useDeliveries(filter);
  const urls = useUrls((list.data ?? []).map(({ subscription_id }) => subscription_id));
  const none = list.hasNextPage ? (
    <Empty title="No matches among the newest deliveries">Load older deliveries with the button below.</Empty>
  ) : (
    <Empty title="No matching deliveries">Change or clear the filters.</Empty>
  );
  const noneYet = (
    <Empty title="No deliveries yet">A delivery appears here when an event matches an active subscription.</Empty>
  );
  return (
    <PageBody title="Deliveries" actions={status === 'waiting_for_retry' && <TryWaiting shownBy={shownBy} />}>
      <Group gap="sm">
        <AddressFilter filters={filters} />
        <SelectFilter filters={filters} name="status" label="Status" data={statuses} also={NO_ERROR} widthPx={170} />
        <SelectFilter filters={filters} name="error" label="Error" data={failureOptions} also={FAILED} widthPx={250} />
        <SelectFilter filters={filters} name="event_type" label="Event type" data={eventTypes} widthPx={230} />
        <SelectFilter filters={filters} name="environment" label="Environment" data={eventEnvironments} widthPx={170} />
        <SearchFilter filters={filters} name="event_id" label="Event id" placeholder="Event id" />
        <TimeFilter filters={filters} name="from" label="Created from" />
        <TimeFilter filters={filters} name="to" label="Created until" />
        {filter.replay_id && (
          <Pill withRemoveButton onRemove={() => filters.set({ replay_id: null })}>
            Made by bulk replay {filter.replay_id}
          </Pill>
        )}
        <ClearFilters filters={filters} />
      </Group>
      <PagedList list={list} what="list of deliveries" empty={filters.isFiltered ? none : noneYet}>
        {(deliveries) => <DeliveryTable deliveries={deliveries} addresses={urls} />}
      </PagedList>
    </PageBody>
  );
}
