/** Creates signing secrets, and seals them for storage. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1.';

/** Returns a new signing secret: `whsec_` and 32 random bytes in base64url (interface 5). */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64url')}`;
}

/** The keys of a secret box, each 32 bytes. The first one seals; all of them can open. */
export type EncryptionKeys = readonly [Buffer, ...Buffer[]];

/**
 * Reads `SECRET_ENCRYPTION_KEY`: keys in base64, separated by commas. Returns undefined if one of them is not 32 bytes.
 */
export function parseEncryptionKeys(text: string): EncryptionKeys | undefined {
  const [first, ...others] = text.split(',').map((part) => parseKey(part.trim()));
  if (first === undefined || others.includes(undefined)) return undefined;
  return [first, ...(others as Buffer[])];
}

function parseKey(base64: string): Buffer | undefined {
  const key = Buffer.from(base64, 'base64');
  return key.length === 32 && /^[A-Za-z0-9+/_-]{43}=?$/.test(base64) ? key : undefined;
}

/**
 * Derives from each key one for another purpose, 32 bytes long, in their order. What was made with the one of an
 * earlier first key stays valid as long as that key is among them.
 */
export function deriveKeys(keys: EncryptionKeys, purpose: string): Buffer[] {
  return keys.map((key) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32)));
}

export interface SecretBox {
  /** Returns the sealed text of a secret. It can be opened only with the same `owner`, the id of the subscription. */
  seal(secret: string, owner: string): string;
  /**
   * Returns the secret of a sealed text. Throws `SealBroken` if no key opens it, for example because the owner or the
   * text was changed.
   */
  open(sealed: string, owner: string): string;
  /** Returns whether a key opens a sealed text. */
  opens(sealed: string, owner: string): boolean;
  /**
   * Returns the secret sealed with the first key, or undefined if that key seals it already. Throws `SealBroken` as
   * `open` does.
   */
  reseal(sealed: string, owner: string): string | undefined;
}

/** A sealed secret cannot be opened. The message reveals nothing about the secret, the key or the text. */
export class SealBroken extends Error {
  override name = 'SealBroken';
  constructor(owner: string) {
    super(`No key in SECRET_ENCRYPTION_KEY opens the secret of ${owner}. Was it sealed with another key?`);
  }
}

/** Seals with AES-256-GCM under the first key, with a fresh random nonce each time. */
export function createSecretBox(keys: EncryptionKeys): SecretBox {
  const [first] = keys;
  const seal = (secret: string, owner: string) => {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', first, nonce).setAAD(Buffer.from(owner));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return VERSION + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
  };
  const open = (sealed: string, owner: string) => {
    for (const key of keys) {
      const secret = openWith(key, sealed, owner);
      if (secret !== undefined) return secret;
    }
    throw new SealBroken(owner);
  };
  return {
    seal,
    open,
    opens: (sealed, owner) => keys.some((key) => openWith(key, sealed, owner) !== undefined),
    reseal: (sealed, owner) =>
      openWith(first, sealed, owner) === undefined ? seal(open(sealed, owner), owner) : undefined,
  };
}

/**
 * Returns undefined if this key does not open the text. The error of the cipher is dropped: it would help only an
 * attacker.
 */
function openWith(key: Buffer, sealed: string, owner: string): string | undefined {
  if (!sealed.startsWith(VERSION)) return undefined;
  const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
  try {
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(owner));
    cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + cipher.final('utf8');
  } catch {
    return undefined;
  }
}
