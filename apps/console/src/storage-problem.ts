/**
 * Tells operators why the storage is unavailable, which partitions of a Redis Cluster are, and where, or which record
 * can't be read.
 */
import { AppError, ChangeFailed, StorageUnavailable } from '@posthorn/core';
import { callerName, storageUnavailable, toAppError } from '@posthorn/http';
import { shareResult } from '@posthorn/runtime';
import { findUnavailable, type Store, type UnavailablePartition, UnreadableRecord } from '@posthorn/store';
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
 * which, and what still works. It also says what became of a change: one that got no reply may have been made all the
 * same, since Redis may only be slow. `not_changed` means that nothing was changed. The 500 of a record or a key that
 * can't be read says so, and where an operator reads on.
 */
export function storageProblem(store: Store): ErrorRequestHandler {
  const find = shareResult(() => findUnavailable(store), MAX_AGE_MS);
  return async (error, { method }, response, _next) => {
    if (callerName(response) === '' || error instanceof AppError) throw error;
    if (!(error instanceof StorageUnavailable)) throw internalProblem(error, method);
    const { code, also } = method === 'GET' ? { code: 'unavailable' as const, also: '' } : outcomeOf(error);
    const unavailable = await find();
    if (unavailable.length === 0 || unavailable.length === store.partitions) {
      const { publicMessage } = storageUnavailable(
        error,
        `Storage is unavailable: ${error.message.replace(/\.?$/, '.')}`,
      );
      throw new AppError(code, publicMessage + also, { cause: error, retryAfterS: 5 });
    }
    const which = describeUnavailable(store, unavailable);
    const detail = `A part of the storage is unavailable: ${which}. ${await othersOf(store)}${also}`;
    throw new AppError(code, detail, { cause: error, retryAfterS: 5 });
  };
}

const MAY_BE_MADE = ' The change may have been made: look before you repeat it.';

/** The error of a call that has failed because of a bug, or of what is stored. */
function internalProblem(cause: unknown, method: string): AppError {
  const { code, publicMessage } = toAppError(cause);
  const mayBeMade = code === 'internal' && method !== 'GET';
  return new AppError(code, (damageText(cause) ?? publicMessage) + (mayBeMade ? MAY_BE_MADE : ''), { cause });
}

/** Says what is stored that can't be read. Only the log says why: that may quote it. */
function damageText(cause: unknown): string | undefined {
  if (cause instanceof UnreadableRecord)
    return `${cause.summary}; the log of the console says why. See "A record that can't be read" in docs/runbooks.md.`;
  if (cause instanceof Error && cause.name === 'ReplyError' && cause.message.startsWith('WRONGTYPE '))
    return 'A key in Redis has another type than Posthorn gives it; the log of the console names it, or the script that uses it. See "A key that another program has written" in docs/runbooks.md.';
  return undefined;
}

/** What became of the change that failed. */
function outcomeOf(error: StorageUnavailable): { code: 'unavailable' | 'not_changed'; also: string } {
  if (!(error instanceof ChangeFailed)) return { code: 'unavailable', also: MAY_BE_MADE };
  if (error.made === undefined) return { code: 'not_changed', also: ' Nothing was changed.' };
  return { code: 'unavailable', also: ` ${error.made}` };
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
