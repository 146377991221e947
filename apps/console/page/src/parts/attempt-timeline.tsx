/** The attempts of a delivery as a timeline, with what comes next. */
import { Anchor, Box, Group, Text, Timeline } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { DeliveryWithAttempts } from '@posthorn/operator-api';
import { CheckIcon, ClockIcon, PauseIcon, PlusIcon, XIcon } from '@primer/octicons-react';
import { type Attempt, isKept } from './attempt-facts.ts';
import { CameBackDetails, FirstLine } from './came-back.tsx';
import { Note } from './layout.tsx';
import { durationText } from './numbers.ts';
import { failureTexts } from './status.tsx';
import { Countdown, Instant } from './time.tsx';

export function AttemptTimeline({ delivery }: { delivery: DeliveryWithAttempts }) {
  const { attempts, status } = delivery;
  return (
    <Timeline bulletSize={24} lineWidth={2} active={attempts.length} className="numbers">
      <Timeline.Item bullet={<PlusIcon size={13} />} title="Created" color="gray">
        <Note>
          <Instant at={delivery.created_at} />
        </Note>
      </Timeline.Item>
      {attempts.map((attempt) => {
        const { number, outcome, status_code, error, started_at, duration_ms } = attempt;
        const [Icon, color] = outcome === 'succeeded' ? [CheckIcon, 'teal.8'] : [XIcon, 'red.8'];
        const title = (
          <Group gap="xs">
            <span>Attempt {number}</span>
            {status_code !== null && <Note span>{status_code}</Note>}
          </Group>
        );
        return (
          <Timeline.Item key={number} bullet={<Icon size={14} />} color={color} title={title}>
            <Text size="sm">{error === null ? 'Succeeded' : failureTexts[error]}</Text>
            <Note>
              <Instant at={started_at} /> · took {durationText(duration_ms)}
            </Note>
            {isKept(attempt) && <WhatCameBack attempt={attempt} />}
          </Timeline.Item>
        );
      })}
      {status === 'waiting_for_retry' && delivery.next_attempt_at && (
        <Timeline.Item bullet={<ClockIcon size={14} />} title={`Attempt ${attempts.length + 1}`}>
          <Note>
            Due <Countdown at={delivery.next_attempt_at} />
          </Note>
        </Timeline.Item>
      )}
      {status === 'pending' && (
        <Timeline.Item bullet={<ClockIcon size={14} />} title="In the queue">
          <Note>A worker makes the first attempt as soon as it has a free slot.</Note>
        </Timeline.Item>
      )}
      {status === 'held' && (
        <Timeline.Item bullet={<PauseIcon size={14} />} title="Held" color="orange">
          <Note>The address is not active. Resume or validate it to send this delivery.</Note>
        </Timeline.Item>
      )}
      {status === 'failed' && (
        <Timeline.Item bullet={<XIcon size={14} />} title="Failed permanently" color="red.8">
          <Note>
            {delivery.failure_reason && `${failureTexts[delivery.failure_reason]}. `}
            {delivery.replayable_until && (
              <>
                It can be replayed until <Instant at={delivery.replayable_until} />.
              </>
            )}
          </Note>
        </Timeline.Item>
      )}
    </Timeline>
  );
}

/** The first line of the body, and the rest on request. */
function WhatCameBack({ attempt }: { attempt: Attempt }) {
  const [isOpen, { toggle }] = useDisclosure(false);
  return (
    <>
      <FirstLine cameBack={attempt} />
      <Anchor component="button" type="button" size="sm" onClick={toggle} aria-expanded={isOpen}>
        What came back from attempt {attempt.number} {isOpen ? '▴' : '▾'}
      </Anchor>
      {isOpen && (
        <Box mt="xs">
          <CameBackDetails cameBack={attempt} label={`response to attempt ${attempt.number}`} />
        </Box>
      )}
    </>
  );
}
