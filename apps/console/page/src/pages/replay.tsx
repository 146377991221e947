/**
 * One bulk replay, or a batch of them: its progress, what became of its deliveries, and the buttons that cancel or
 * continue it.
 */
import { Stack } from '@mantine/core';
import type { Replay, ReplayBatch, StartedReplay } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { ActionButton } from '../parts/action-button.tsx';
import { CopyableAddress } from '../parts/address.tsx';
import { Copyable } from '../parts/code.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { amountText, countText } from '../parts/numbers.ts';
import { Loaded } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { usePost, useReplay, useSubscription, useUrls } from '../queries.ts';
import {
  isBatch,
  isMaking,
  outcomeText,
  ReplayProgress,
  replayColumns,
  scopeFacts,
  shownStatus,
  whySkipped,
} from './replay-parts.tsx';

export function ReplayPage() {
  const { id = '' } = useParams();
  const path = `/v1/${id.startsWith('rpb_') ? 'replay-batches' : 'replays'}/${id}`;
  const replay = useReplay(path);
  const { data } = replay;
  return (
    <PageBody
      title={
        data && isBatch(data) ? `Bulk replay of ${amountText(data.addresses, 'address', 'addresses')}` : 'Bulk replay'
      }
      back={{ to: '/replays', label: 'Bulk replays' }}
      badge={data && <StatusBadge status={shownStatus(data)} />}
      // Of another replay they are other buttons: a call that is under way is not about it.
      actions={data && <Decisions key={path} replay={data} path={path} />}
    >
      <Loaded query={replay} what="bulk replay">
        {(loaded) => (
          <Stack>
            <ReplayProgress replay={loaded} result={isBatch(loaded) ? batchText(loaded) : replayText(loaded)} />
            {isBatch(loaded) && (
              <Section title="Addresses" flush>
                <Addresses replays={loaded.replays} />
              </Section>
            )}
            <Section title="Details">
              <Facts
                facts={{
                  Id: <Copyable value={loaded.id} what="id" />,
                  ...(!isBatch(loaded) && {
                    Address: <Address id={loaded.subscription_id} />,
                    'Started together with': loaded.batch_id && (
                      <PageLink to={`/replays/${loaded.batch_id}`}>The other addresses</PageLink>
                    ),
                  }),
                  ...scopeFacts(loaded),
                }}
              />
            </Section>
          </Stack>
        )}
      </Loaded>
    </PageBody>
  );
}

function Address({ id }: { id: string }) {
  return <CopyableAddress id={id} url={useSubscription(id).data?.url} />;
}

/** The replays of a batch. */
function Addresses({ replays }: { replays: Replay[] }) {
  const urls = useUrls(replays.map(({ subscription_id }) => subscription_id));
  const columns = replayColumns(urls, { inBatch: true });
  return <DataTable aria-label="Addresses" columns={columns} rows={replays} highlightOnHover />;
}

/** Cancels a bulk replay or a batch, while anything of it can be, and continues one that has halted. */
function Decisions({ replay, path }: { replay: StartedReplay; path: string }) {
  const proceed = usePost<Replay>(`${path}/continue`, { done: 'The replay goes on.' });
  const cancel = usePost<StartedReplay>(`${path}/cancel`, { done: 'Cancelled: nothing else begins.' });
  const isOver = !isMaking(replay) && (replay.status !== 'done' || replay.outcome.waiting === 0);
  return (
    <>
      {replay.status === 'halted' && !isBatch(replay) && <ActionButton label="Continue" change={proceed} />}
      {!isOver && <ActionButton label="Cancel" variant="default" change={cancel} />}
    </>
  );
}

function replayText({ status, replayed, skipped, total, outcome }: Replay): string {
  const skippedText = skipped === 0 ? '' : ` ${whySkipped(skipped)}`;
  switch (status) {
    case 'running':
      return `${countText(replayed + skipped)} of ${countText(total)} processed.`;
    case 'canary':
      return `Canary: ${countText(replayed)} sent first. The others follow when ${replayed === 1 ? 'it has' : 'all of them have'} arrived.`;
    case 'halted':
      return 'Halted: an attempt of the canary failed. Look at its deliveries, then continue or cancel.';
    case 'cancelled':
      return `Cancelled after ${countText(replayed)} of ${countText(total)}. What had no attempt ends as failed; it can be replayed later.`;
    case 'failed':
      return 'Stopped early: the subscription was deleted.';
    case 'done': {
      const { delivered, failed, waiting } = outcome;
      if (waiting > 0)
        return `Sending: ${countText(waiting)} of ${countText(replayed)} ${waiting === 1 ? 'waits' : 'wait'}, for a free slot or for a retry.${skippedText}`;
      if (replayed === 0) return `Done: nothing was replayed.${skippedText}`;
      return failed === 0
        ? `Done: ${delivered === 1 ? '1' : `all ${countText(delivered)}`} delivered.${skippedText}`
        : `Done: ${countText(delivered)} delivered, ${countText(failed)} failed again.${skippedText}`;
    }
  }
}

function batchText({ status, replayed, skipped, total, outcome, replays }: ReplayBatch): string {
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
