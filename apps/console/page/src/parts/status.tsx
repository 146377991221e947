/** Badges for the statuses of subscriptions, deliveries and bulk replays, and their reasons in words. */
import { Badge, Group } from '@mantine/core';
import type { Delivery, Erasure, Replay, Subscription } from '@posthorn/operator-api';

type Status =
  | Subscription['status']
  | 'resuming'
  | Delivery['status']
  | Replay['status']
  | 'sending'
  | Erasure['status'];

export const looks: Record<Status, { color: string; label: string }> = {
  awaiting_validation: { color: 'gray', label: 'Awaiting validation' },
  active: { color: 'teal', label: 'Active' },
  paused: { color: 'orange', label: 'Paused' },
  resuming: { color: 'blue', label: 'Resuming' },
  refused: { color: 'red', label: 'Refused' },
  pending: { color: 'blue', label: 'Pending' },
  waiting_for_retry: { color: 'yellow', label: 'Waiting for retry' },
  held: { color: 'orange', label: 'Held' },
  succeeded: { color: 'teal', label: 'Succeeded' },
  failed: { color: 'red', label: 'Failed' },
  running: { color: 'blue', label: 'Running' },
  sending: { color: 'blue', label: 'Sending' },
  done: { color: 'teal', label: 'Done' },
  canary: { color: 'blue', label: 'Canary' },
  halted: { color: 'orange', label: 'Halted' },
  cancelled: { color: 'gray', label: 'Cancelled' },
  counting: { color: 'blue', label: 'Counting' },
  counted: { color: 'orange', label: 'Needs confirmation' },
  waiting: { color: 'yellow', label: 'Waiting' },
};

/** Returns the statuses with their labels, for selection. */
export function statusOptions(statuses: Status[]) {
  return statuses.map((value) => ({ value, label: looks[value].label }));
}

export function StateBadge({ color, label, title }: { color: string; label: string; title?: string }) {
  return (
    <Badge color={color} variant="light" radius="sm" tt="none" fw={550} miw="max-content" title={title}>
      {label}
    </Badge>
  );
}

export function StatusBadge({ status }: { status: Status }) {
  return <StateBadge {...looks[status]} />;
}

/** The status of a subscription, and whether its attempts fail. */
export function AddressBadges({ status, isFailing }: { status: Status; isFailing: boolean }) {
  return (
    <Group gap={6}>
      <StatusBadge status={status} />
      {isFailing && <StateBadge color="red" label="Failing" />}
    </Group>
  );
}

/** The reasons for a subscription's status as sentences. */
export const statusTexts: Record<NonNullable<Subscription['status_reason']>, string> = {
  private_address: 'The address is private.',
  local_address: 'The address is local.',
  redirect: 'The address responds with a redirect.',
  unreachable: 'The address could not be reached at the last validation.',
  consecutive_failures: 'Too many consecutive deliveries failed.',
  operator: 'An operator paused it.',
};

/** The reasons for a failed attempt or delivery in words. */
export const failureTexts: Record<NonNullable<Delivery['failure_reason']>, string> = {
  timeout: 'No response within the time limit',
  redirect: 'Response is a redirect',
  status: 'Response has an error status',
  address_blocked: 'The address is private or local',
  dns: 'The name could not be resolved',
  connection: 'The connection failed',
  tls: 'TLS failed (certificate or handshake)',
  expired: 'Held for too long',
  subscription_deleted: 'The subscription was deleted',
  cancelled: 'Its bulk replay was cancelled',
  erased: 'Its payload was erased',
};
export const failureOptions = Object.entries(failureTexts).map(([value, label]) => ({ value, label }));
