/** One event: its body and its deliveries. */

import { Anchor, Group, Stack, Text, Title } from '@mantine/core';
import type { PublishedEvent } from '@posthorn/operator-api';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearchParams } from 'react-router';
import { callText } from '../api.ts';
import { CodeBlock, Copyable, prettyJson } from '../parts/code.tsx';
import { DeliveryTable } from '../parts/delivery-table.tsx';
import { Facts, PageBody, Section } from '../parts/layout.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Instant } from '../parts/time.tsx';
import { useUrls } from '../queries.ts';

export function EventPage() {
  const { id = '' } = useParams();
  const [query] = useSearchParams();
  const environment = query.get('environment');
  const event = useQuery({
    queryKey: ['event', id, environment],
    queryFn: async () => {
      const text = await callText(
        'GET',
        `/v1/events/${encodeURIComponent(id)}${environment ? `?environment=${environment}` : ''}`,
      );
      return { event: JSON.parse(text) as PublishedEvent, body: bodyOf(text) };
    },
    refetchInterval: 2_000,
  });
  const urls = useUrls();
  const heading = (
    <Group gap="sm">
      <Title order={1} size="h3" style={{ overflowWrap: 'anywhere' }}>
        {event.data?.event.type ?? 'Event'}
      </Title>
      {event.data && (
        <Text c="dimmed" size="sm">
          event
        </Text>
      )}
    </Group>
  );
  return (
    <PageBody
      title={event.data ? `${event.data.event.type} event` : 'Event'}
      heading={heading}
      back={{ to: '/deliveries', label: 'Deliveries' }}
    >
      <Loaded query={event} what="event">
        {({ event: loaded, body }) => (
          <Stack>
            <Section title="Details">
              <Facts
                facts={{
                  Id: <Copyable value={loaded.id} what="id" />,
                  Environment: loaded.environment,
                  ...(loaded.also_in.length > 0 && {
                    'Same id in': loaded.also_in.map((other) => (
                      <Anchor key={other} component={Link} to={`?environment=${other}`} size="sm">
                        {other}
                      </Anchor>
                    )),
                  }),
                  'Created at the publisher': <Instant at={loaded.created_at} />,
                  Accepted: <Instant at={loaded.accepted_at} />,
                }}
              />
            </Section>
            <Section title="Body">
              <CodeBlock text={body} label="body" />
            </Section>
            <Section title={`Deliveries (${loaded.deliveries.length})`} flush>
              {loaded.deliveries.length === 0 ? (
                <Empty title="No deliveries">No subscription matched the event when it was accepted.</Empty>
              ) : (
                <DeliveryTable deliveries={loaded.deliveries} addresses={urls} />
              )}
            </Section>
          </Stack>
        )}
      </Loaded>
    </PageBody>
  );
}

/** The body that receivers get: the response without the fields that Posthorn adds. */
function bodyOf(text: string): string {
  const lines = prettyJson(text).split('\n');
  const end = lines.findIndex((line) => line.startsWith('  "accepted_at"'));
  return [...lines.slice(0, end - 1), lines[end - 1]!.replace(/,$/, ''), '}'].join('\n');
}
