/** Refuses to start with encryption keys that open none of the stored secrets: such a worker would take jobs and send nothing. */
import { StartError } from '@posthorn/core';
import type { Service } from '@posthorn/runtime';
import { SealBroken, type SecretBox } from '@posthorn/signing';
import { listSubscriptions, type Store } from '@posthorn/store';

const PAGE = 100;
/** Secrets that are tried, the newest first. Where one opens, the worker starts: others may be sealed with a lost key. */
const MAX_TRIED = 1_000;

/** The service that checks the keys when it starts. Throws `StartError`. */
export function createKeyCheck(store: Store, secretBox: Pick<SecretBox, 'open'>): Service {
  return {
    name: 'encryption keys',
    async start() {
      if (await opensNone(store, secretBox))
        throw new StartError(
          'SECRET_ENCRYPTION_KEY opens none of the stored signing secrets: they were sealed with another key. ' +
            'Set the key of the other workers and consoles (docs/secrets.md says how to replace it).',
        );
    },
    stop: async () => undefined,
  };
}

/** Whether there are secrets, and none of those that are tried can be opened. */
async function opensNone(store: Store, secretBox: Pick<SecretBox, 'open'>): Promise<boolean> {
  let cursor: string | undefined;
  let tried = 0;
  do {
    const { items, nextCursor } = await listSubscriptions(store, {}, { limit: PAGE, cursor });
    for (const { id, sealedSecret } of items) if (canOpen(secretBox, sealedSecret, id)) return false;
    tried += items.length;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined && tried < MAX_TRIED);
  return tried > 0;
}

function canOpen(secretBox: Pick<SecretBox, 'open'>, sealed: string, owner: string): boolean {
  try {
    secretBox.open(sealed, owner);
    return true;
  } catch (error) {
    if (error instanceof SealBroken) return false;
    throw error;
  }
}
