/** The audit trail: who did what, when, to which subscription or delivery. */

import { Box, Group, Text } from '@mantine/core';
import type { AuditEntry } from '@posthorn/operator-api';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { AddressFilter, SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, PageLink } from '../parts/layout.tsx';
import { pageOfId } from '../parts/search-box.tsx';
import { Empty } from '../parts/states.tsx';
import { Instant } from '../parts/time.tsx';
import { useAudit, useUrls } from '../queries.ts';

const actions: Record<AuditEntry['action'], string> = {
  'subscription.created': 'Created a subscription',
  'subscription.updated': 'Changed a subscription',
  'subscription.deleted': 'Deleted a subscription',
  'subscription.validated': 'Validated an address',
  'subscription.paused': 'Paused an address',
  'subscription.resumed': 'Resumed an address',
  'subscription.resume_succeeded': 'A resume succeeded',
  'subscription.resume_failed': 'A resume failed: paused again',
  'delivery.tried_now': 'Tried a delivery now',
  'subscription.secret_rotated': 'Rotated a secret',
  'subscription.tested': 'Sent a test',
  'delivery.replayed': 'Replayed a delivery',
  'replay.started': 'Started a bulk replay',
  'replay.cancelled': 'Cancelled a bulk replay',
  'replay.continued': 'Continued a bulk replay',
  'session.started': 'Signed in',
  'session.ended': 'Signed out',
};
const actionOptions = Object.entries(actions).map(([value, label]) => ({ value, label }));

export function AuditPage() {
  const filters = useFilters(['subscription_id', 'action']);
  const list = useAudit(filters.filter);
  const urls = useUrls((list.data ?? []).flatMap(({ subscription_id }) => subscription_id ?? []));
  const empty = <Empty title="No matching audit entries">Every change is recorded here.</Empty>;
  return (
    <PageBody title="Audit">
      <Group gap="sm">
        <AddressFilter filters={filters} />
        <SelectFilter filters={filters} name="action" label="Action" data={actionOptions} widthPx={240} />
      </Group>
      <PagedList list={list} what="audit trail" empty={empty}>
        {(entries) => <DataTable aria-label="Audit trail" columns={columnsOf(urls)} rows={entries} />}
      </PagedList>
    </PageBody>
  );
}

/** `urls` are the URLs of subscriptions by id. */
function columnsOf(urls: Map<string, string>): Column<AuditEntry>[] {
  const about = ({ delivery_id, replay_id, subscription_id }: AuditEntry) => {
    const id = delivery_id ?? replay_id ?? subscription_id;
    return (
      id !== null && (
        <PageLink to={pageOfId(id)} truncate>
          {urls.get(id) ?? id}
        </PageLink>
      )
    );
  };
  return [
    { header: 'When', width: 140, cell: ({ at }) => <Instant at={at} /> },
    {
      header: 'Who',
      width: 110,
      visibleFrom: 'xs',
      cell: ({ operator }) => (
        <Text size="sm" truncate fs={operator === null ? 'italic' : undefined}>
          {operator ?? 'Posthorn'}
        </Text>
      ),
    },
    {
      header: 'What',
      cell: (entry) => (
        <>
          {actions[entry.action]}
          <Box hiddenFrom="sm">{about(entry)}</Box>
        </>
      ),
    },
    { header: 'About', visibleFrom: 'sm', cell: about },
    {
      header: 'Details',
      visibleFrom: 'md',
      cell: ({ detail }) => (
        <Note size="xs" style={{ overflowWrap: 'anywhere' }}>
          {detailText(detail)}
        </Note>
      ),
    },
  ];
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
