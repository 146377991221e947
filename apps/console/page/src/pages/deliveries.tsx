/** All deliveries, newest first, refreshed, filtered by address, event, type, status and time. */
import { Button, Group, Select, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import { useDebouncedCallback } from '@mantine/hooks';
import dayjs from 'dayjs';
import { useFilters } from '../filters.ts';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { PageBody, Section } from '../parts/layout.tsx';
import { Empty, Loaded, MoreButton } from '../parts/states.tsx';
import { labelOf } from '../parts/status.tsx';
import { sessionEventTypes } from '../parts/subscription-fields.tsx';
import { useDeliveries, useUrls } from '../queries.ts';

const statuses = ['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed'] as const;
const names = ['subscription_id', 'event_id', 'event_type', 'status', 'from', 'to'] as const;

export function DeliveriesPage() {
  const { filter, set, clear } = useFilters(names);
  const isFiltered = names.some((name) => filter[name]);
  const list = useDeliveries(filter);
  const urls = useUrls();
  const setEventId = useDebouncedCallback((value: string) => set('event_id', value.trim()), 300);
  const options = [...urls].map(([value, label]) => ({ value, label }));
  if (filter.subscription_id && !urls.has(filter.subscription_id))
    options.push({ value: filter.subscription_id, label: filter.subscription_id });
  const time = (name: 'from' | 'to', label: string) => (
    <DateTimePicker
      aria-label={label}
      placeholder={label}
      value={filter[name] ? dayjs(filter[name]).format('YYYY-MM-DD HH:mm:ss') : null}
      onChange={(value) => set(name, value ? dayjs(value).toISOString() : null)}
      valueFormat="D MMM YYYY, HH:mm"
      clearable
      w={{ base: 'calc(50% - 6px)', xs: 200 }}
    />
  );
  return (
    <PageBody title="Deliveries">
      <Group gap="sm">
        <Select
          aria-label="Address"
          placeholder="Any address"
          data={options}
          value={filter.subscription_id ?? null}
          onChange={(value) => set('subscription_id', value)}
          searchable
          clearable
          w={{ base: 'calc(50% - 6px)', sm: 290 }}
        />
        <Select
          aria-label="Status"
          placeholder="Any status"
          data={statuses.map((value) => ({ value, label: labelOf(value) }))}
          value={filter.status ?? null}
          onChange={(value) => set('status', value)}
          clearable
          w={{ base: 'calc(50% - 6px)', xs: 170 }}
        />
        <Select
          aria-label="Event type"
          placeholder="Any event type"
          data={[...sessionEventTypes, 'webhook.test']}
          value={filter.event_type ?? null}
          onChange={(value) => set('event_type', value)}
          clearable
          w={{ base: 'calc(50% - 6px)', xs: 230 }}
        />
        <TextInput
          aria-label="Event id"
          placeholder="Event id"
          key={filter.event_id ?? ''}
          defaultValue={filter.event_id ?? ''}
          onChange={(event) => setEventId(event.currentTarget.value)}
          w={{ base: 'calc(50% - 6px)', xs: 230 }}
        />
        {time('from', 'Made from')}
        {time('to', 'Made until')}
        {isFiltered && (
          <Button variant="subtle" onClick={() => clear()}>
            Clear
          </Button>
        )}
      </Group>
      <Section flush>
        <Loaded query={list} what="list of deliveries">
          {({ pages }) => {
            const deliveries = pages.flatMap(({ data }) => data);
            if (deliveries.length > 0) return <DeliveryTable deliveries={deliveries} addresses={urls} />;
            return isFiltered ? (
              <Empty title={list.hasNextPage ? 'No matches among the newest' : 'No matching deliveries'}>
                {list.hasNextPage ? 'Load older deliveries with the button below.' : 'Change or clear the filters.'}
              </Empty>
            ) : (
              <Empty title="No deliveries yet">
                They appear here as soon as an event is published that an active subscription wants.
              </Empty>
            );
          }}
        </Loaded>
      </Section>
      <MoreButton list={list} />
    </PageBody>
  );
}
