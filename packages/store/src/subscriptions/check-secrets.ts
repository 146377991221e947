/** Finds out whether the encryption keys open none of the stored signing secrets. */
import { StartError } from '@posthorn/core';
import { listSubscriptions } from '../lists/lists.ts';
import type { Store } from '../store.ts';

const PAGE = 100;
/** Secrets that are tried, the newest first. If one opens, the keys are right: others may be sealed with a lost key. */
const MAX_TRIED = 1_000;

/** Throws `StartError` if `opens` returns false for all secrets: a worker would take jobs and send nothing. */
export async function checkSecrets(
  store: Store,
  opens: (sealedSecret: string, subscriptionId: string) => boolean,
): Promise<void> {
  let cursor: string | undefined;
  let tried = 0;
  do {
    const { items, nextCursor } = await listSubscriptions(store, {}, { limit: PAGE, cursor });
    if (items.some(({ id, sealedSecret }) => opens(sealedSecret, id))) return;
    tried += items.length;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined && tried < MAX_TRIED);
  if (tried === 0) return;
  throw new StartError(
    'SECRET_ENCRYPTION_KEY opens none of the stored signing secrets: they were sealed with another key. ' +
      'Set the key of the other workers and consoles. If it is lost, docs/secrets.md says what to do.',
  );
}
