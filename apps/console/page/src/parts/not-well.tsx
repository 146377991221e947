/** What keeps all from being well, an alert each. The API decides what that is; the page says what follows from it. */
import { Alert, Box } from '@mantine/core';
import type { NotWell, Overview } from '@posthorn/operator-api';
import { AlertIcon } from '@primer/octicons-react';
import type { ReactNode } from 'react';
import { PageLink } from './layout.tsx';
import { durationText } from './numbers.ts';
import { Instant } from './time.tsx';

/** What needs attention lists the first two; each outage has an alert that shows its time. */
const SHOWN_ELSEWHERE: readonly NotWell['kind'][] = ['addresses', 'incident', 'worker_outage'];

export function NotWellAlerts({ overview }: { overview: Overview }) {
  return (
    <>
      {overview.not_well
        .filter(({ kind }) => !SHOWN_ELSEWHERE.includes(kind))
        .map((reason) => (
          <ReasonAlert key={reason.message} reason={reason} overview={overview} />
        ))}
      <Outages workers={overview.workers} />
    </>
  );
}

function Warning({ color = 'orange', title, children }: { color?: string; title: ReactNode; children?: ReactNode }) {
  return (
    <Alert color={color} icon={<AlertIcon />} title={title}>
      {children}
    </Alert>
  );
}

function ReasonAlert({ reason: { kind, message }, overview }: { reason: NotWell; overview: Overview }) {
  const title = message.charAt(0).toUpperCase() + message.slice(1);
  switch (kind) {
    case 'writes_refused':
      return (
        <Warning color="red" title="Redis refuses changes">
          It says: {overview.writes_refused}. Ingest accepts no events that it would store there, and nothing that is
          there can be changed. See PosthornRedisRefusesWrites in docs/runbooks.md.
        </Warning>
      );
    case 'no_worker':
      return (
        <Warning title={title}>Events are accepted and kept, but nothing is delivered until a worker starts.</Warning>
      );
    case 'queue_paused':
      return (
        <Warning title={title}>
          Events are accepted and kept, but no attempts begin until it is resumed, with the tool that paused it.
        </Warning>
      );
    case 'worker_clock':
      return (
        <Warning title={title}>
          The times of its attempts are wrong, and receivers may refuse its signatures: most accept 300 s. See
          PosthornClockSkew in docs/runbooks.md.
        </Warning>
      );
    case 'attempts':
      return (
        <Warning title={title}>
          What failed is retried. See PosthornAttemptsFailing in docs/runbooks.md.
          <Box mt={4}>
            <PageLink to="/tail?failed=true" c="inherit" underline="always">
              Show what fails now, and why
            </PageLink>
          </Box>
        </Warning>
      );
    case 'pending':
      return <LongPending overview={overview} />;
    case 'memory':
      return (
        <Warning title={title}>
          When it is full, ingest refuses new events, and nothing can be changed here. Raise its maxmemory, or look who
          stores so much: see PosthornRedisMemoryHigh in docs/runbooks.md.
        </Warning>
      );
    // Includes kinds that only a later release of the console knows.
    default:
      return <Warning title={title} />;
  }
}

function LongPending({ overview: { at, queue } }: { overview: Overview }) {
  const oldestMs = queue.oldest_pending_age_ms;
  // Leaves out the newest deliveries, which have waited only moments and would come first.
  const until = new Date(Date.parse(at) - oldestMs / 2).toISOString();
  return (
    <Warning title={`A delivery has waited ${durationText(oldestMs)} for its first attempt`}>
      The workers do not keep up, or one address has too much to do. What was held counts from its release.
      <Box mt={4}>
        <PageLink to={`/deliveries?status=pending&to=${until}`} c="inherit" underline="always">
          Show what has waited for more than {durationText(oldestMs / 2)}, and for which addresses
        </PageLink>
      </Box>
    </Warning>
  );
}

function Outages({ workers }: Pick<Overview, 'workers'>) {
  return workers.map(({ id, host, pid, outage_since }) => {
    if (outage_since === null) return null;
    const title = (
      <>
        Worker {host}:{pid} has reached nothing since <Instant at={outage_since} />
      </>
    );
    return (
      <Warning key={id} title={title}>
        Its network or name resolution fails. It makes no attempts, and none is counted, until it can reach a receiver
        again.
      </Warning>
    );
  });
}
