/** Asks for a confirmation in a dialog, also while the code of the dialogs is still loading. */

type Question = Parameters<typeof import('@mantine/modals').modals.openConfirmModal>[0];

/** The dialog closes, or is not opened, if the browser goes back or forward: it would ask about what is not on screen any more. */
export async function askFirst(question: Question): Promise<void> {
  const left = new AbortController();
  window.addEventListener('popstate', () => left.abort(), { once: true });
  const { modals, shown } = await import('./overlays.tsx');
  // Nothing listens before.
  await shown;
  if (left.signal.aborted) return;
  const id = modals.openConfirmModal(question);
  left.signal.addEventListener('abort', () => modals.close(id));
}
