/** Bulk replays: the form that starts them, and the list of earlier ones. */
import type { Replay } from '@posthorn/operator-api';
import { type Column, DataTable, PagedList } from '../parts/data-table.tsx';
import { PageBody, Section } from '../parts/layout.tsx';
import { Empty } from '../parts/states.tsx';
import { INSTANT_WIDTH, Instant } from '../parts/time.tsx';
import { useReplays, useUrls } from '../queries.ts';
import { ReplayForm } from './replay-form.tsx';
import { replayColumns } from './replay-parts.tsx';

export function ReplaysPage() {
  const list = useReplays();
  const urls = useUrls((list.data ?? []).map(({ subscription_id }) => subscription_id));
  const columns: Column<Replay>[] = [
    ...replayColumns(urls),
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
