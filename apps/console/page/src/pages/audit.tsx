/** The audit trail: who did what, when, to which subscription or delivery. */

import { Anchor, Box, Group, Select, Table, Text } from '@mantine/core';
import type { AuditEntry } from '@posthorn/operator-api';
import { Link } from 'react-router';
import { useFilters } from '../filters.ts';
import { PageBody, Section } from '../parts/layout.tsx';
import { pageOfId } from '../parts/search-box.tsx';
import { Empty, Loaded, MoreButton } from '../parts/states.tsx';
import { Instant } from '../parts/time.tsx';
import { useAudit, useUrls } from '../queries.ts';

const actions: Record<AuditEntry['action'], string> = {
  'subscription.created': 'Created a subscription',
  'subscription.updated': 'Changed a subscription',
  'subscription.deleted': 'Deleted a subscription',
  'subscription.validated': 'Validated an address',
  'subscription.paused': 'Paused an address',
  'subscription.resumed': 'Resumed an address',
  'subscription.secret_rotated': 'Rotated a secret',
  'subscription.tested': 'Sent a test',
  'delivery.replayed': 'Replayed a delivery',
  'replay.started': 'Started a bulk replay',
  'session.started': 'Signed in',
  'session.ended': 'Signed out',
};

export function AuditPage() {
  const { filter, set } = useFilters(['subscription_id', 'action']);
  const list = useAudit(filter);
  const urls = useUrls();
  return (
    <PageBody title="Audit">
      <Group gap="sm">
        <Select
          aria-label="Address"
          placeholder="Any address"
          data={[...urls].map(([value, label]) => ({ value, label }))}
          value={filter.subscription_id}
          onChange={(value) => set('subscription_id', value)}
          searchable
          clearable
          w={{ base: 'calc(50% - 6px)', sm: 290 }}
        />
        <Select
          aria-label="Action"
          placeholder="Any action"
          data={Object.entries(actions).map(([value, label]) => ({ value, label }))}
          value={filter.action}
          onChange={(value) => set('action', value)}
          clearable
          w={{ base: 'calc(50% - 6px)', xs: 240 }}
        />
      </Group>
      <Section flush>
        <Loaded query={list} what="audit trail">
          {({ pages }) => {
            const entries = pages.flatMap(({ data }) => data);
            if (entries.length === 0)
              return <Empty title="No matching audit entries">Every change is recorded here.</Empty>;
            return (
              <Table verticalSpacing={7} layout="fixed" aria-label="Audit trail">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th w={140}>When</Table.Th>
                    <Table.Th w={110} visibleFrom="xs">
                      Who
                    </Table.Th>
                    <Table.Th>What</Table.Th>
                    <Table.Th visibleFrom="sm">About</Table.Th>
                    <Table.Th visibleFrom="md">Details</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {entries.map((entry) => (
                    <Table.Tr key={entry.id}>
                      <Table.Td>
                        <Instant at={entry.at} />
                      </Table.Td>
                      <Table.Td visibleFrom="xs">
                        <Text size="sm" truncate fs={entry.operator === null ? 'italic' : undefined}>
                          {entry.operator ?? 'Posthorn'}
                        </Text>
                      </Table.Td>
                      <Table.Td>
                        {actions[entry.action]}
                        <Box hiddenFrom="sm">
                          <About entry={entry} urls={urls} />
                        </Box>
                      </Table.Td>
                      <Table.Td visibleFrom="sm">
                        <About entry={entry} urls={urls} />
                      </Table.Td>
                      <Table.Td visibleFrom="md">
                        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                          {detailText(entry.detail)}
                        </Text>
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

function About({ entry, urls }: { entry: AuditEntry; urls: Map<string, string> }) {
  const id = entry.delivery_id ?? entry.replay_id ?? entry.subscription_id;
  if (id === null) return null;
  return (
    <Anchor component={Link} to={pageOfId(id)} size="sm" truncate display="block">
      {urls.get(id) ?? id}
    </Anchor>
  );
}

/** Shows for example `status: active`, or for a change `url: before → after`. */
function detailText(detail: AuditEntry['detail']): string {
  const text = (value: unknown) => (Array.isArray(value) ? value.join(' ') : String(value ?? 'none'));
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => {
      const change = value as { from?: unknown; to?: unknown };
      const isChange = typeof change === 'object' && 'from' in change && 'to' in change;
      return `${name.replaceAll('_', ' ')}: ${isChange ? `${text(change.from)} → ${text(change.to)}` : text(value)}`;
    })
    .join(', ');
}
