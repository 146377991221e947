/** Asks what became of an event at an address, and shows the answer. */
import { Alert, Group, Text } from '@mantine/core';
import type { Explanation, PublishedEvent } from '@posthorn/operator-api';
import { useExplanation } from '../queries.ts';
import { CopyableAddress } from './address.tsx';
import { AddressPicker } from './address-picker.tsx';
import { useFilters } from './filters.tsx';
import { Note, PageLink } from './layout.tsx';
import { Loaded } from './states.tsx';
import { Countdown } from './time.tsx';

export function WhyNot({ event }: { event: Pick<PublishedEvent, 'id' | 'environment'> }) {
  // In the URL, so that a link shows the same answer.
  const { filter, set } = useFilters(['why'] as const);
  const chosen = filter.why;
  return (
    <>
      <AddressPicker
        label="Address"
        description="Choose an address, or paste the id of a subscription."
        placeholder="https://… or sub_…"
        value={chosen}
        onChange={(why) => set({ why })}
        maw={640}
        mb={chosen === null ? 0 : 'sm'}
      />
      {chosen !== null && <Answer event={event} subscriptionId={chosen} />}
    </>
  );
}

function Answer({ event, subscriptionId }: { event: Parameters<typeof WhyNot>[0]['event']; subscriptionId: string }) {
  const { id: event_id, environment } = event;
  const query = useExplanation({ event_id, environment, subscription_id: subscriptionId });
  return (
    <Loaded query={query} what="answer">
      {(found) => (
        <>
          <Alert color={colorOf(found.reason)} role="status" aria-label="Answer">
            <Text size="sm" fw={550} style={{ overflowWrap: 'anywhere' }}>
              {found.answer}
            </Text>
            {found.next_step && <Text size="sm">{found.next_step}</Text>}
            {found.due_at && (
              <Note mt={4} c="inherit">
                Next attempt <Countdown at={found.due_at} />
              </Note>
            )}
          </Alert>
          <Group gap="md" mt={6}>
            {found.delivery && <PageLink to={`/deliveries/${found.delivery.id}`}>The delivery</PageLink>}
            {found.subscription && <CopyableAddress id={subscriptionId} url={found.subscription.url} />}
          </Group>
        </>
      )}
    </Loaded>
  );
}

function colorOf(reason: Explanation['reason']): string {
  if (reason === 'delivered') return 'teal';
  if (reason === 'failed') return 'red';
  return reason === 'held' || reason === 'waiting_for_retry' ? 'yellow' : 'blue';
}
