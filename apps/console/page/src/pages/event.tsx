/** One event: its body and its deliveries. */
import { Button, Stack } from '@mantine/core';
import type { PublishedEvent } from '@posthorn/operator-api';
import { CircleSlashIcon } from '@primer/octicons-react';
import { Link, useParams, useSearchParams } from 'react-router';
import { CodeBlock, Copyable, prettyJson } from '../parts/code.tsx';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { erasePath } from '../parts/erasure.ts';
import { Facts, Note, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { searchPath } from '../parts/session-timeline.tsx';
import { Empty, Loaded, Unreadable } from '../parts/states.tsx';
import { Instant } from '../parts/time.tsx';
import { WhyNot } from '../parts/why-not.tsx';
import { useEvent, useUrls } from '../queries.ts';

/** Deliveries that are shown: a browser takes seconds for a thousand rows. The list of deliveries has all. */
const MAX_SHOWN = 100;

export function EventPage() {
  const { id = '' } = useParams();
  const [search] = useSearchParams();
  const loaded = useEvent(id, search.get('environment'));
  const all = loaded.data?.event.deliveries ?? [];
  const isCut = all.length > MAX_SHOWN;
  const deliveries = all.slice(0, MAX_SHOWN);
  const urls = useUrls(deliveries.map(({ subscription_id }) => subscription_id));
  const type = loaded.data?.event.type;
  return (
    <PageBody
      title={type ? `${type} event` : 'Event'}
      heading={type ?? 'Event'}
      badge={type && <Note>event</Note>}
      back={{ to: '/deliveries', label: 'Deliveries' }}
      actions={
        // Another event may have the same id in the other environment.
        loaded.data?.event.erased_at === null && (
          <Button
            component={Link}
            to={erasePath('event_id', id, loaded.data.event.environment)}
            variant="default"
            leftSection={<CircleSlashIcon size={16} />}
          >
            Erase
          </Button>
        )
      }
    >
      <Loaded query={loaded} what="event">
        {({ event, text }) => (
          <Stack>
            <Section title="Details">
              <Details event={event} />
            </Section>
            <Section title="Body">
              {event.erased_at === null ? (
                <CodeBlock text={bodyOf(text)} label="event" />
              ) : (
                <Empty title="Erased">An operator had the payload erased. The audit trail says who and when.</Empty>
              )}
            </Section>
            <Unreadable ids={event.unreadable} />
            <Section
              title={`Deliveries (${isCut ? 'the newest ' : ''}${deliveries.length})`}
              aside={isCut && <PageLink to={`/deliveries?event_id=${encodeURIComponent(id)}`}>All</PageLink>}
              flush
            >
              {deliveries.length === 0 ? (
                <Empty title="No deliveries">No subscription matched the event when it was accepted.</Empty>
              ) : (
                <DeliveryTable deliveries={deliveries} addresses={urls} isOneEvent />
              )}
            </Section>
            <Section title="Why, or why not?">
              <WhyNot event={event} />
            </Section>
          </Stack>
        )}
      </Loaded>
    </PageBody>
  );
}

function Details({ event }: { event: PublishedEvent }) {
  return (
    <Facts
      facts={{
        Id: <Copyable value={event.id} what="id" />,
        Environment: event.environment,
        'Same id in':
          event.also_in.length > 0 &&
          event.also_in.map((other) => (
            <PageLink key={other} to={`?environment=${other}`}>
              {other}
            </PageLink>
          )),
        Session: event.erased_at === null && (
          <PageLink to={searchPath('session_id', String(event.data.id))}>{String(event.data.id)}</PageLink>
        ),
        'Created at the publisher': <Instant at={event.created_at} />,
        Accepted: <Instant at={event.accepted_at} />,
        Trace: event.trace_id !== null && <Copyable value={event.trace_id} what="trace id" />,
        'Payload erased': event.erased_at !== null && <Instant at={event.erased_at} />,
      }}
    />
  );
}

/** The body that receivers get: the response without the fields that Posthorn adds. */
function bodyOf(text: string): string {
  const json = prettyJson(text);
  return `${json.slice(0, json.indexOf(',\n  "accepted_at"'))}\n}`;
}
