/**
 * What one process knows about the stored format: it reads it when it starts, registers what it can read, and repeats both every few
 * seconds. docs/architecture.md has the reasons.
 */
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { StartError, StorageUnavailable } from '@posthorn/core';
import { describeMismatch, FIRST_FORMAT, type FormatRange } from './formats.ts';
import { installationKey } from './keys.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** The exit code of a process that can't read what is stored: EX_CONFIG of sysexits.h. No restart helps. */
const EXIT_MISMATCH = 78;
const REFRESH_EVERY_MS = 5_000;
/**
 * What a process knows about the format is valid for this long; then it asks before it runs a script. Must be far below
 * `GONE_AFTER_MS`.
 */
const TRUST_MS = 30_000;

/** How a process registers. */
export interface ProcessIdentity {
  /** Unique for each process. */
  id: string;
  /** `ingest`, `worker` or `console`. */
  app: string;
  /** Its release. */
  version: string;
}

export interface StoredFormat {
  /** The format to write. Everything that this process may find can be older, or newer up to what it reads. */
  current(): number;
  /** Undefined while what is known is recent. Otherwise resolves once it is, and rejects if this process can't read what is stored. */
  confirm(): Promise<void> | undefined;
}

/**
 * `join` creates or reads the record of the installation, registers the process and returns the number of partitions;
 * it throws `StartError` if this process can't read what is stored. `keepUp` repeats that until `leave`, and calls
 * `onMismatch` once if it can't read it any more. Without an identity (a tool, a test) nothing is registered or
 * repeated.
 */
export function createStoredFormat(
  store: Pick<Store, 'redis' | 'prefix' | 'partitions'>,
  readable: FormatRange,
  identity: ProcessIdentity | undefined,
  onMismatch: (error: StartError) => void,
) {
  const key = installationKey(store.prefix);
  const leaving = new AbortController();
  let current = FIRST_FORMAT;
  let confirmedAtMs = Number.NEGATIVE_INFINITY;
  let mismatch: StartError | undefined;
  const state = JSON.stringify({
    app: identity?.app,
    version: identity?.version,
    host: hostname(),
    pid: process.pid,
    ...readable,
  });
  const version = identity?.version ?? '';

  async function join(isEmpty = false): Promise<number> {
    const sentAtMs = Date.now();
    const { format, raisedBy, oldestStored, partitions } = await runScript(
      { redis: store.redis },
      'joinInstallation',
      key,
      {
        id: identity?.id,
        state,
        isEmpty,
        partitions: store.partitions,
        version,
        ...readable,
      },
    );
    const reason = describeMismatch({ format, oldestStored, raisedBy }, readable, { prefix: store.prefix, version });
    if (reason !== undefined) {
      mismatch = new StartError(reason, EXIT_MISMATCH);
      throw mismatch;
    }
    current = format;
    confirmedAtMs = sentAtMs;
    return partitions;
  }

  async function refresh(): Promise<void> {
    if (mismatch) throw mismatch;
    try {
      await join();
    } catch (error) {
      if (error instanceof StartError) onMismatch(error);
      throw error;
    }
  }
  let refreshing: Promise<void> | undefined;
  const refreshOnce = () => {
    refreshing ??= refresh().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  };
  const format: StoredFormat = {
    current: () => current,
    confirm() {
      // Also after the clock was set back.
      if (identity === undefined || Math.abs(Date.now() - confirmedAtMs) < TRUST_MS) return undefined;
      return refreshOnce();
    },
  };
  return {
    format,
    join,
    async keepUp(onError: (error: Error) => void): Promise<void> {
      while (identity !== undefined && mismatch === undefined) {
        await wait(REFRESH_EVERY_MS, undefined, { signal: leaving.signal, ref: false }).catch(() => undefined);
        if (leaving.signal.aborted) return;
        await refreshOnce().catch((error: Error) => {
          // The connection reports that Redis is unavailable.
          if (!(error instanceof StartError || error instanceof StorageUnavailable)) onError(error);
        });
      }
    },
    async leave(): Promise<void> {
      leaving.abort();
      if (identity === undefined || mismatch !== undefined) return;
      // A process that can't say goodbye is gone after a while.
      await store.redis.hdel(key, `process:${identity.id}`).catch(() => undefined);
    },
  };
}
