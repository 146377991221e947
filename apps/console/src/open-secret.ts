/** Opens a signing secret for an operator's call. */
import { AppError } from '@posthorn/core';
import { SealBroken, type SecretBox } from '@posthorn/signing';

/** Returns the secret of a subscription. Throws `AppError` `conflict` if no key opens it. */
export function openSecret(secretBox: SecretBox, sealed: string, subscriptionId: string): string {
  try {
    return secretBox.open(sealed, subscriptionId);
  } catch (cause) {
    if (!(cause instanceof SealBroken)) throw cause;
    throw new AppError('conflict', `${cause.message} If that key is lost, rotate the secret.`, { cause });
  }
}
