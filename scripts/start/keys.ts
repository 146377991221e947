/** The keys of `npm start`: generated once, stored in a file that only its owner can read, so that a restart keeps its data. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** What `npm start` stores between runs. */
export interface DemoState {
  publisherKey: string;
  operatorToken: string;
  secretEncryptionKey: string;
  /** The sample receiver's subscription, once it exists. */
  sample?: { subscriptionId: string; secret: string; port: number };
}

export function loadState(file: string): DemoState {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as DemoState;
  const state: DemoState = {
    publisherKey: `pk_${randomBytes(24).toString('base64url')}`,
    operatorToken: `ot_${randomBytes(24).toString('base64url')}`,
    secretEncryptionKey: randomBytes(32).toString('base64'),
  };
  saveState(file, state);
  return state;
}

export function saveState(file: string, state: DemoState): void {
  writeFileSync(file, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
}
