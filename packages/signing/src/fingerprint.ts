/**
 * Keyed hashes of values that must not be stored: whoever has the key can prove that a value is the one that was meant,
 * nobody can guess it.
 */
import { createHmac } from 'node:crypto';
import { deriveKeys, type EncryptionKeys } from './secret-box.ts';

export interface Fingerprints {
  /** Returns the hash of a text (HMAC-SHA-256) under the first key. */
  of(text: string): string;
  /** Returns the hashes of a text under each key: one of them is the one that an earlier first key made. */
  all(text: string): string[];
}

/**
 * Derives the keys of the hashes from those that seal secrets. `purpose` sets them apart from all others: hashes that
 * are stored stay valid only with the same purpose and encoding.
 */
export function createFingerprints(
  encryptionKeys: EncryptionKeys,
  purpose: string,
  encoding: 'hex' | 'base64url',
): Fingerprints {
  const keys = deriveKeys(encryptionKeys, purpose);
  const all = (text: string) => keys.map((key) => createHmac('sha256', key).update(text).digest(encoding));
  return { all, of: (text) => all(text)[0] ?? '' };
}
