/**
 * Keyed hashes of values that must not be stored: whoever has the key can prove that a value is the one that was meant,
 * nobody can guess it.
 */
import { createHmac } from 'node:crypto';
import { deriveKeys, type EncryptionKeys } from './secret-box.ts';

/** Sets the key of the hashes apart from the one that seals. */
const PURPOSE = 'posthorn fingerprint';

export interface Fingerprints {
  /** Returns the hash of a text (HMAC-SHA-256 in hex) under the first key. */
  of(text: string): string;
  /** Returns the hashes of a text under each key: one of them is the one that an earlier first key made. */
  all(text: string): string[];
}

/** Derives the keys of the hashes from those that seal secrets. */
export function createFingerprints(encryptionKeys: EncryptionKeys): Fingerprints {
  const keys = deriveKeys(encryptionKeys, PURPOSE);
  const all = (text: string) => keys.map((key) => createHmac('sha256', key).update(text).digest('hex'));
  return { all, of: (text) => all(text)[0] ?? '' };
}
