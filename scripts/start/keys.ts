/**
 * The keys of `npm start`: generated once, stored in a file that only its owner can read, so that a restart keeps its
 * data.
 */
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { readOwnFile, writeOwnFile } from './own-file.ts';

/** What `npm start` stores between runs. */
export interface DemoState {
  publisherKey: string;
  operatorToken: string;
  secretEncryptionKey: string;
  /** The sample receiver's subscription, once it exists. */
  sample?: { subscriptionId: string; secret: string; port: number };
}

export function loadState(file: string): DemoState {
  // The secrets in Redis are encrypted with the key in it.
  const advice = `Restore it, or delete the folder ${dirname(file)} to begin anew, without its data.`;
  const before = readOwnFile<DemoState>(file, advice);
  if (before !== undefined) return before;
  const state: DemoState = {
    publisherKey: `pk_${randomBytes(24).toString('base64url')}`,
    operatorToken: `ot_${randomBytes(24).toString('base64url')}`,
    secretEncryptionKey: randomBytes(32).toString('base64'),
  };
  writeOwnFile(file, state);
  return state;
}
