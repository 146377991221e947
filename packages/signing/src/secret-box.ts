/** Signing secrets: made at random, and sealed wherever they are stored. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1.';

/** A new signing secret: `whsec_` and 32 random bytes in base64url (interface 5). */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64url')}`;
}

/** The 32 bytes of `SECRET_ENCRYPTION_KEY`, or undefined where the text is not 32 bytes in base64. */
export function parseEncryptionKey(base64: string): Buffer | undefined {
  const key = Buffer.from(base64, 'base64');
  return key.length === 32 && /^[A-Za-z0-9+/_-]{43}=?$/.test(base64) ? key : undefined;
}

export interface SecretBox {
  /** The sealed text of a secret. `owner`, the subscription's id, is bound to it. */
  seal(secret: string, owner: string): string;
  /** The secret of a sealed text. Throws `SealBroken` where the key, the owner or the text is not the one it was sealed with. */
  open(sealed: string, owner: string): string;
}

/** A sealed secret can't be opened. Says nothing about the secret, the key or the text. */
export class SealBroken extends Error {
  override name = 'SealBroken';
  constructor(owner: string) {
    super(`The signing secret of ${owner} can't be opened: was it stored with another SECRET_ENCRYPTION_KEY?`);
  }
}

/** Seals with AES-256-GCM under a 32-byte key, a fresh random nonce each time. */
export function createSecretBox(key: Buffer): SecretBox {
  return {
    seal(secret, owner) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return VERSION + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
    },
    open(sealed, owner) {
      try {
        if (!sealed.startsWith(VERSION)) throw new SealBroken(owner);
        const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
        const nonce = bytes.subarray(0, NONCE_BYTES);
        const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(
          Buffer.from(owner),
        );
        cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        return cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + cipher.final('utf8');
      } catch {
        // The reason given by the cipher helps nobody but an attacker.
        throw new SealBroken(owner);
      }
    },
  };
}
