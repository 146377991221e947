/** One delivery: its attempts, and the request that was sent. */
import { Grid, Stack, Tabs } from '@mantine/core';
import type { Delivery, DeliveryWithAttempts } from '@posthorn/operator-api';
import { PlayIcon, SyncIcon } from '@primer/octicons-react';
import { useState } from 'react';
import { useParams } from 'react-router';
import { isMissing } from '../api.ts';
import { now } from '../clock.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { CopyableAddress } from '../parts/address.tsx';
import { AttemptComparison } from '../parts/attempt-comparison.tsx';
import { AttemptTimeline } from '../parts/attempt-timeline.tsx';
import { CodeBlock, Copyable, curlOf, prettyJson } from '../parts/code.tsx';
import { eventPath } from '../parts/delivery-table.tsx';
import { Facts, Note, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { useDelivery, usePost, useRequest, useSubscription } from '../queries.ts';

export function DeliveryPage() {
  const { id = '' } = useParams();
  const delivery = useDelivery(id);
  const replay = usePost<Delivery>(`/v1/deliveries/${id}/replay`, {
    done: 'Replayed: this is the new delivery.',
    opens: (created) => `/deliveries/${created.id}`,
  });
  const tryNow = usePost<Delivery>(`/v1/deliveries/${id}/try-now`, { done: 'The next attempt is made now.' });
  const { data } = delivery;
  const isReplayable =
    data?.status === 'failed' && data.replayable_until !== null && Date.parse(data.replayable_until) > now();
  const isWaiting = data?.status === 'waiting_for_retry' && Date.parse(data.next_attempt_at ?? '') > now();
  return (
    <PageBody
      title={data ? `${data.event_type} delivery` : 'Delivery'}
      heading={data?.event_type ?? 'Delivery'}
      badge={data && <StatusBadge status={data.status} />}
      back={{ to: '/deliveries', label: 'Deliveries' }}
      actions={
        <>
          {isReplayable && <ActionButton label="Replay" icon={SyncIcon} change={replay} />}
          {isWaiting && <ActionButton label="Try now" icon={PlayIcon} change={tryNow} />}
        </>
      }
    >
      <Loaded query={delivery} what="delivery">
        {(loaded) => (
          <Grid gap="md">
            <Grid.Col span={{ base: 12, md: 5 }}>
              <Stack>
                <Section title="Attempts">
                  <AttemptTimeline delivery={loaded} />
                </Section>
                <Section title="Details">
                  <Details delivery={loaded} />
                </Section>
              </Stack>
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 7 }}>
              <Stack>
                {loaded.attempts.length > 1 && (
                  <Section title="Compare attempts">
                    <AttemptComparison attempts={loaded.attempts} />
                  </Section>
                )}
                {loaded.erased ? (
                  <Section title="Request">
                    <Empty title="Erased">
                      Its payload and what came back from its attempts have been erased. It cannot be replayed.
                    </Empty>
                  </Section>
                ) : (
                  <Request key={loaded.id} delivery={loaded} />
                )}
              </Stack>
            </Grid.Col>
          </Grid>
        )}
      </Loaded>
    </PageBody>
  );
}

function Details({ delivery }: { delivery: DeliveryWithAttempts }) {
  const { id, subscription_id: subscriptionId, replay_of: original } = delivery;
  const subscription = useSubscription(subscriptionId);
  const isDeleted = isMissing(subscription.error);
  const link = (to: string, text: string) => (
    <PageLink to={to} className="mono">
      {text}
    </PageLink>
  );
  const linkTo = (deliveryId: string) => link(`/deliveries/${deliveryId}`, deliveryId);
  const others = delivery.replays.filter((other) => other !== id);
  return (
    <Facts
      facts={{
        Id: <Copyable value={id} what="id" />,
        Event: link(eventPath(delivery), delivery.event_id),
        Address: isDeleted ? (
          `${subscriptionId} (deleted)`
        ) : (
          <CopyableAddress id={subscriptionId} url={subscription.data?.url} />
        ),
        Environment: delivery.environment,
        Attempts: `${delivery.attempt_count} of ${delivery.max_attempts}`,
        'Replay of': original && linkTo(original),
        [original ? 'Other replays' : 'Replayed as']:
          others.length > 0 && others.map((other) => <div key={other}>{linkTo(other)}</div>),
      }}
    />
  );
}

/** The request: headers of the last attempt, body, and a command that sends the same with a current signature. */
function Request({ delivery }: { delivery: DeliveryWithAttempts }) {
  const attempt = delivery.attempt_count || undefined;
  // Here, so that it stays when a further attempt is loaded.
  const [tab, setTab] = useState<string | null>('body');
  const sent = useRequest(delivery.id, attempt);
  const fresh = useRequest(delivery.id);
  return (
    <Section title="Request">
      <Loaded query={sent} what="request">
        {(request) => (
          <Tabs value={tab} onChange={setTab} keepMounted={false}>
            <Tabs.List mb="sm">
              <Tabs.Tab value="body">Body</Tabs.Tab>
              <Tabs.Tab value="headers">Headers</Tabs.Tab>
              <Tabs.Tab value="curl">curl</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="body">
              <CodeBlock text={prettyJson(request.body)} label="body" maxHeight={560} />
            </Tabs.Panel>
            <Tabs.Panel value="headers">
              <CodeBlock
                text={Object.entries(request.headers)
                  .map(([name, value]) => `${name}: ${value}`)
                  .join('\n')}
                label="headers"
              />
              <Note size="xs" mt="xs">
                {attempt === undefined
                  ? 'As they would be sent now.'
                  : `As attempt ${attempt} sent them, unless the secret has been rotated since.`}
              </Note>
            </Tabs.Panel>
            <Tabs.Panel value="curl">
              <Loaded query={fresh} what="command">
                {(now) => <CodeBlock text={curlOf(now)} label="curl command" />}
              </Loaded>
              <Note size="xs" mt="xs">
                Sends the same request, signed when this page was opened. Receivers accept it for about five minutes.
              </Note>
            </Tabs.Panel>
          </Tabs>
        )}
      </Loaded>
    </Section>
  );
}
