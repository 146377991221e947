/** Bulk replays: the form that starts them, and the list of earlier ones. */
import type { Replay } from '@posthorn/operator-api';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { Note, PageBody, PageLink, RowLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Empty } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { INSTANT_WIDTH, Instant } from '../parts/time.tsx';
import { useReplays, useUrls } from '../queries.ts';
import { ReplayForm } from './replay-form.tsx';
import { outcomeText, shownStatus } from './replay-parts.tsx';

export function ReplaysPage() {
  const list = useReplays();
  const urls = useUrls((list.data ?? []).map(({ subscription_id }) => subscription_id));
  const columns: Column<Replay>[] = [
    {
      header: 'Address',
      cell: ({ id, subscription_id: subscriptionId, batch_id: batchId, ...replay }) => (
        <>
          <RowLink to={`/replays/${id}`} truncate title={urls.get(subscriptionId) ?? ''}>
            {urls.get(subscriptionId) ?? subscriptionId}
          </RowLink>
          {batchId && (
            <PageLink to={`/replays/${batchId}`} size="xs" c="dimmed">
              together with others
            </PageLink>
          )}
          <Note size="xs" hiddenFrom="md">
            {outcomeText(replay)}
          </Note>
        </>
      ),
    },
    { header: 'Status', width: 110, cell: (replay) => <StatusBadge status={shownStatus(replay)} /> },
    {
      header: 'Replayed',
      width: 110,
      visibleFrom: 'sm',
      cell: ({ replayed, total }) => `${countText(replayed)} of ${countText(total)}`,
    },
    { header: 'Outcome', width: 200, visibleFrom: 'md', cell: outcomeText },
    { header: 'Operator', width: 110, visibleFrom: 'md', cell: ({ operator }) => operator },
    {
      header: 'Started',
      width: INSTANT_WIDTH,
      visibleFrom: 'xs',
      cell: ({ created_at }) => <Instant at={created_at} />,
    },
  ];
  const empty = (
    <Empty title="No bulk replays yet">After an outage of a receiver, replay the deliveries that failed.</Empty>
  );
  return (
    <PageBody title="Bulk replays">
      <Section title="Replay failed deliveries">
        <ReplayForm />
      </Section>
      <PagedList list={list} what="list of bulk replays" title="Earlier bulk replays" empty={empty}>
        {(replays) => <DataTable aria-label="Bulk replays" columns={columns} rows={replays} highlightOnHover />}
      </PagedList>
    </PageBody>
  );
}
