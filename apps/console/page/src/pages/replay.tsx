/**
 * One bulk replay, or a batch: its progress, what became of its deliveries, and the buttons that cancel or continue it.
 */
import { Stack } from '@mantine/core';
import type { Replay } from '@posthorn/operator-api';
import { useParams } from 'react-router';
import { ActionButton } from '../parts/action-button.tsx';
import { Copyable } from '../parts/code.tsx';
import { CopyableAddress } from '../parts/copyable-address.tsx';
import { Facts, PageBody, PageLink, Section } from '../parts/layout.tsx';
import { countText } from '../parts/numbers.ts';
import { Loaded } from '../parts/states.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { usePost, useReplay, useSubscription } from '../queries.ts';
import { ReplayBatchPage } from './replay-batch.tsx';
import { CancelButton, ReplayProgress, scopeFacts, shownStatus, whySkipped } from './replay-parts.tsx';

export function ReplayPage() {
  const { id = '' } = useParams();
  return id.startsWith('rpb_') ? <ReplayBatchPage id={id} /> : <OneReplayPage id={id} />;
}

function OneReplayPage({ id }: { id: string }) {
  const replay = useReplay(id);
  return (
    <PageBody
      title="Bulk replay"
      back={{ to: '/replays', label: 'Bulk replays' }}
      badge={replay.data && <StatusBadge status={shownStatus(replay.data)} />}
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
  return (
    <Stack>
      <ReplayProgress replay={replay} result={resultOf(replay)} />
      <Section title="Details">
        <Facts
          facts={{
            Id: <Copyable value={replay.id} what="id" />,
            Address: <CopyableAddress id={replay.subscription_id} url={subscription.data?.url} />,
            'Started together with': replay.batch_id && (
              <PageLink to={`/replays/${replay.batch_id}`}>The other addresses</PageLink>
            ),
            ...scopeFacts(replay),
          }}
        />
      </Section>
    </Stack>
  );
}

function Decisions({ replay }: { replay: Replay }) {
  const path = `/v1/replays/${replay.id}`;
  const proceed = usePost<Replay>(`${path}/continue`, { done: 'The replay goes on.' });
  return (
    <>
      {replay.status === 'halted' && <ActionButton label="Continue" change={proceed} />}
      <CancelButton replay={replay} path={path} />
    </>
  );
}

function resultOf({ status, replayed, skipped, total, outcome }: Replay): string {
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
