/** Resumes all addresses that failures have paused, of those that a list shows. */
import type { ResumeResult } from '@posthorn/operator-api';
import { PlayIcon } from '@primer/octicons-react';
import { changeAll } from '../api.ts';
import { useChange } from '../queries.ts';
import { AskingButton } from './confirm.tsx';
import { amountText, countText } from './numbers.ts';

type ShownBy = Readonly<Record<'q' | 'environment' | 'health', string | null | undefined>>;

const QUESTION = {
  title: 'Resume what failures have paused?',
  text: 'All addresses that were paused by consecutive failures and match the search and filters are resumed. One held delivery of each goes first; if it fails, that address is paused again. Those that an operator paused stay paused.',
  yes: 'Resume them',
};

export function ResumePaused({ q, environment, health }: ShownBy) {
  const filters = { q, environment, health, status_reason: 'consecutive_failures' };
  const resume = useChange(() => changeAll<ResumeResult>('/v1/subscriptions/resume', filters, textOf), {
    done: textOf,
  });
  return <AskingButton label="Resume all" icon={PlayIcon} question={QUESTION} change={resume} variant="default" />;
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
