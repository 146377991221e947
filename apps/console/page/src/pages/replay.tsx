/** One bulk replay: its progress, what became of its deliveries, and the buttons that cancel or continue it. */

import { Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Replay } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { ActionButton } from '../parts/action-button.tsx';
import { Copyable } from '../parts/code.tsx';
import { Facts, FigureCard, Note, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Loaded } from '../parts/states.tsx';
import { failureTexts, looks, StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';
import { usePost, useReplay, useSubscription } from '../queries.ts';

export function ReplayPage() {
  const { id = '' } = useParams();
  const replay = useReplay(id);
  return (
    <PageBody
      title="Bulk replay"
      back={{ to: '/replays', label: 'Bulk replays' }}
      badge={replay.data && <StatusBadge status={replay.data.status} />}
      actions={replay.data && <Decisions replay={replay.data} />}
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
  const isMaking = replay.status === 'running' || replay.status === 'canary' || replay.status === 'halted';
  const share = isMaking ? done / Math.max(done, replay.total, 1) : 1;
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
        <FigureCard label="Replayed" value={countText(replay.replayed)} to={deliveriesOf(replay)} />
        <FigureCard label="Skipped" value={countText(replay.skipped)} />
      </SimpleGrid>
      <Outcome replay={replay} />
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
            ...filterFacts(replay),
            Canary: replay.canary && 'The first deliveries decide',
            Operator: replay.operator,
            Started: <Instant at={replay.created_at} />,
            Ended: replay.finished_at ? <Instant at={replay.finished_at} /> : '–',
          }}
        />
      </Section>
    </Stack>
  );
}

/** The list of exactly the deliveries that a bulk replay made. */
const deliveriesOf = ({ id }: Replay, status?: 'succeeded' | 'failed') =>
  `/deliveries?replay_id=${id}${status ? `&status=${status}` : ''}`;

/** What became of the deliveries that were made. */
function Outcome({ replay }: { replay: Replay }) {
  const { delivered, failed, waiting, cancelled, unknown } = replay.outcome;
  const figures = [
    { label: 'Delivered', count: delivered, to: deliveriesOf(replay, 'succeeded'), color: 'teal' },
    { label: 'Failed again', count: failed, to: deliveriesOf(replay, 'failed'), color: 'red' },
    { label: 'Waiting', count: waiting, to: deliveriesOf(replay), color: 'yellow' },
    ...(cancelled > 0
      ? [{ label: 'Cancelled', count: cancelled, to: deliveriesOf(replay, 'failed'), color: 'gray' }]
      : []),
  ];
  const total = Math.max(1, delivered + failed + waiting + cancelled);
  return (
    <Section title="Outcome">
      <Stack>
        <Progress.Root size="md">
          {figures.map(({ label, count, color }) => (
            <Progress.Section
              key={label}
              value={(100 * count) / total}
              color={color}
              aria-label={`${label}: ${countText(count)} of ${countText(replay.replayed)}`}
            />
          ))}
        </Progress.Root>
        <SimpleGrid cols={{ base: 2, sm: figures.length }} spacing="sm">
          {figures.map(({ label, count, to }) => (
            <FigureCard key={label} label={label} value={countText(count)} to={to} />
          ))}
        </SimpleGrid>
        {unknown > 0 && <Note>{countText(unknown)} were made by an earlier version, which did not count.</Note>}
      </Stack>
    </Section>
  );
}

function Decisions({ replay: { id, status, outcome } }: { replay: Replay }) {
  const cancel = usePost<Replay>(`/v1/replays/${id}/cancel`, { done: 'Cancelled: nothing else begins.' });
  const proceed = usePost<Replay>(`/v1/replays/${id}/continue`, { done: 'The replay goes on.' });
  const isMaking = status === 'running' || status === 'canary' || status === 'halted';
  return (
    <>
      {status === 'halted' && <ActionButton label="Continue" change={proceed} />}
      {(isMaking || (status === 'done' && outcome.waiting > 0)) && (
        <ActionButton label="Cancel" variant="default" change={cancel} />
      )}
    </>
  );
}

function filterFacts({ filter }: Replay) {
  return {
    'Event type': filter.event_type,
    Error: filter.error && failureTexts[filter.error],
    'Failed from': filter.failed_from && <Instant at={filter.failed_from} />,
    'Failed until': filter.failed_to && <Instant at={filter.failed_to} />,
  };
}

function resultOf({ status, replayed, skipped, total, outcome }: Replay): string {
  const skippedText =
    skipped === 0
      ? ''
      : ` ${countText(skipped)} skipped: they have a replay that is under way or has succeeded, or are too old to be replayed.`;
  switch (status) {
    case 'running':
      return `${countText(replayed + skipped)} of ${countText(total)} processed.`;
    case 'canary':
      return `Canary: ${countText(replayed)} sent first. The others follow when all of them have arrived.`;
    case 'halted':
      return 'Halted: an attempt of the canary failed. Look at its deliveries, then continue or cancel.';
    case 'cancelled':
      return `Cancelled after ${countText(replayed)} of ${countText(total)}. What had no attempt ends as failed; it can be replayed later.`;
    case 'failed':
      return 'Stopped early: the subscription was deleted.';
    case 'done': {
      const { delivered, failed, waiting } = outcome;
      if (waiting > 0)
        return `Sending: ${countText(waiting)} of ${countText(replayed)} wait. They are sent as fast as the address accepts them.${skippedText}`;
      if (replayed === 0) return `Done: nothing was replayed.${skippedText}`;
      return failed === 0
        ? `Done: all ${countText(delivered)} delivered.${skippedText}`
        : `Done: ${countText(delivered)} delivered, ${countText(failed)} failed again.${skippedText}`;
    }
  }
}
