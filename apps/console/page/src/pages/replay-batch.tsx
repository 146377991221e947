/** A batch: the bulk replays of several addresses, with their progress and outcome as one, and each of them. */
import { Stack } from '@mantine/core';
import type { Replay, ReplayBatch } from '@posthorn/operator-api';
import { Copyable } from '../parts/code.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts, PageBody, Section } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { Loaded } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { useReplayBatch, useUrls } from '../queries.ts';
import {
  CancelButton,
  outcomeText,
  ReplayProgress,
  replayColumns,
  scopeFacts,
  shownStatus,
  whySkipped,
} from './replay-parts.tsx';

export function ReplayBatchPage({ id }: { id: string }) {
  const batch = useReplayBatch(id);
  return (
    <PageBody
      title={batch.data ? `Bulk replay of ${amountText(batch.data.addresses, 'address', 'addresses')}` : 'Bulk replay'}
      back={{ to: '/replays', label: 'Bulk replays' }}
      badge={batch.data && <StatusBadge status={shownStatus(batch.data)} />}
      actions={batch.data && <CancelButton replay={batch.data} path={`/v1/replay-batches/${id}`} />}
    >
      <Loaded query={batch} what="bulk replay">
        {(data) => (
          <Stack>
            <ReplayProgress replay={data} result={resultOf(data)} />
            <Section title="Addresses" flush>
              <Addresses replays={data.replays} />
            </Section>
            <Section title="Details">
              <Facts facts={{ Id: <Copyable value={data.id} what="id" />, ...scopeFacts(data) }} />
            </Section>
          </Stack>
        )}
      </Loaded>
    </PageBody>
  );
}

function Addresses({ replays }: { replays: Replay[] }) {
  const urls = useUrls(replays.map(({ subscription_id }) => subscription_id));
  return (
    <DataTable
      aria-label="Addresses"
      columns={replayColumns(urls, { isBatch: true })}
      rows={replays}
      highlightOnHover
    />
  );
}

function resultOf({ status, replayed, skipped, total, outcome, replays }: ReplayBatch): string {
  const halted = replays.filter((replay) => replay.status === 'halted').length;
  const parts = [
    status === 'running' || status === 'canary'
      ? `${countText(replayed + skipped)} of ${countText(total)} processed.`
      : '',
    halted > 0
      ? `${countText(halted)} halted, because an attempt of the canary failed: continue or cancel ${halted === 1 ? 'it' : 'each of them'}.`
      : '',
    status === 'cancelled' ? 'Cancelled.' : '',
    status === 'failed' ? 'Stopped early: the subscriptions were deleted.' : '',
    replayed === 0 && status === 'done' ? 'Done: nothing was replayed.' : '',
    replayed > 0 ? `${outcomeText({ replayed, outcome })}.` : '',
    skipped > 0 ? whySkipped(skipped) : '',
  ];
  return parts.filter((part) => part !== '').join(' ');
}
