/** One bulk replay: its progress and result. */

import { Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Replay } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { Copyable } from '../parts/code.tsx';
import { Facts, FigureCard, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Loaded } from '../parts/states.tsx';
import { looks, StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';
import { useReplay, useSubscription } from '../queries.ts';

export function ReplayPage() {
  const { id = '' } = useParams();
  const replay = useReplay(id);
  return (
    <PageBody
      title="Bulk replay"
      back={{ to: '/replays', label: 'Bulk replays' }}
      actions={replay.data && <StatusBadge status={replay.data.status} />}
    >
      <Loaded query={replay} what="bulk replay">
        {(data) => <Content replay={data} />}
      </Loaded>
    </PageBody>
  );
}

function Content({ replay }: { replay: Replay }) {
  const subscription = useSubscription(replay.subscription_id);
  const done = replay.replayed + replay.skipped;
  const share = replay.status === 'running' ? (replay.total === 0 ? 0 : done / replay.total) : 1;
  return (
    <Stack>
      <Section>
        <Stack gap="xs">
          <Progress.Root size="xl">
            <Progress.Section
              value={100 * share}
              color={looks[replay.status].color}
              animated={replay.status === 'running'}
              aria-label="Progress of the bulk replay"
            />
          </Progress.Root>
          <Text size="sm" aria-live="polite">
            {resultOf(replay)}
          </Text>
        </Stack>
      </Section>
      <SimpleGrid cols={3} spacing="sm">
        <FigureCard label="Found" value={countText(replay.total)} />
        <FigureCard
          label="Replayed"
          value={countText(replay.replayed)}
          to={`/deliveries?subscription_id=${replay.subscription_id}&from=${replay.created_at}`}
        />
        <FigureCard label="Skipped" value={countText(replay.skipped)} />
      </SimpleGrid>
      <Section title="Details">
        <Facts
          facts={{
            Id: <Copyable value={replay.id} what="id" />,
            Address: (
              <PageLink to={`/subscriptions/${replay.subscription_id}`}>
                {subscription.data?.url ?? replay.subscription_id}
              </PageLink>
            ),
            'Created from': replay.from ? <Instant at={replay.from} /> : 'The beginning',
            'Created until': <Instant at={replay.to} />,
            Operator: replay.operator,
            Started: <Instant at={replay.created_at} />,
            Ended: replay.finished_at ? <Instant at={replay.finished_at} /> : '–',
          }}
        />
      </Section>
    </Stack>
  );
}

function resultOf({ status, replayed, skipped, total }: Replay): string {
  switch (status) {
    case 'running':
      return `${countText(replayed + skipped)} of ${countText(total)} processed.`;
    case 'failed':
      return 'Stopped early: the subscription was deleted.';
    case 'done':
      return skipped === 0
        ? `Done: ${countText(replayed)} replayed. They are sent as fast as the address accepts them.`
        : `Done: ${countText(replayed)} replayed, ${countText(skipped)} skipped: they have a replay that is under way or has succeeded, or are too old to be replayed.`;
  }
}
