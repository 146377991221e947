/** Resumes all addresses that failures have paused, of those that a list shows. */
import { Text } from '@mantine/core';
import type { ResumeResult } from '@posthorn/operator-api';
import { IconPlayerPlay } from '@tabler/icons-react';
import { changeAll } from '../api.ts';
import { useChange } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { askFirst } from './confirm.ts';
import { amountText, countText } from './numbers.ts';

type ShownBy = Readonly<Record<'q' | 'environment' | 'health', string | null | undefined>>;

export function ResumePaused({ q, environment, health }: ShownBy) {
  const filters = { q, environment, health, status_reason: 'consecutive_failures' };
  const resume = useChange(() => changeAll<ResumeResult>('/v1/subscriptions/resume', filters, textOf), {
    done: textOf,
  });
  const confirm = () =>
    askFirst({
      title: 'Resume what failures have paused?',
      children: (
        <Text size="sm">
          All addresses that were paused by consecutive failures and match the search and filters are resumed. One held
          delivery of each goes first; if it fails, that address is paused again. Those that an operator paused stay
          paused.
        </Text>
      ),
      labels: { confirm: 'Resume them', cancel: 'Cancel' },
      onConfirm: () => resume.mutate(),
    });
  return (
    <ActionButton
      label="Resume all"
      icon={IconPlayerPlay}
      change={{ isPending: resume.isPending, mutate: confirm }}
      variant="default"
    />
  );
}

function textOf(results: readonly ResumeResult[]): string {
  const count = (wanted: ResumeResult['result']) => results.filter(({ result }) => result === wanted).length;
  const [resumed, refused] = [count('resumed'), count('refused')];
  if (resumed + refused === 0) return 'No address was paused by failures.';
  const trials = 'Of what is held for each, one delivery goes first.';
  const done = `Resumed ${amountText(resumed, 'address', 'addresses')}. ${trials}`;
  return refused === 0
    ? done
    : `${done} ${countText(refused)} could not be resumed and ${refused === 1 ? 'stays' : 'stay'} paused.`;
}
