/** What needs an operator: incidents, and each failing or paused address with its error and one action. */
import { Alert, Box, Group, Paper, Stack, Text } from '@mantine/core';
import type { Delivery, Overview } from '@posthorn/operator-api';
import { AlertIcon, CheckCircleIcon, PaperAirplaneIcon, PlayIcon } from '@primer/octicons-react';
import { useState } from 'react';
import { MAX_REPLAYED_ADDRESSES } from '../api.ts';
import { usePost } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { shortAddress } from './address.tsx';
import { ErrorLine } from './error-line.tsx';
import { Note, PageLink, Section } from './layout.tsx';
import { NotWellAlerts } from './not-well.tsx';
import { countText } from './numbers.ts';
import { AddressBadges, statusTexts } from './status.tsx';
import { Instant } from './time.tsx';

/** Problems that are shown at first: what follows on the page must be seen too. */
const SHOWN_FIRST = 10;

type Problem = Overview['problems']['items'][number];
type Incident = Overview['incidents'][number];

export function Triage({ overview }: { overview: Overview }) {
  const { all_well: isAllWell, problems, incidents } = overview;
  if (isAllWell) {
    return (
      <Paper withBorder px="md" py="xs">
        <Group gap="xs">
          <CheckCircleIcon size={16} fill="var(--mantine-color-teal-text)" />
          <Text size="sm">All is well: no address fails or is paused.</Text>
        </Group>
      </Paper>
    );
  }
  return (
    <>
      <NotWellAlerts overview={overview} />
      {incidents.map((incident) => (
        <IncidentAlert key={incident.id} incident={incident} hasPaused={hasPaused(incident, overview)} />
      ))}
      {problems.total > 0 && <Problems overview={overview} />}
    </>
  );
}

/** Different errors at different hosts have no one cause that could be named. */
function likelyCause({ host, error_label }: Incident): string {
  if (host !== null) return `All are on ${host}: probably that host.`;
  if (error_label === null) return 'They are on different hosts, and their errors differ: look at each.';
  return /^\d/.test(error_label)
    ? 'They are on different hosts, and most of these answer: look for what they share, and at what we changed.'
    : 'They are on different hosts: probably our side.';
}

/** Whether failures have paused some of its addresses, as far as they are known. */
function hasPaused({ id }: Incident, { problems }: Overview): boolean {
  return problems.items.some(
    ({ incident, status_reason }) => incident === id && status_reason === 'consecutive_failures',
  );
}

function IncidentAlert({ incident, hasPaused }: { incident: Incident; hasPaused: boolean }) {
  const { addresses, subscription_ids: ids, started_at, error_label } = incident;
  const replayed = ids.slice(0, MAX_REPLAYED_ADDRESSES);
  const title = (
    <>
      {countText(addresses)} addresses fail at once, since <Instant at={started_at} />
    </>
  );
  return (
    <Alert color="red" icon={<AlertIcon />} title={title}>
      {likelyCause(incident)}
      {error_label !== null && ` Most of them: ${error_label}.`}
      <Box mt={4}>
        {hasPaused ? (
          // What failed there can be replayed only once the address is active.
          <PageLink to="/subscriptions?status=paused&sort=worst" c="inherit" underline="always">
            Once they respond again, resume what failures have paused
          </PageLink>
        ) : (
          <PageLink
            to={`/replays?${replayed.map((id) => `subscription_id=${id}`).join('&')}`}
            c="inherit"
            underline="always"
          >
            Replay what failed at {replayed.length < addresses ? `the first ${replayed.length}` : 'them'}
          </PageLink>
        )}
      </Box>
    </Alert>
  );
}

function Problems({ overview }: { overview: Overview }) {
  const { total, items } = overview.problems;
  const { paused } = overview.subscriptions;
  const [showsAll, showAll] = useState(false);
  // The ids in their order when the pointer came: a click must not hit another row because the worst has changed.
  const [kept, keep] = useState<string[]>([]);
  const placeOf = ({ subscription_id }: Problem) => kept.indexOf(subscription_id) + 1 || kept.length + 1;
  const ordered = [...items].sort((a, b) => placeOf(a) - placeOf(b));
  const shown = showsAll ? ordered : ordered.slice(0, SHOWN_FIRST);
  const aside = (
    <Group gap="sm">
      {total > items.length && <Note>{`The worst ${items.length} of ${countText(total)}`}</Note>}
      {items.some(({ failing_since }) => failing_since !== null) && (
        <PageLink to="/subscriptions?health=failing&sort=worst">All failing</PageLink>
      )}
      {paused > 0 && <PageLink to="/subscriptions?status=paused&sort=worst">All paused</PageLink>}
    </Group>
  );
  return (
    <Section title="Needs attention" aside={aside} flush>
      <Stack
        component="ul"
        gap={0}
        m={0}
        p={0}
        style={{ listStyle: 'none' }}
        onPointerEnter={() => keep(items.map(({ subscription_id }) => subscription_id))}
        onPointerLeave={() => keep([])}
      >
        {shown.map((problem) => (
          <ProblemRow key={problem.subscription_id} problem={problem} />
        ))}
      </Stack>
      {shown.length < items.length && (
        <ActionButton
          label={`Show ${items.length - shown.length} more`}
          variant="subtle"
          fullWidth
          radius={0}
          change={{ mutate: () => showAll(true) }}
        />
      )}
    </Section>
  );
}

function ProblemRow({ problem }: { problem: Problem }) {
  const { subscription_id: id, url, description, status, status_reason: reason, verdict, error, held } = problem;
  const isFailing = problem.failing_since !== null;
  return (
    <Box component="li" px="md" py="sm" style={{ borderTop: '1px solid var(--mantine-color-default-border)' }}>
      <Group justify="space-between" gap="sm" align="flex-start">
        <Box miw={0} style={{ flex: '1 1 260px' }}>
          <Group gap="xs" mb={2}>
            <Text component="div" fw={600} maw="100%" miw={0}>
              <PageLink to={`/subscriptions/${id}`} truncate title={url} fw={600}>
                {url}
              </PageLink>
            </Text>
            <AddressBadges status={status} isFailing={isFailing} />
          </Group>
          {description && (
            <Note size="xs" style={{ overflowWrap: 'anywhere' }}>
              {description}
            </Note>
          )}
          <Text size="sm">{verdict ?? (reason && statusTexts[reason])}</Text>
          {isFailing && <ErrorLine error={error} />}
        </Box>
        <Group gap="md">
          {held > 0 && <PageLink to={`/deliveries?subscription_id=${id}&status=held`}>{countText(held)} held</PageLink>}
          {status === 'paused' && <ResumeButton id={id} url={url} />}
          {status === 'active' && <TestButton id={id} url={url} />}
        </Group>
      </Group>
    </Box>
  );
}

function ResumeButton({ id, url }: { id: string; url: string }) {
  const resume = usePost(`/v1/subscriptions/${id}/resume`, {
    done: `Resumed ${shortAddress(url)}. If deliveries are held, one goes first.`,
  });
  return <ActionButton label="Resume" icon={PlayIcon} about={url} change={resume} variant="default" />;
}

/** Sends a test delivery and opens it, to see whether the receiver works again. */
function TestButton({ id, url }: { id: string; url: string }) {
  const test = usePost<Delivery>(`/v1/subscriptions/${id}/test`, {
    opens: (delivery) => `/deliveries/${delivery.id}`,
  });
  return (
    <ActionButton label="Send test" icon={PaperAirplaneIcon} about={`to ${url}`} change={test} variant="default" />
  );
}
