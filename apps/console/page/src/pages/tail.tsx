/** The live tail: attempts as they happen, filtered, the newest first. */
import { Button, Group, SegmentedControl, Text } from '@mantine/core';
import { PauseIcon, PlayIcon } from '@primer/octicons-react';
import { useLiveAttempts } from '../live-attempts.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { AddressFilter, ClearFilters, SelectFilter, useFilters } from '../parts/filters.tsx';
import { Note, PageBody, RowLink, Section } from '../parts/layout.tsx';
import { amountText, countText, durationText } from '../parts/numbers.ts';
import { Empty, Problem } from '../parts/states.tsx';
import { failureTexts, StatusBadge } from '../parts/status.tsx';
import { eventEnvironments, eventTypes } from '../parts/subscription-fields.tsx';
import { Instant } from '../parts/time.tsx';
import { useUrls } from '../queries.ts';
import { type LiveAttempt, MAX_ROWS } from '../tail-rows.ts';

const names = ['failed', 'subscription_id', 'event_type', 'environment'] as const;

export function TailPage() {
  const filters = useFilters(names);
  const { filter, set } = filters;
  return (
    <PageBody title="Live">
      <Group gap="sm">
        <SegmentedControl
          aria-label="Outcome"
          data={[
            { value: 'all', label: 'All attempts' },
            { value: 'failed', label: 'Failed' },
          ]}
          value={filter.failed === 'true' ? 'failed' : 'all'}
          onChange={(value) => set({ failed: value === 'failed' ? 'true' : null })}
        />
        <AddressFilter filters={filters} />
        <SelectFilter filters={filters} name="event_type" label="Event type" data={eventTypes} widthPx={230} />
        <SelectFilter filters={filters} name="environment" label="Environment" data={eventEnvironments} widthPx={170} />
        <ClearFilters filters={filters} />
      </Group>
      {/* Other filters are another list. */}
      <Attempts key={JSON.stringify(filter)} filter={filter} />
    </PageBody>
  );
}

function Attempts({ filter }: { filter: ReturnType<typeof useFilters<(typeof names)[number]>>['filter'] }) {
  const live = useLiveAttempts(filter);
  const { rows, isPaused, waitingCount, dropped, error } = live;
  const urls = useUrls(rows.map(({ subscription_id }) => subscription_id));
  return (
    <>
      <Group justify="space-between" mih={36}>
        <Note aria-live="polite">{stateText(isPaused, rows.length, dropped)}</Note>
        <Button
          variant="default"
          size="xs"
          leftSection={isPaused ? <PlayIcon size={14} /> : <PauseIcon size={14} />}
          onClick={isPaused ? live.resume : live.pause}
        >
          {isPaused ? `Continue${waitingCount > 0 ? `, ${countText(waitingCount)} new` : ''}` : 'Pause'}
        </Button>
      </Group>
      {error && <Problem title="There is no live stream now" error={error} retry={() => location.reload()} />}
      <Section flush>
        {rows.length === 0 ? (
          <Empty title="Waiting for attempts">An attempt appears here when a worker has made it.</Empty>
        ) : (
          <DataTable aria-label="Attempts" columns={columnsWith(urls)} rows={rows} highlightOnHover />
        )}
      </Section>
    </>
  );
}

function stateText(isPaused: boolean, shown: number, dropped: number | null): string {
  const newest = shown === MAX_ROWS ? `The newest ${MAX_ROWS} attempts. ` : '';
  const state = isPaused ? 'Paused. ' : newest;
  if (dropped === null) return `${state}Some may be missing.`;
  return dropped === 0 ? state : `${state}${amountText(dropped, 'was left out', 'were left out')}: too many at once.`;
}

function columnsWith(urls: Map<string, string>): Column<LiveAttempt>[] {
  return [
    {
      header: 'Event type',
      width: { base: 'auto', md: 240 },
      cell: ({ delivery_id, event_type, subscription_id, at }) => (
        <>
          <RowLink to={`/deliveries/${delivery_id}`} fw={500} style={{ overflowWrap: 'anywhere' }}>
            {event_type}
          </RowLink>
          <Text size="xs" truncate hiddenFrom="md">
            {urls.get(subscription_id) ?? subscription_id}
          </Text>
          <Note size="xs" hiddenFrom="xs">
            <Instant at={at} />
          </Note>
        </>
      ),
    },
    {
      header: 'Result',
      width: { base: 140, sm: 190 },
      cell: ({ outcome, status_code, error, delivery_status }) => (
        <>
          <StatusBadge status={outcome} />
          <Note size="xs">
            {status_code ?? (error && failureTexts[error])}
            {delivery_status === 'failed' && ', the last attempt'}
          </Note>
        </>
      ),
    },
    {
      header: 'Attempt',
      width: 90,
      visibleFrom: 'sm',
      cell: ({ attempt }) => attempt,
    },
    {
      header: 'Took',
      width: 90,
      visibleFrom: 'sm',
      cell: ({ duration_ms }) => <span className="numbers">{durationText(duration_ms)}</span>,
    },
    {
      header: 'Address',
      visibleFrom: 'md',
      cell: ({ subscription_id: id }) => (
        <Text size="sm" truncate title={urls.get(id)}>
          {urls.get(id) ?? id}
        </Text>
      ),
    },
    { header: 'Began', width: 165, visibleFrom: 'xs', cell: ({ at }) => <Instant at={at} /> },
  ];
}
