/** Seals every stored signing secret with the first encryption key, so that an older key can be removed from the settings. */
import type { Logger } from '@posthorn/runtime';
import type { SecretBox } from '@posthorn/signing';
import { changeSubscription, listSubscriptions, type Store, type StoredSubscription } from '@posthorn/store';

/** How often a worker looks for secrets that an older key has sealed, where there is one. */
export const RESEAL_EVERY_MS = 60_000;
const PAGE = 200;

export interface ResealContext {
  store: Store;
  secretBox: SecretBox;
  logger: Logger;
}

/**
 * Goes through all subscriptions once. Several workers may do so at the same time: a save of an outdated record is refused and
 * repeated. Returns how many subscriptions it sealed again and how many it could not open; once both are 0, the first key alone is enough.
 */
export async function resealSecrets({ store, secretBox, logger }: ResealContext) {
  let resealed = 0;
  let unopened = 0;
  let cursor: string | undefined;
  do {
    const page = await listSubscriptions(store, {}, PAGE, cursor);
    for (const subscription of page.items) {
      try {
        if (!resealedCopy(secretBox, subscription)) continue;
        await changeSubscription(store, subscription.id, (now) => resealedCopy(secretBox, now));
        resealed += 1;
      } catch (err) {
        unopened += 1;
        logger.error({ err, subscription_id: subscription.id }, 'secrets.reseal_failed');
      }
    }
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  if (resealed > 0) logger.info({ subscriptions: resealed, unopened }, 'secrets.resealed');
  return { resealed, unopened };
}

/** The subscription with its secrets sealed by the first key, or undefined if they are already. */
function resealedCopy(secretBox: SecretBox, subscription: StoredSubscription): StoredSubscription | undefined {
  const { id, sealedSecret, previousSealedSecret } = subscription;
  const current = secretBox.reseal(sealedSecret, id);
  const previous = previousSealedSecret === null ? undefined : secretBox.reseal(previousSealedSecret, id);
  if (current === undefined && previous === undefined) return undefined;
  return {
    ...subscription,
    sealedSecret: current ?? sealedSecret,
    previousSealedSecret: previous ?? previousSealedSecret,
  };
}
