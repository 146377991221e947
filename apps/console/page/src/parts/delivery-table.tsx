/** A table of deliveries. Each row links to its delivery. */
import { Text } from '@mantine/core';
import type { Delivery } from '@posthorn/operator-api';
import { Breakable } from './breakable.tsx';
import { type Column, DataTable } from './data-table.tsx';
import { Note, PageLink, RowLink } from './layout.tsx';
import { failureTexts, StatusBadge } from './status.tsx';
import { Countdown, INSTANT_WIDTH, Instant } from './time.tsx';

/** Returns the path of a delivery's event. Event ids are unique only within an environment. */
export const eventPath = ({ event_id, environment }: Pick<Delivery, 'event_id' | 'environment'>) =>
  `/events/${encodeURIComponent(event_id)}?environment=${environment}`;

/** An address has up to two lines; a longer one is in the tooltip. */
const ADDRESS_PROPS = { lineClamp: 2, style: { overflowWrap: 'anywhere' } } as const;

interface DeliveryTableProps {
  deliveries: Delivery[];
  /** Subscription ids to URLs; set if the deliveries belong to several subscriptions. */
  addresses?: Map<string, string>;
  /** Whether all are of one event, which then needs no column. */
  isOneEvent?: boolean;
}

export function DeliveryTable({ deliveries, addresses, isOneEvent = false }: DeliveryTableProps) {
  const address: Column<Delivery> = {
    header: 'Address',
    visibleFrom: 'lg',
    cell: ({ subscription_id: id }) => (
      <Text size="sm" {...ADDRESS_PROPS} title={addresses?.get(id)}>
        <Breakable text={addresses?.get(id) ?? id} />
      </Text>
    ),
  };
  const event: Column<Delivery> = {
    header: 'Event',
    width: addresses ? 150 : 330,
    // Beside the address there is only room for what the ids of many events have in common.
    visibleFrom: addresses ? 'xl' : 'lg',
    cell: (delivery) => (
      <PageLink to={eventPath(delivery)} className="mono" c="dimmed" size="xs" truncate>
        {delivery.event_id}
      </PageLink>
    ),
  };
  const columns: Column<Delivery>[] = [
    {
      header: 'Event type',
      width: addresses && { base: 'auto', lg: 200 },
      cell: ({ id, event_type, replay_of, created_at, subscription_id }) => (
        <>
          <RowLink to={`/deliveries/${id}`} fw={500} style={{ overflowWrap: 'break-word' }}>
            <Breakable text={event_type} />
          </RowLink>
          {addresses && (
            <Text size="xs" {...ADDRESS_PROPS} hiddenFrom="lg" title={addresses.get(subscription_id)}>
              <Breakable text={addresses.get(subscription_id) ?? subscription_id} />
            </Text>
          )}
          {replay_of && <Note size="xs">replay</Note>}
          <Note size="xs" hiddenFrom="xs">
            <Instant at={created_at} />
          </Note>
        </>
      ),
    },
    {
      header: 'Status',
      width: { base: 160, sm: 170 },
      cell: ({ status, failure_reason, next_attempt_at, erased }) => (
        <>
          <StatusBadge status={status} />
          <Note size="xs">
            {failure_reason && failureTexts[failure_reason]}
            {erased && failure_reason !== 'erased' && <div>Payload erased</div>}
            {next_attempt_at && (
              <>
                next <Countdown at={next_attempt_at} />
              </>
            )}
          </Note>
        </>
      ),
    },
    {
      header: 'Attempts',
      width: 100,
      visibleFrom: 'sm',
      cell: ({ attempt_count, max_attempts }) => `${attempt_count} of ${max_attempts}`,
    },
    ...(addresses ? [address] : []),
    ...(isOneEvent ? [] : [event]),
    {
      header: 'Created',
      width: INSTANT_WIDTH,
      visibleFrom: 'xs',
      cell: ({ created_at }) => <Instant at={created_at} />,
    },
  ];
  return <DataTable aria-label="Deliveries" columns={columns} rows={deliveries} highlightOnHover />;
}
