/** Tells operators why the storage is unavailable, and which partitions of a Redis Cluster are, and where. */
import { AppError, StorageUnavailable } from '@posthorn/core';
import { callerName, storageUnavailable } from '@posthorn/http';
import { shareResult } from '@posthorn/runtime';
import { findUnavailable, type Store, type UnavailablePartition } from '@posthorn/store';
import type { ErrorRequestHandler } from 'express';

/** All calls that fail share one look for this long. */
const MAX_AGE_MS = 1_000;

/**
 * Says why these partitions are unavailable, as a clause without its full stop. Names them and their servers unless
 * they are all of one Redis.
 */
export function describeUnavailable({ partitions }: Store, unavailable: readonly UnavailablePartition[]): string {
  const clauses = Array.from(
    Map.groupBy(unavailable, ({ server }) => server),
    ([server, members]) => {
      const which = members.length === 1 ? 'partition' : 'partitions';
      const numbers = members.map(({ partition }) => partition).join(', ');
      // Keeps the first sentence only: the others explain settings of Redis.
      const reason = members[0]?.error.message.replace(/\.(\s.*)?$/s, '');
      return server === undefined ? reason : `${which} ${numbers} of ${partitions}, on Redis at ${server}: ${reason}`;
    },
  );
  return clauses.join('; ');
}

/**
 * Passes errors on. Where the storage is unavailable, an operator's 503 says why; where only some partitions are, also
 * which, and what still works. A change that got no reply may have been made all the same: Redis may only be slow. One
 * that Redis has refused with a reply, as a replica does, was not.
 */
export function storageProblem(store: Store): ErrorRequestHandler {
  const find = shareResult(() => findUnavailable(store), MAX_AGE_MS);
  return async (error, { method }, response, _next) => {
    if (!(error instanceof StorageUnavailable) || callerName(response) === '') throw error;
    const isRefused = error.cause?.name === 'ReplyError';
    const also = method === 'GET' || isRefused ? '' : ' The change may have been made: look before you repeat it.';
    const unavailable = await find();
    if (unavailable.length === 0 || unavailable.length === store.partitions) {
      throw storageUnavailable(error, `Storage is unavailable: ${error.message.replace(/\.?$/, '.')}${also}`);
    }
    const which = describeUnavailable(store, unavailable);
    const detail = `A part of the storage is unavailable: ${which}. ${await othersOf(store)}${also}`;
    throw new AppError('unavailable', detail, { cause: error, retryAfterS: 5 });
  };
}

/**
 * Says whether the other partitions work: 30 s after the master with the record of the installation is away, none does.
 */
async function othersOf({ format, prefix }: Store): Promise<string> {
  try {
    await format.confirm();
    return 'The other partitions work: their addresses, events and deliveries can be opened by their ids.';
  } catch {
    return `The other partitions wait too, until the master that has the key ${prefix}:installation responds.`;
  }
}
