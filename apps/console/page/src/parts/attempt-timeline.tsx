/** The attempts of a delivery as a timeline, with the next one. */

import { Group, Text, Timeline } from '@mantine/core';
import type { DeliveryWithAttempts } from '@posthorn/operator-api';
import { IconCheck, IconClock, IconHandStop, IconPlus, IconX } from '@tabler/icons-react';
import { failureOf } from './status.tsx';
import { Countdown, durationText, Instant } from './time.tsx';

export function AttemptTimeline({ delivery }: { delivery: DeliveryWithAttempts }) {
  const { attempts, status } = delivery;
  return (
    <Timeline bulletSize={24} lineWidth={2} active={attempts.length}>
      <Timeline.Item bullet={<IconPlus size={13} />} title="Created" color="gray">
        <Text size="sm" c="dimmed">
          <Instant at={delivery.created_at} />
        </Text>
      </Timeline.Item>
      {attempts.map((attempt) => {
        const ok = attempt.outcome === 'succeeded';
        return (
          <Timeline.Item
            key={attempt.number}
            bullet={ok ? <IconCheck size={14} /> : <IconX size={14} />}
            color={ok ? 'teal.8' : 'red.8'}
            title={
              <Group gap="xs">
                <span>Attempt {attempt.number}</span>
                {attempt.status_code !== null && (
                  <Text span size="sm" c="dimmed" className="numbers">
                    {attempt.status_code}
                  </Text>
                )}
              </Group>
            }
          >
            <Text size="sm">{attempt.error === null ? 'Succeeded' : failureOf(attempt.error)}</Text>
            <Text size="sm" c="dimmed" className="numbers">
              <Instant at={attempt.started_at} /> · took {durationText(attempt.duration_ms)}
            </Text>
          </Timeline.Item>
        );
      })}
      {status === 'waiting_for_retry' && delivery.next_attempt_at && (
        <Timeline.Item bullet={<IconClock size={14} />} title={`Attempt ${attempts.length + 1}`} lineVariant="dashed">
          <Text size="sm" c="dimmed">
            Due <Countdown to={delivery.next_attempt_at} />
          </Text>
        </Timeline.Item>
      )}
      {status === 'pending' && (
        <Timeline.Item bullet={<IconClock size={14} />} title="In the queue" lineVariant="dashed">
          <Text size="sm" c="dimmed">
            The first attempt follows as soon as a worker has a place free.
          </Text>
        </Timeline.Item>
      )}
      {status === 'held' && (
        <Timeline.Item bullet={<IconHandStop size={14} />} title="Held" color="orange" lineVariant="dashed">
          <Text size="sm" c="dimmed">
            Its address is not active. It goes out once the address is resumed or validated.
          </Text>
        </Timeline.Item>
      )}
      {status === 'failed' && (
        <Timeline.Item bullet={<IconX size={14} />} title="Failed permanently" color="red.8">
          <Text size="sm" c="dimmed">
            {delivery.failure_reason && `${failureOf(delivery.failure_reason)}. `}
            {delivery.replayable_until && (
              <>
                It can be replayed until <Instant at={delivery.replayable_until} />.
              </>
            )}
          </Text>
        </Timeline.Item>
      )}
    </Timeline>
  );
}
