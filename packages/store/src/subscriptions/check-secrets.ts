/** Finds out whether the encryption keys open none of the stored signing secrets. */
import { StartError } from '@posthorn/core';
import { listSubscriptions } from '../lists/lists.ts';
import type { Store } from '../store.ts';

const PAGE = 100;

/**
 * Throws `StartError` if `opens` returns false for all secrets: a worker would take jobs and send nothing. If one opens,
 * the keys are right: others may be sealed with a lost key.
 */
export async function checkSecrets(
  store: Store,
  opens: (sealedSecret: string, subscriptionId: string) => boolean,
): Promise<void> {
  let cursor: string | undefined;
  let isEmpty = true;
  do {
    const { items, nextCursor } = await listSubscriptions(store, {}, { limit: PAGE, cursor });
    if (items.some(({ id, sealedSecret }) => opens(sealedSecret, id))) return;
    isEmpty &&= items.length === 0;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  if (isEmpty) return;
  throw new StartError(
    'SECRET_ENCRYPTION_KEY opens none of the stored signing secrets: they were sealed with another key. ' +
      'Set the key of the other workers and consoles. If it is lost, docs/secrets.md says what to do.',
  );
}
