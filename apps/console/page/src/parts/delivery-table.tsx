/** A table of deliveries. Each row links to its delivery. */

import { Anchor, Table, Text } from '@mantine/core';
import type { Delivery } from '@posthorn/operator-api';
import { Link } from 'react-router';
import { failureOf, StatusBadge } from './status.tsx';
import { Countdown, Instant } from './time.tsx';

/** Returns the path of a delivery's event. Event ids are unique only within an environment. */
export const eventPath = ({ event_id, environment }: Pick<Delivery, 'event_id' | 'environment'>) =>
  `/events/${encodeURIComponent(event_id)}?environment=${environment}`;

/** `addresses` maps subscription ids to URLs; set it if the deliveries belong to several subscriptions. */
export function DeliveryTable({ deliveries, addresses }: { deliveries: Delivery[]; addresses?: Map<string, string> }) {
  return (
    <Table highlightOnHover verticalSpacing={7} layout="fixed" aria-label="Deliveries">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w={addresses ? { base: 'auto', md: 200 } : undefined}>Event type</Table.Th>
          <Table.Th w={170}>Status</Table.Th>
          <Table.Th w={100} visibleFrom="sm">
            Attempts
          </Table.Th>
          {addresses && <Table.Th visibleFrom="md">Address</Table.Th>}
          <Table.Th w={addresses ? 150 : 330} visibleFrom="lg">
            Event
          </Table.Th>
          <Table.Th w={165} visibleFrom="xs">
            Created
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {deliveries.map((delivery) => (
          <Table.Tr key={delivery.id}>
            <Table.Td>
              <Anchor
                component={Link}
                to={`/deliveries/${delivery.id}`}
                size="sm"
                fw={500}
                style={{ overflowWrap: 'break-word' }}
              >
                {delivery.event_type}
              </Anchor>
              {delivery.replay_of && (
                <Text size="xs" c="dimmed">
                  replay
                </Text>
              )}
              <Text size="xs" c="dimmed" hiddenFrom="xs">
                <Instant at={delivery.created_at} />
              </Text>
            </Table.Td>
            <Table.Td>
              <StatusBadge status={delivery.status} />
              {delivery.failure_reason && (
                <Text size="xs" c="dimmed" visibleFrom="sm">
                  {failureOf(delivery.failure_reason)}
                </Text>
              )}
              {delivery.next_attempt_at && (
                <Text size="xs" c="dimmed" visibleFrom="sm">
                  next <Countdown to={delivery.next_attempt_at} />
                </Text>
              )}
            </Table.Td>
            <Table.Td visibleFrom="sm" className="numbers">
              {delivery.attempt_count} of {delivery.max_attempts}
            </Table.Td>
            {addresses && (
              <Table.Td visibleFrom="md" maw={260}>
                <Text size="sm" truncate title={addresses.get(delivery.subscription_id)}>
                  {addresses.get(delivery.subscription_id) ?? delivery.subscription_id}
                </Text>
              </Table.Td>
            )}
            <Table.Td visibleFrom="lg" maw={220}>
              <Anchor
                component={Link}
                to={eventPath(delivery)}
                className="mono"
                c="dimmed"
                size="xs"
                truncate
                display="block"
              >
                {delivery.event_id}
              </Anchor>
            </Table.Td>
            <Table.Td visibleFrom="xs">
              <Text size="sm">
                <Instant at={delivery.created_at} />
              </Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
