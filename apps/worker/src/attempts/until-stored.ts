/** Repeats a write that must not be lost while Redis can't accept it: full, loading, or failing over. */
import { setTimeout as wait } from 'node:timers/promises';
import { StorageUnavailable } from '@posthorn/core';

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 2_000;

/** Repeats `store` while Redis is unavailable. Throws other errors at once, and any error once `signal` has fired. */
export async function untilStored<T>(store: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
    try {
      return await store();
    } catch (error) {
      if (!(error instanceof StorageUnavailable) || signal.aborted) throw error;
      await wait(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
