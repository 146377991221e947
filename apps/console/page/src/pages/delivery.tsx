/** One delivery: its attempts, and the request that was sent. */

import { Anchor, Button, Grid, Group, Stack, Tabs, Text, Title } from '@mantine/core';
import type { Delivery, DeliveryWithAttempts } from '@posthorn/operator-api';
import { IconRefresh } from '@tabler/icons-react';
import { Link, useNavigate, useParams } from 'react-router';
import { call } from '../api.ts';
import { AttemptTimeline } from '../parts/attempt-timeline.tsx';
import { CodeBlock, Copyable, curlOf, prettyJson } from '../parts/code.tsx';
import { eventPath } from '../parts/delivery-table.tsx';
import { Facts, PageBody, Section } from '../parts/layout.tsx';
import { Loaded } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { useChange, useDelivery, useRequest, useSubscription } from '../queries.ts';

export function DeliveryPage() {
  const { id = '' } = useParams();
  const delivery = useDelivery(id);
  const navigate = useNavigate();
  const replay = useChange(() => call<Delivery>('POST', `/v1/deliveries/${id}/replay`), {
    done: 'Replayed: this is the new delivery.',
    onDone: (made) => navigate(`/deliveries/${made.id}`),
  });
  const back = { to: '/deliveries', label: 'Deliveries' };
  const { data } = delivery;
  const isReplayable =
    data?.status === 'failed' && data.replayable_until !== null && Date.parse(data.replayable_until) > Date.now();
  const heading = (
    <Group gap="sm">
      <Title order={1} size="h3" style={{ overflowWrap: 'anywhere' }}>
        {data?.event_type ?? 'Delivery'}
      </Title>
      {data && <StatusBadge status={data.status} />}
    </Group>
  );
  const actions = isReplayable && (
    <Button leftSection={<IconRefresh size={16} />} loading={replay.isPending} onClick={() => replay.mutate(undefined)}>
      Replay
    </Button>
  );
  return (
    <PageBody title={data ? `${data.event_type} delivery` : 'Delivery'} heading={heading} back={back} actions={actions}>
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
              <Request delivery={loaded} />
            </Grid.Col>
          </Grid>
        )}
      </Loaded>
    </PageBody>
  );
}

function Details({ delivery }: { delivery: DeliveryWithAttempts }) {
  const subscription = useSubscription(delivery.subscription_id);
  const link = (to: string, text: string) => (
    <Anchor component={Link} to={to} className="mono" inherit>
      {text}
    </Anchor>
  );
  const others = delivery.replays.filter((id) => id !== delivery.id);
  return (
    <Facts
      facts={{
        Id: <Copyable value={delivery.id} what="id" />,
        Event: link(eventPath(delivery), delivery.event_id),
        Address: link(`/subscriptions/${delivery.subscription_id}`, subscription.data?.url ?? delivery.subscription_id),
        Environment: delivery.environment,
        Attempts: `${delivery.attempt_count} of ${delivery.max_attempts}`,
        ...(delivery.replay_of ? { 'Replay of': link(`/deliveries/${delivery.replay_of}`, delivery.replay_of) } : {}),
        ...(others.length > 0
          ? {
              [delivery.replay_of ? 'Other replays' : 'Replayed as']: (
                <>
                  {others.map((id) => (
                    <div key={id}>{link(`/deliveries/${id}`, id)}</div>
                  ))}
                </>
              ),
            }
          : {}),
      }}
    />
  );
}

/** The request: headers of the last attempt, body, and a command that sends the same with a current signature. */
function Request({ delivery }: { delivery: DeliveryWithAttempts }) {
  const sent = useRequest(delivery.id, delivery.attempt_count === 0 ? undefined : delivery.attempt_count);
  const fresh = useRequest(delivery.id);
  return (
    <Section title="Request">
      <Loaded query={sent} what="request">
        {(request) => (
          <Tabs defaultValue="body" keepMounted={false}>
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
              <Text size="xs" c="dimmed" mt="xs">
                {delivery.attempt_count === 0
                  ? 'As they would be sent now.'
                  : `As attempt ${delivery.attempt_count} sent them, if the secret has not been rotated since.`}
              </Text>
            </Tabs.Panel>
            <Tabs.Panel value="curl">
              <Loaded query={fresh} what="command">
                {(now) => <CodeBlock text={curlOf(now)} label="curl command" />}
              </Loaded>
              <Text size="xs" c="dimmed" mt="xs">
                Sends the same, signed as of when this page was opened: a receiver takes it for about five minutes.
              </Text>
            </Tabs.Panel>
          </Tabs>
        )}
      </Loaded>
    </Section>
  );
}
