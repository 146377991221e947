/** Finds out whether the encryption keys open none of the stored signing secrets. */
import { StartError } from '@posthorn/core';
import { allSubscriptions } from '../lists/lists.ts';
import type { Store } from '../store.ts';

/**
 * Throws `StartError` if `opens` returns false for all secrets: a worker would take jobs and send nothing. If one
 * opens, the keys are right: others may be sealed with a lost key.
 */
export async function checkSecrets(
  store: Store,
  opens: (sealedSecret: string, subscriptionId: string) => boolean,
): Promise<void> {
  let isEmpty = true;
  for await (const { id, sealedSecret } of allSubscriptions(store)) {
    if (opens(sealedSecret, id)) return;
    isEmpty = false;
  }
  if (isEmpty) return;
  throw new StartError(
    'SECRET_ENCRYPTION_KEY opens none of the stored signing secrets: they were sealed with another key. ' +
      'Set the key of the other workers and consoles. If it is lost, docs/secrets.md says what to do.',
  );
}
