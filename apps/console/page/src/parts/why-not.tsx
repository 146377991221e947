/** Asks what became of an event at an address, and shows the answer. */
import { Alert, Autocomplete, Group, Text } from '@mantine/core';
import type { Explanation, PublishedEvent } from '@posthorn/operator-api';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { useExplanation, useUrls } from '../queries.ts';
import { Note, PageLink } from './layout.tsx';
import { Loaded } from './states.tsx';
import { Countdown } from './time.tsx';

/** The name of the query parameter with the chosen subscription, so that a link shows the same answer. */
const CHOSEN = 'why';
const SUBSCRIPTION_ID = /^sub_[A-Za-z0-9_-]{22}$/;

export function WhyNot({ event }: { event: Pick<PublishedEvent, 'id' | 'environment'> }) {
  const [search, setSearch] = useSearchParams();
  const chosen = search.get(CHOSEN);
  const urls = useUrls();
  const [text, setText] = useState(chosen ?? '');
  const choose = (value: string) => {
    setText(value);
    const id = [...urls].find(([id, url]) => optionOf(id, url) === value)?.[0] ?? value.trim();
    setSearch(
      (now) => {
        if (SUBSCRIPTION_ID.test(id)) now.set(CHOSEN, id);
        else now.delete(CHOSEN);
        return now;
      },
      { replace: true },
    );
  };
  return (
    <>
      <Autocomplete
        label="Address"
        description="Choose an address, or paste the id of a subscription."
        placeholder="https://… or sub_…"
        data={[...urls].map(([id, url]) => optionOf(id, url))}
        limit={20}
        value={text}
        onChange={choose}
        maw={640}
        mb={chosen === null ? 0 : 'sm'}
      />
      {chosen !== null && <Answer event={event} subscriptionId={chosen} />}
    </>
  );
}

/** Several subscriptions may have the same url. */
const optionOf = (id: string, url: string) => `${url} (${id})`;

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
            {found.subscription && (
              <PageLink to={`/subscriptions/${subscriptionId}`} style={{ overflowWrap: 'anywhere' }}>
                {found.subscription.url}
              </PageLink>
            )}
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
