/** The events of a search with their deliveries, newest first; what arrived out of order is marked. */
import { Box, Group, Stack, Text } from '@mantine/core';
import type { Timeline } from '@posthorn/operator-api';
import { withQuery } from '../api.ts';
import { Breakable } from './breakable.tsx';
import { eventPath } from './delivery-table.tsx';
import { Note, PageLink } from './layout.tsx';
import { amountText } from './numbers.ts';
import { StateBadge, StatusBadge } from './status.tsx';
import { Instant } from './time.tsx';

type Item = Timeline['data'][number];

/** `addresses` maps subscription ids to URLs. */
export function SessionTimeline({ items, addresses }: { items: Item[]; addresses: Map<string, string> }) {
  return (
    <Box component="ol" m={0} p={0} style={{ listStyle: 'none' }} aria-label="Timeline">
      {items.map((item) => (
        <Box component="li" key={`${item.id} ${item.environment}`} p="md" className="timeline-item">
          <EventLine item={item} />
          <Deliveries item={item} addresses={addresses} />
        </Box>
      ))}
    </Box>
  );
}

function EventLine({ item }: { item: Item }) {
  const { session_id, reference, user_id } = item;
  return (
    <>
      <Group gap="xs" justify="space-between">
        <Group gap="xs">
          <PageLink to={eventPath({ event_id: item.id, environment: item.environment })} fw={600}>
            {item.type}
          </PageLink>
          <Note size="xs">{item.environment}</Note>
          {item.out_of_order && <LateBadge title="Accepted after a later event of its session" />}
        </Group>
        <Note size="xs">
          <Instant at={item.accepted_at} />
        </Note>
      </Group>
      <Group gap="md" mt={2}>
        <TermLink name="Session" by="session_id" value={session_id} />
        <TermLink name="Reference" by="reference" value={reference} />
        <TermLink name="User" by="user_id" value={user_id} />
      </Group>
    </>
  );
}

/** Publishers choose these values: they are shown as text, and a long one is cut. */
function TermLink({ name, by, value }: { name: string; by: string; value: string | null }) {
  if (value === null) return null;
  return (
    <Text size="xs" c="dimmed" maw="100%" truncate>
      {name}{' '}
      <PageLink to={searchPath(by, value)} size="xs" underline="always" title={value.slice(0, 200)}>
        {value.slice(0, 80)}
      </PageLink>
    </Text>
  );
}

/** Returns the path of the search for a value of one field. */
export const searchPath = (by: string, value: string) => withQuery('/search', { q: value, by });

function Deliveries({ item, addresses }: { item: Item; addresses: Map<string, string> }) {
  const { deliveries, more_deliveries } = item;
  if (deliveries.length === 0 && !more_deliveries) return <Note size="xs">No subscription matched it.</Note>;
  return (
    <Stack gap={6} mt="xs">
      {deliveries.map(({ id, subscription_id, status, attempt_count, finished_at, out_of_order }) => (
        <Group key={id} gap="xs" wrap="nowrap" align="flex-start">
          <StatusBadge status={status} />
          <Group gap="xs">
            <PageLink to={`/deliveries/${id}`} style={{ overflowWrap: 'anywhere' }}>
              <Breakable text={addresses.get(subscription_id) ?? subscription_id} />
            </PageLink>
            <Note size="xs">{amountText(attempt_count, 'attempt')}</Note>
            {finished_at && (
              <Note size="xs">
                <Instant at={finished_at} />
              </Note>
            )}
            {out_of_order && <LateBadge title="Arrived after a later event of its session at the same address" />}
          </Group>
        </Group>
      ))}
      {more_deliveries && <Note size="xs">The event has more deliveries: open it to see them.</Note>}
    </Stack>
  );
}

function LateBadge({ title }: { title: string }) {
  return <StateBadge color="yellow" label="Out of order" title={title} />;
}
