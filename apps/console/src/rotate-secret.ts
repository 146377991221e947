/** Replaces the signing secret of a subscription (interface 4). */
import { AppError } from '@posthorn/core';
import { newSigningSecret } from '@posthorn/signing';
import type { StoredSubscription } from '@posthorn/store';
import { change } from './change-subscription.ts';
import type { ConsoleContext } from './context.ts';
import { instant } from './instant.ts';

/**
 * Resolves with the new secret and the subscription that has it. Throws `AppError`: `not_found`, or `conflict` if
 * another call rotates at the same time: that one's secret was just shown to somebody.
 */
export async function rotateSecret(
  context: Pick<ConsoleContext, 'store' | 'clock' | 'secretBox'>,
  id: string,
  { operator, overlapMs }: { operator: string; overlapMs: number },
): Promise<{ rotated: StoredSubscription; secret: string }> {
  const { clock, secretBox } = context;
  const secret = newSigningSecret();
  const sealedSecret = secretBox.seal(secret, id);
  let found: StoredSubscription | undefined;
  const rotated = await change(context, id, {
    operator,
    action: 'subscription.secret_rotated',
    next(now) {
      found ??= now;
      const opens = secretBox.opens(now.sealedSecret, id);
      // A first try has saved it, and its reply was lost. A worker may have sealed it again since.
      if (opens && secretBox.open(now.sealedSecret, id) === secret) return now;
      if (now.secretRotatedAtMs !== found.secretRotatedAtMs)
        throw new AppError(
          'conflict',
          'Another call has rotated this secret at the same time, and returned the new one. Rotate again only if that is to be replaced.',
        );
      const rotatedAtMs = clock.now();
      // A secret that no key opens can't sign any more.
      const overlaps = overlapMs > 0 && opens;
      return {
        ...now,
        sealedSecret,
        previousSealedSecret: overlaps ? now.sealedSecret : null,
        previousSecretUntilMs: rotatedAtMs + (overlaps ? overlapMs : 0),
        secretRotatedAtMs: rotatedAtMs,
      };
    },
    detail: (_before, after) => ({ previous_secret_until: instant(after.previousSecretUntilMs) }),
  });
  return { rotated, secret };
}
