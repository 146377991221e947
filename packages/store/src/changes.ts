/** Knows of a call that has failed whether it may have changed anything. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ChangeFailed, StorageUnavailable } from '@posthorn/core';

/** Of the call that is being made: scripts that may have changed something. */
const calls = new AsyncLocalStorage<{ scripts: number }>();

/**
 * Makes a call. If it fails with `StorageUnavailable`, and Redis got none of its scripts or refused them, rejects with
 * `ChangeFailed`: nothing was changed.
 */
export async function knowingChanges<T>(call: () => Promise<T>): Promise<T> {
  const sent = { scripts: 0 };
  try {
    return await calls.run(sent, call);
  } catch (error) {
    const isKnown = error instanceof ChangeFailed || !(error instanceof StorageUnavailable);
    throw isKnown || sent.scripts > 0 ? error : new ChangeFailed(error);
  }
}

/** Sends a script that may change something. Counts it for the present call, unless it was not sent or was refused. */
export function countingChange<T>(send: () => Promise<T>): Promise<T> {
  const sent = calls.getStore();
  return sent ? count(sent, send) : send();
}

async function count<T>(sent: { scripts: number }, send: () => Promise<T>): Promise<T> {
  sent.scripts += 1;
  try {
    return await send();
  } catch (error) {
    if (error instanceof StorageUnavailable && error.isRefusal) sent.scripts -= 1;
    throw error;
  }
}

/**
 * Waits for the rest of a change of which the first part was made. If it fails with `StorageUnavailable`, rejects with
 * `ChangeFailed` that says `made`: what was made, and whether to repeat the call.
 */
export async function afterChange<T>(made: string, rest: Promise<T>): Promise<T> {
  return await rest.catch((error: unknown) => {
    throw error instanceof StorageUnavailable ? new ChangeFailed(error, made) : error;
  });
}
