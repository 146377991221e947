/** The audit trail: who did what, when, to which subscription or delivery. */
import { Box, Group, Select, Stack, Table, Text } from '@mantine/core';
import type { AuditEntry } from '@posthorn/operator-api';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { AddressFilter, ClearFilters, filterWidth, SearchFilter, SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, PageLink } from '../parts/layout.tsx';
import { pageOfId } from '../parts/search-box.tsx';
import { Empty } from '../parts/states.tsx';
import { environmentLabels } from '../parts/subscription-fields.tsx';
import { INSTANT_WIDTH, Instant } from '../parts/time.tsx';
import { TimeFilter } from '../parts/time-picker.tsx';
import { useAudit, useSession, useUrls } from '../queries.ts';

const actions: Record<AuditEntry['action'], string> = {
  'subscription.created': 'Subscription created',
  'subscription.updated': 'Subscription changed',
  'subscription.deleted': 'Subscription deleted',
  'subscription.validated': 'Address validated',
  'subscription.paused': 'Address paused',
  'subscription.resumed': 'Address resumed',
  'subscription.resume_succeeded': 'Resume succeeded',
  'subscription.resume_failed': 'Resume failed',
  'subscription.secret_rotated': 'Secret rotated',
  'subscription.tested': 'Test sent',
  'delivery.replayed': 'Delivery replayed',
  'delivery.tried_now': 'Delivery tried now',
  'replay.started': 'Bulk replay started',
  'replay.cancelled': 'Bulk replay cancelled',
  'replay.continued': 'Bulk replay continued',
  'erasure.started': 'Erasure confirmed',
  'erasure.done': 'Erasure done',
  'erasure.cancelled': 'Erasure cancelled',
  'session.started': 'Signed in',
  'session.ended': 'Signed out',
};
const actionOptions = Object.entries(actions).map(([value, label]) => ({ value, label }));

const names = ['subscription_id', 'target', 'operator', 'actor', 'action', 'from', 'to'] as const;
type AuditFilters = ReturnType<typeof useFilters<(typeof names)[number]>>;

export function AuditPage() {
  const filters = useFilters(names);
  const list = useAudit(filters.filter);
  const entries = list.data ?? [];
  const urls = useUrls(entries.flatMap(({ subscription_id }) => subscription_id ?? []));
  const none = list.hasNextPage ? (
    <Empty title="No matches among the newest entries">Load older entries with the button below.</Empty>
  ) : (
    <Empty title="No matching audit entries">Change or clear the filters.</Empty>
  );
  const noneYet = <Empty title="No audit entries yet">Every change is recorded here.</Empty>;
  return (
    <PageBody title="Audit">
      <Group gap="sm">
        <AddressFilter filters={filters} />
        <ActorFilter filters={filters} entries={entries} />
        <SelectFilter filters={filters} name="action" label="Action" data={actionOptions} searchable widthPx={210} />
        <SearchFilter filters={filters} name="target" label="Id" placeholder="Delivery or replay id" />
        <TimeFilter filters={filters} name="from" label="From" />
        <TimeFilter filters={filters} name="to" label="Until" />
        <ClearFilters filters={filters} />
      </Group>
      <PagedList list={list} what="audit trail" empty={filters.isFiltered ? none : noneYet}>
        {(rows) => <DataTable aria-label="Audit trail" columns={columnsOf(withDeleted(urls, rows))} rows={rows} />}
      </PagedList>
    </PageBody>
  );
}

/** Stands for Posthorn itself among the operators, whose names have no space. */
const ITSELF = 'Posthorn itself';

/** Filters by who acted: an operator that has a token or is on screen, or Posthorn itself. */
function ActorFilter({ filters: { filter, set }, entries }: { filters: AuditFilters; entries: AuditEntry[] }) {
  const { data: session } = useSession();
  const onScreen = entries.flatMap(({ operator }) => operator ?? []);
  const operators = new Set([
    ...(session?.operators ?? []),
    ...onScreen,
    ...(filter.operator ? [filter.operator] : []),
  ]);
  return (
    <Select
      aria-label="Who"
      placeholder="Anybody"
      data={[...[...operators].sort(), ITSELF]}
      value={filter.actor === 'posthorn' ? ITSELF : filter.operator}
      onChange={(value) =>
        set(value === ITSELF ? { operator: null, actor: 'posthorn' } : { operator: value, actor: null })
      }
      searchable
      clearable
      w={filterWidth(170)}
    />
  );
}

