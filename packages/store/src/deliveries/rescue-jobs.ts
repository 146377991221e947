/** Rescues lost jobs: gives each delivery that waits for one and has none a new job. */
import type { DeliveryStatus } from '@posthorn/core';
import { byStatusKey, partitionPrefix } from '../keys.ts';
import type { Position } from '../lists/page.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';

/** Entries that one script looks at for lost jobs: 2 ms of Redis where each is of another address, mostly far less. */
const RESCUE_CHUNK = 500;

/**
 * Searches the deliveries that are `pending` or `waiting_for_retry` and were made until `beforeMs`, oldest first, from
 * after an entry. Gives each one that is in no lane and has no job a new generation and its job. Ends after
 * `maxLookedAt` entries, or after `maxRead` that are in no lane, or up to a chunk of 500 later. `next` is the entry
 * after which the following call goes on, undefined at the end. If two processes do it at once, only one adds the job.
 * Removes entries whose record is gone.
 * `problem`: the first delivery whose record is not as it must be, with the error; undefined if there is none.
 */
export async function rescueJobs(
  store: Store,
  partition: number,
  status: Extract<DeliveryStatus, 'pending' | 'waiting_for_retry'>,
  range: { beforeMs: number; after?: Position | undefined; maxLookedAt: number; maxRead: number },
  nowMs: number,
): Promise<{ rescued: number; next: Position | undefined; problem: string | undefined }> {
  const prefix = partitionPrefix(store, partition);
  const values = { key: byStatusKey(prefix, status), beforeMs: range.beforeMs, limit: RESCUE_CHUNK, nowMs };
  const total = { lookedAt: 0, read: 0, rescued: 0 };
  let { after } = range;
  let problem: string | undefined;
  while (total.lookedAt < range.maxLookedAt && total.read < range.maxRead) {
    const chunk = await runScript(store, 'rescue', prefix, { ...values, afterMs: after?.ms, afterId: after?.id });
    total.lookedAt += chunk.lookedAt;
    total.read += chunk.read;
    total.rescued += chunk.rescued;
    problem ??= chunk.problem || undefined;
    if (chunk.lookedAt < RESCUE_CHUNK) return { rescued: total.rescued, next: undefined, problem };
    after = chunk.last;
  }
  return { rescued: total.rescued, next: after, problem };
}
