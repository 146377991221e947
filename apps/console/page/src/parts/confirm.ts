/** Asks for a confirmation in a dialog, also while the code of the dialogs is still loading. */

type Question = Parameters<typeof import('@mantine/modals').modals.openConfirmModal>[0];

/**
 * Opens the dialog. It closes, or does not open, if the browser goes back or forward: its subject is no longer on
 * screen.
 */
export async function askFirst(question: Question): Promise<void> {
  const left = new AbortController();
  window.addEventListener('popstate', () => left.abort(), { once: true });
  const { modals, shown } = await import('./overlays.tsx');
  // Before this, no component listens for dialogs to open.
  await shown;
  if (left.signal.aborted) return;
  const id = modals.openConfirmModal(question);
  left.signal.addEventListener('abort', () => modals.close(id));
}