/** Adds the URLs of deleted subscriptions, which only the trail knows any more. */
function withDeleted(urls: Map<string, string>, entries: AuditEntry[]): Map<string, string> {
  const all = new Map(urls);
  for (const { subscription_id: id, detail } of entries)
    if (id !== null && !all.has(id) && typeof detail.url === 'string') all.set(id, detail.url);
  return all;
}

/** `urls` are the URLs of subscriptions by id. */
function columnsOf(urls: Map<string, string>): Column<AuditEntry>[] {
  return [
    {
      header: 'When',
      width: { base: 130, sm: INSTANT_WIDTH },
      cell: ({ at, operator }) => (
        <>
          <Instant at={at} />
          <Box hiddenFrom="xs">
            <Who operator={operator} />
          </Box>
        </>
      ),
    },
    { header: 'Who', width: 110, visibleFrom: 'xs', cell: ({ operator }) => <Who operator={operator} /> },
    {
      header: 'What',
      cell: (entry) => (
        <Stack gap={4}>
          <What entry={entry} />
          <Text component="div" size="sm" hiddenFrom="sm">
            <About entry={entry} urls={urls} />
          </Text>
        </Stack>
      ),
    },
    { header: 'About', width: '34%', visibleFrom: 'sm', cell: (entry) => <About entry={entry} urls={urls} /> },
  ];
}

function Who({ operator }: Pick<AuditEntry, 'operator'>) {
  return (
    <Text size="sm" truncate fs={operator === null ? 'italic' : undefined} title={operator ?? undefined}>
      {operator ?? 'Posthorn'}
    </Text>
  );
}

/** The address, and below it the delivery or the bulk replay. */
function About({ entry, urls }: { entry: AuditEntry; urls: Map<string, string> }) {
  const { subscription_id: subscriptionId, delivery_id, replay_id, detail } = entry;
  const link = (id: string, text: string) => (
    <PageLink to={pageOfId(id)} truncate title={text}>
      {text}
    </PageLink>
  );
  const { new_delivery_id: newId, erasure_id: erasureId } = detail;
  return (
    <>
      {subscriptionId !== null && link(subscriptionId, urls.get(subscriptionId) ?? subscriptionId)}
      {delivery_id !== null && link(delivery_id, `Delivery ${delivery_id}`)}
      {typeof newId === 'string' && link(newId, `Replayed as ${newId}`)}
      {replay_id !== null && link(replay_id, `Bulk replay ${replay_id}`)}
      {typeof erasureId === 'string' && link(erasureId, `Erasure ${erasureId}`)}
    </>
  );
}

/** What was done in a sentence; a change also as a table of the fields. */
function What({ entry: { action, summary, detail } }: { entry: AuditEntry }) {
  const changes = action === 'subscription.updated' ? changesOf(detail) : [];
  if (changes.length === 0) {
    return (
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {summary}
      </Text>
    );
  }
  return (
    <>
      <Text size="sm">Changed the subscription.</Text>
      <Table
        aria-label="Changed fields"
        withRowBorders={false}
        horizontalSpacing={0}
        verticalSpacing={1}
        layout="fixed"
        fz="xs"
      >
        <Table.Tbody>
          {changes.map(({ name, from, to }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" w={92} fw={500}>
                {name}
              </Table.Th>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                <Note span size="xs" td="line-through">
                  {from}
                </Note>{' '}
                → {to}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

const fieldNames: Record<string, string> = {
  url: 'Address',
  event_types: 'Event types',
  environment: 'Environment',
  description: 'Description',
  status: 'Status',
};

/** The fields that a change names, each with its value before and after. */
function changesOf(detail: AuditEntry['detail']): { name: string; from: string; to: string }[] {
  return Object.entries(detail).flatMap(([field, value]) => {
    if (typeof value !== 'object' || value === null || !('from' in value) || !('to' in value)) return [];
    const name = fieldNames[field] ?? field.replaceAll('_', ' ');
    return [{ name, from: valueText(field, value.from), to: valueText(field, value.to) }];
  });
}

function valueText(field: string, value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  if (Array.isArray(value)) return value.join(', ');
  if (field === 'environment') return environmentLabels[value as keyof typeof environmentLabels] ?? String(value);
  if (field === 'event_types') return 'all types';
  return field === 'status' ? String(value).replaceAll('_', ' ') : String(value);
}
