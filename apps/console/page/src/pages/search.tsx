/** What a text finds: an event by its id, subscriptions, and the events of a session, a reference or a user. */
import { Stack } from '@mantine/core';
import type { Subscription } from '@posthorn/operator-api';
import { Navigate, useSearchParams } from 'react-router';
import { isMissing } from '../api.ts';
import { AddressLink } from '../parts/address.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { erasePath, erasureOptions } from '../parts/erasure.ts';
import { SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { SessionTimeline } from '../parts/session-timeline.tsx';
import { Empty, Loaded, type Query, Unreadable } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { useEvent, useSubscriptions, useTimeline, useUrls } from '../queries.ts';

const fields = erasureOptions.filter(({ value }) => value !== 'event_id');
/** What an id of an event can look like. */
const EVENT_ID = /^(?!\.{1,2}$)[A-Za-z0-9._:~-]{1,128}$/;

export function SearchPage() {
  const [search] = useSearchParams();
  const text = search.get('q') ?? '';
  const by = fields.find(({ value }) => value === search.get('by'))?.value;
  const title = text === '' ? 'Search' : `Search for ${text.slice(0, 80)}`;
  return (
    <PageBody title={title} heading={title}>
      {text === '' ? (
        <Empty title="Nothing to search for">Enter an id, a part of an address, or a session, reference or user.</Empty>
      ) : by !== undefined || !EVENT_ID.test(text) ? (
        <Results text={text} by={by} />
      ) : (
        <UnlessEvent text={text} />
      )}
    </PageBody>
  );
}

/** Goes to the event with this id if there is one. */
function UnlessEvent({ text }: { text: string }) {
  // Read here: a change of what only the results read, and only once they have found nothing, would not be rendered.
  const { data, error, refetch } = useEvent(text, null);
  if (data) return <Navigate to={`/events/${encodeURIComponent(text)}`} replace />;
  return <Results text={text} by={undefined} event={{ data, error, refetch }} />;
}

interface ResultsProps {
  text: string;
  by: string | undefined;
  /** The read of the event with this id, which has found none so far. */
  event?: Query<unknown>;
}

function Results({ text, by, event }: ResultsProps) {
  const filters = useFilters(['by'] as const);
  const timeline = useTimeline({ [by ?? 'q']: text, limit: 100 });
  const shown = timeline.data?.data.flatMap(({ deliveries }) => deliveries) ?? [];
  const urls = useUrls(shown.map(({ subscription_id }) => subscription_id));
  return (
    <Stack>
      {by === undefined && <Subscriptions text={text} />}
      <Section
        title="Events and deliveries"
        aside={<SelectFilter filters={filters} name="by" label="Field" data={fields} widthPx={170} />}
        flush
      >
        <Loaded query={timeline} what="timeline">
          {({ data, has_more, search, unreadable }) => (
            <>
              <Unreadable ids={unreadable} />
              {data.length === 0 && event && !isMissing(event.error) ? (
                <Loaded query={event} what="event">
                  {() => null}
                </Loaded>
              ) : data.length === 0 ? (
                <Empty title="No event has this value">
                  {search === 'off'
                    ? 'Events are not indexed, because EVENT_SEARCH is off at ingest. An event can be found by its own id.'
                    : 'Ids, references and user ids are compared as a whole. Events expire with the retention.'}
                </Empty>
              ) : (
                <>
                  <SessionTimeline items={data} addresses={urls} />
                  {by !== undefined && (
                    <PageLink to={erasePath(by, text)} p="md" display="block">
                      Erase the payloads with this value
                    </PageLink>
                  )}
                </>
              )}
              {has_more && (
                <Note size="xs" maw="100%">
                  Older events may match too.
                </Note>
              )}
            </>
          )}
        </Loaded>
      </Section>
    </Stack>
  );
}

const MAX_SUBSCRIPTIONS = 5;
const columns: Column<Subscription>[] = [
  {
    header: 'Address',
    cell: ({ id, url, description }) => <AddressLink id={id} url={url} description={description} />,
  },
  { header: 'Status', width: { base: 150, sm: 185 }, cell: ({ status }) => <StatusBadge status={status} /> },
];

function Subscriptions({ text }: { text: string }) {
  const list = useSubscriptions({ q: text.slice(0, 200), limit: MAX_SUBSCRIPTIONS + 1 });
  return (
    <Section title="Subscriptions" flush>
      <Loaded query={list} what="list">
        {(rows) =>
          rows.length === 0 ? (
            <Note px="md" pb="md">
              No url or description of a subscription has this text, and no id begins with it.
            </Note>
          ) : (
            <>
              <DataTable
                aria-label="Subscriptions"
                columns={columns}
                rows={rows.slice(0, MAX_SUBSCRIPTIONS)}
                hideHeaders
              />
              {rows.length > MAX_SUBSCRIPTIONS && (
                <PageLink to={`/subscriptions?${new URLSearchParams({ q: text })}`} p="md" display="block">
                  All matching subscriptions
                </PageLink>
              )}
            </>
          )
        }
      </Loaded>
    </Section>
  );
}
