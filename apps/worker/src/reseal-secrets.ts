/**
 * Seals every stored signing secret with the first encryption key, so that an older key can be removed from the
 * settings.
 */
import { StorageUnavailable } from '@posthorn/core';
import { createRepeating, type Logger, type Service } from '@posthorn/runtime';
import type { SecretBox } from '@posthorn/signing';
import { allSubscriptions, changeSubscription, type Store, type StoredSubscription } from '@posthorn/store';

const RESEAL_EVERY_MS = 60_000;
/** Subscriptions that one line of the log names. */
const MAX_NAMED = 100;

interface ResealContext {
  store: Store;
  secretBox: SecretBox;
  logger: Logger;
}

/** The service that reseals secrets. */
export function createResealing(context: ResealContext): Service {
  const run = () => resealSecrets(context);
  return createRepeating({ name: 'reseal secrets', everyMs: RESEAL_EVERY_MS, run, logger: context.logger });
}

/**
 * Goes through all subscriptions once. Several workers may do so at the same time: saving an outdated record is
 * rejected and repeated. Returns how many subscriptions it resealed and how many it could not open; if both are 0, the
 * first key alone is enough. Throws `StorageUnavailable`.
 */
export async function resealSecrets({ store, secretBox, logger }: ResealContext) {
  let resealed = 0;
  let firstError: unknown;
  const unopened: string[] = [];
  for await (const subscription of allSubscriptions(store)) {
    try {
      if (!resealedCopy(secretBox, subscription)) continue;
      await changeSubscription(store, subscription.id, (latest) => resealedCopy(secretBox, latest));
      resealed += 1;
    } catch (err) {
      if (err instanceof StorageUnavailable) throw err;
      firstError ??= err;
      unopened.push(subscription.id);
    }
  }
  if (resealed > 0) logger.info({ subscriptions: resealed, unopened: unopened.length }, 'secrets.resealed');
  if (unopened.length > 0) {
    const named = unopened.slice(0, MAX_NAMED);
    const fields = { err: firstError, subscriptions: unopened.length, subscription_ids: named };
    logger.error(fields, 'secrets.reseal_failed');
  }
  return { resealed, unopened: unopened.length };
}

/** The subscription with its secrets sealed by the first key; undefined if they are already. */
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
