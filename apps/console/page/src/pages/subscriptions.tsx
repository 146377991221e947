/** All subscriptions, filtered by status and environment. */
import { Anchor, Button, Group, Select, Table, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link } from 'react-router';
import { useFilters } from '../filters.ts';
import { PageBody, Section } from '../parts/layout.tsx';
import { Empty, Loaded, MoreButton } from '../parts/states.tsx';
import { labelOf, StatusBadge } from '../parts/status.tsx';
import { environmentLabel, environments, typesText } from '../parts/subscription-fields.tsx';
import { Ago } from '../parts/time.tsx';
import { useSubscriptions } from '../queries.ts';

const statuses = ['awaiting_validation', 'active', 'paused', 'refused'] as const;

export function SubscriptionsPage() {
  const { filter, set } = useFilters(['status', 'environment'], false);
  const list = useSubscriptions(filter);
  const create = (
    <Button component={Link} to="/subscriptions/new" leftSection={<IconPlus size={16} />}>
      New subscription
    </Button>
  );
  return (
    <PageBody title="Subscriptions" actions={create}>
      <Group gap="sm">
        <Select
          aria-label="Status"
          placeholder="Any status"
          data={statuses.map((value) => ({ value, label: labelOf(value) }))}
          value={filter.status}
          onChange={(value) => set('status', value)}
          clearable
          w={{ base: 'calc(50% - 6px)', xs: 200 }}
        />
        <Select
          aria-label="Environment"
          placeholder="Any environment"
          data={environments}
          value={filter.environment}
          onChange={(value) => set('environment', value)}
          clearable
          w={{ base: 'calc(50% - 6px)', xs: 200 }}
        />
      </Group>
      <Section flush>
        <Loaded query={list} what="list of subscriptions">
          {({ pages }) => {
            const subscriptions = pages.flatMap(({ data }) => data);
            if (subscriptions.length === 0 && (filter.status || filter.environment))
              return <Empty title="No matching subscriptions">Choose another status or environment.</Empty>;
            if (subscriptions.length === 0)
              return (
                <Empty title="No subscriptions yet" action={create}>
                  A subscription says which events go to which address.
                </Empty>
              );
            return (
              <Table highlightOnHover verticalSpacing={8} layout="fixed" aria-label="Subscriptions">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Address</Table.Th>
                    <Table.Th w={{ base: 150, sm: 185 }}>Status</Table.Th>
                    <Table.Th w={120} visibleFrom="sm">
                      Environment
                    </Table.Th>
                    <Table.Th w={190} visibleFrom="md">
                      Event types
                    </Table.Th>
                    <Table.Th w={90} ta="right" visibleFrom="sm">
                      Held
                    </Table.Th>
                    <Table.Th w={165} visibleFrom="lg">
                      Created
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {subscriptions.map((subscription) => (
                    <Table.Tr key={subscription.id}>
                      <Table.Td>
                        <Anchor
                          component={Link}
                          to={`/subscriptions/${subscription.id}`}
                          size="sm"
                          fw={500}
                          truncate
                          display="block"
                          title={subscription.url}
                        >
                          {subscription.url}
                        </Anchor>
                        {subscription.description && (
                          <Text size="xs" c="dimmed" truncate>
                            {subscription.description}
                          </Text>
                        )}
                      </Table.Td>
                      <Table.Td>
                        <StatusBadge status={subscription.status} />
                      </Table.Td>
                      <Table.Td visibleFrom="sm">{environmentLabel(subscription.environment)}</Table.Td>
                      <Table.Td visibleFrom="md">{typesText(subscription.event_types)}</Table.Td>
                      <Table.Td visibleFrom="sm" ta="right" className="numbers">
                        {subscription.held_deliveries.toLocaleString('en')}
                      </Table.Td>
                      <Table.Td visibleFrom="lg" c="dimmed">
                        <Ago at={subscription.created_at} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            );
          }}
        </Loaded>
      </Section>
      <MoreButton list={list} />
    </PageBody>
  );
}
