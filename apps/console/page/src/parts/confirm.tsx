/** Asks for a confirmation in a dialog, also while the code of the dialogs is still loading. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { ActionButton, type ActionButtonProps } from './action-button.tsx';

interface Question {
  title: string;
  text: ReactNode;
  /** The labels of the buttons. */
  yes: string;
  no?: string;
  /** What is confirmed can't be undone. */
  isFinal?: boolean;
}

/**
 * Opens the dialog. It closes, or does not open, if the browser goes back or forward: its subject is no longer on
 * screen.
 */
export async function askFirst({ title, text, yes, no = 'Cancel', isFinal }: Question, onYes: () => void) {
  const left = new AbortController();
  window.addEventListener('popstate', () => left.abort(), { once: true });
  const { modals, shown } = await import('./overlays.tsx');
  // Before this, no component listens for dialogs to open.
  await shown;
  if (left.signal.aborted) return;
  const id = modals.openConfirmModal({
    title,
    children: <Text size="sm">{text}</Text>,
    labels: { confirm: yes, cancel: no },
    ...(isFinal && { confirmProps: { color: 'red' } }),
    onConfirm: onYes,
  });
  left.signal.addEventListener('abort', () => modals.close(id));
}

/** A button whose change begins once it is confirmed. */
export function AskingButton({ question, change, ...button }: ActionButtonProps & { question: Question }) {
  return <ActionButton {...button} change={{ ...change, mutate: () => void askFirst(question, change.mutate) }} />;
}
