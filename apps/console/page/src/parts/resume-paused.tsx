/** Resumes all addresses that failures have paused, of those that a list shows. */
import { Text } from '@mantine/core';
import type { BulkResumeResult, ResumeResult } from '@posthorn/operator-api';
import { IconPlayerPlay } from '@tabler/icons-react';
import { call } from '../api.ts';
import { useChange } from '../queries.ts';
import { ActionButton } from './action-button.tsx';
import { askFirst } from './confirm.ts';
import { amountText, countText } from './numbers.ts';

type ShownBy = Readonly<Record<'q' | 'environment' | 'health', string | null | undefined>>;

export function ResumePaused({ q, environment, health }: ShownBy) {
  const resume = useChange(() => resumeAll({ q, environment, health }), { done: textOf });
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

/** Resumes page by page, since a call looks at a limited number. */
async function resumeAll(shownBy: ShownBy): Promise<ResumeResult[]> {
  const filters = Object.fromEntries(Object.entries(shownBy).filter(([, value]) => value));
  const results: ResumeResult[] = [];
  let cursor: string | undefined;
  do {
    const body = { ...filters, status_reason: 'consecutive_failures', cursor };
    const { data, next_cursor: next } = await call<BulkResumeResult>('POST', '/v1/subscriptions/resume', body);
    results.push(...data);
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return results;
}

function textOf(results: readonly ResumeResult[]): string {
  const count = (wanted: ResumeResult['result']) => results.filter(({ result }) => result === wanted).length;
  const [resumed, refused] = [count('resumed'), count('refused')];
  if (resumed + refused === 0) return 'No address was paused by failures.';
  const trials = 'Of what is held for each, one delivery goes first.';
  const done = `Resumed ${amountText(resumed, 'address', 'addresses')}. ${trials}`;
  return refused === 0 ? done : `${done} ${countText(refused)} could not be resumed and stay paused.`;
}
