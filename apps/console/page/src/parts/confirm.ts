/** Asks for a confirmation in a dialog, also while the code of the dialogs is still loading. */

type Question = Parameters<typeof import('@mantine/modals').modals.openConfirmModal>[0];

export async function askFirst(question: Question): Promise<void> {
  const { modals, shown } = await import('./overlays.tsx');
  // Nothing listens before.
  await shown;
  modals.openConfirmModal(question);
}
