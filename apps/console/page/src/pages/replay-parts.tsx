/** What the pages of bulk replays show: progress, outcome, what they cover, and their tables. */
import { Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import type { Replay, ReplayBatch, StartedReplay } from '@posthorn/operator-api';
import type { ReactNode } from 'react';
import type { Column } from '../parts/data-table.tsx';
import { FigureCard, Note, PageLink, RowLink, Section } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { failureTexts, looks, StatusBadge } from '../parts/status.tsx';
import { Instant } from '../parts/time.tsx';

export const isBatch = (replay: StartedReplay): replay is ReplayBatch => 'replays' in replay;

export const isMaking = ({ status }: StartedReplay) =>
  status === 'running' || status === 'canary' || status === 'halted';

/** What the badge says: a replay has made all its deliveries long before they have ended. */
export const shownStatus = ({ status, outcome }: Pick<StartedReplay, 'status' | 'outcome'>) =>
  status === 'done' && outcome.waiting > 0 ? 'sending' : status;

/** The list of exactly the deliveries that a bulk replay made. There is none for a batch. */
function deliveriesOf(replay: StartedReplay, filter = ''): string | undefined {
  return isBatch(replay) ? undefined : `/deliveries?replay_id=${replay.id}${filter}`;
}

/** How far a bulk replay is, in a bar and a sentence, and its figures. */
export function ReplayProgress({ replay, result }: { replay: StartedReplay; result: string }) {
  const done = replay.replayed + replay.skipped;
  const share = isMaking(replay) ? done / Math.max(done, replay.total, 1) : 1;
  return (
    <>
      <Section>
        <Stack gap="xs">
          <Progress.Root size="xl">
            <Progress.Section
              value={100 * share}
              color={looks[shownStatus(replay)].color}
              animated={replay.status === 'running'}
              aria-label="Progress of the bulk replay"
            />
          </Progress.Root>
          <Text size="sm" aria-live="polite">
            {result}
          </Text>
        </Stack>
      </Section>
      <SimpleGrid cols={3} spacing="sm">
        <FigureCard label="Found" value={countText(replay.total)} />
        <FigureCard label="Replayed" value={countText(replay.replayed)} to={deliveriesOf(replay)} />
        <FigureCard label="Skipped" value={countText(replay.skipped)} />
      </SimpleGrid>
      <Outcome replay={replay} />
    </>
  );
}

/** What became of the deliveries that were made. */
function Outcome({ replay }: { replay: StartedReplay }) {
  const { delivered, failed, waiting, cancelled, unknown } = replay.outcome;
  const figures = [
    { label: 'Delivered', count: delivered, to: deliveriesOf(replay, '&status=succeeded'), color: 'teal' },
    { label: 'Failed again', count: failed, to: deliveriesOf(replay, '&status=failed'), color: 'red' },
    { label: 'Waiting', count: waiting, to: deliveriesOf(replay), color: 'yellow' },
    ...(cancelled > 0
      ? [
          {
            label: 'Cancelled',
            count: cancelled,
            to: deliveriesOf(replay, '&status=failed&error=cancelled'),
            color: 'gray',
          },
        ]
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
        <SimpleGrid cols={{ base: figures.length === 3 ? 3 : 2, sm: figures.length }} spacing="sm">
          {figures.map(({ label, count, to }) => (
            <FigureCard key={label} label={label} value={countText(count)} to={to} />
          ))}
        </SimpleGrid>
        {unknown > 0 && (
          <Note>{amountText(unknown, 'was made', 'were made')} by an earlier version, which did not count.</Note>
        )}
      </Stack>
    </Section>
  );
}

/** What a bulk replay covers and who started it when, as names and values. */
export function scopeFacts(replay: StartedReplay): Record<string, ReactNode> {
  const { from, to, filter, canary, operator, created_at: startedAt, finished_at: endedAt } = replay;
  return {
    'Created from': from ? <Instant at={from} /> : 'The beginning',
    'Created until': <Instant at={to} />,
    'Event type': filter.event_type,
    Error: filter.error && failureTexts[filter.error],
    'Failed from': filter.failed_from && <Instant at={filter.failed_from} />,
    'Failed until': filter.failed_to && <Instant at={filter.failed_to} />,
    Canary: canary && 'The first deliveries decide',
    Operator: operator,
    Started: <Instant at={startedAt} />,
    // Those that it made may still wait.
    [replay.status === 'done' ? 'All replayed' : 'Ended']: endedAt ? <Instant at={endedAt} /> : '–',
  };
}

/** What became of the deliveries that a bulk replay made, in a few words. */
export function outcomeText({ replayed, outcome }: Pick<StartedReplay, 'replayed' | 'outcome'>): string {
  if (replayed === 0) return 'nothing replayed';
  const { delivered, failed, waiting, cancelled } = outcome;
  const parts = [
    `${countText(delivered)} delivered`,
    failed > 0 && `${countText(failed)} failed`,
    cancelled > 0 && `${countText(cancelled)} cancelled`,
    waiting > 0 && `${countText(waiting)} waiting`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Says how many deliveries were not replayed, and which reasons there can be: the API does not count them apart. */
export const whySkipped = (skipped: number): string =>
  `${countText(skipped)} skipped: another replay is under way or has succeeded, it is too late to replay, or the payload was erased.`;

/** The columns of a table of bulk replays. `urls` are those of subscriptions by id. */
export function replayColumns(urls: Map<string, string>, { inBatch = false } = {}): Column<Replay>[] {
  return [
    {
      header: 'Address',
      cell: ({ id, subscription_id: subscriptionId, batch_id: batchId, ...replay }) => (
        <>
          <RowLink to={`/replays/${id}`} truncate title={urls.get(subscriptionId) ?? ''}>
            {urls.get(subscriptionId) ?? subscriptionId}
          </RowLink>
          {batchId && !inBatch && (
            <PageLink to={`/replays/${batchId}`} size="xs" c="dimmed">
              together with others
            </PageLink>
          )}
          <Note size="xs" hiddenFrom="md">
            {outcomeText(replay)}
          </Note>
        </>
      ),
    },
    { header: 'Status', width: 110, cell: (replay) => <StatusBadge status={shownStatus(replay)} /> },
    {
      header: 'Replayed',
      width: 110,
      visibleFrom: 'sm',
      cell: ({ replayed, total }) => `${countText(replayed)} of ${countText(total)}`,
    },
    { header: 'Outcome', width: inBatch ? 280 : 200, visibleFrom: 'md', cell: outcomeText },
  ];
}
