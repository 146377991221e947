/** Notices that have not been given yet: one stream a partition. A notice is written with its change, and removed by the notifier. */
import type { Notice, NoticeType } from '@posthorn/core';
import { MAX_NOTICES } from './constants.ts';
import { noticesKey, partitionPrefix } from './keys.ts';
import type { Store } from './store.ts';

/** A notice with its place in the stream. */
export interface WaitingNotice extends Notice {
  entryId: string;
}

/** The oldest notices of a partition: all, those after one of them, or those up to one of them. */
export async function waitingNotices(
  store: Store,
  partition: number,
  limit: number,
  range: { after?: string | undefined; upTo?: string | undefined },
): Promise<WaitingNotice[]> {
  const start = range.after === undefined ? '-' : `(${range.after}`;
  const entries = await store.redis.xrange(
    noticesKey(partitionPrefix(store, partition)),
    start,
    range.upTo ?? '+',
    'COUNT',
    limit,
  );
  return entries.map(([entryId, flat]) => {
    const fields = new Map(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]));
    return {
      entryId,
      id: `ntc_${partition}-${entryId}`,
      type: fields.get('k') as NoticeType,
      atMs: Number(fields.get('at')),
      subscriptionId: fields.get('s') ?? '',
      deliveryId: fields.get('d') ?? null,
      replayId: fields.get('r') ?? null,
      reason: fields.get('w') || null,
      worker: fields.get('p') ?? null,
      sinceMs: fields.has('b') ? Number(fields.get('b')) : null,
    };
  });
}

/** Leaves a notice of an outage of a worker in the first partition. */
export async function addOutageNotice(
  store: Store,
  notice: { type: 'outage.started' | 'outage.ended'; atMs: number; reason: string; worker: string; sinceMs: number },
): Promise<void> {
  const { type, atMs, reason, worker, sinceMs } = notice;
  const fields = ['k', type, 'at', atMs, 'w', reason, 'p', worker, 'b', sinceMs];
  await store.redis.xadd(noticesKey(partitionPrefix(store, 0)), 'MAXLEN', '~', MAX_NOTICES, '*', ...fields);
}

/** Removes notices that have been given. */
export async function removeNotices(store: Store, partition: number, entryIds: readonly string[]): Promise<void> {
  if (entryIds.length > 0) await store.redis.xdel(noticesKey(partitionPrefix(store, partition)), ...entryIds);
}
