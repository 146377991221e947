/**
 * Batches of bulk replays: checks the addresses that a caller names, and reads and serializes a batch with its
 * progress.
 */
import { AppError, batchProgress, type FieldError, type ReplayBatch, StorageUnavailable } from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import { loadBatchReplays, loadSubscriptions, type Store, type StoredSubscription } from '@posthorn/store';
import { instant } from './instant.ts';
import { notActive } from './not-active.ts';
import { serializeReplay, serializeReplayScope } from './serialize.ts';

/**
 * Loads the addresses of a batch. Throws `AppError` `invalid_fields` that names by its index each one that does not
 * exist or belongs to another environment than one before it; with `onlyActive`, also each that is not active.
 */
export async function loadAddresses(
  store: Store,
  subscriptionIds: readonly string[],
  { onlyActive }: { onlyActive: boolean },
): Promise<StoredSubscription[]> {
  const found = await loadSubscriptions(store, subscriptionIds);
  const decisive = found.findIndex((each) => each !== undefined && each.environment !== 'both');
  const fields: FieldError[] = found.flatMap((address, i) => {
    const message = problemOf(address, i, { index: decisive, environment: found[decisive]?.environment }, onlyActive);
    return message === undefined ? [] : [{ path: `subscription_ids.${i}`, message }];
  });
  if (fields.length > 0)
    throw new AppError('invalid_fields', 'Nothing was replayed, because some of the addresses cannot be replayed to.', {
      fields,
    });
  return found.filter((address) => address !== undefined);
}

function problemOf(
  address: StoredSubscription | undefined,
  i: number,
  decisive: { index: number; environment: string | undefined },
  onlyActive: boolean,
): string | undefined {
  if (!address) return 'There is no such subscription';
  if (address.environment !== 'both' && address.environment !== decisive.environment && i !== decisive.index)
    return `It is for ${address.environment}, subscription_ids.${decisive.index} for ${decisive.environment}: replay them separately`;
  if (onlyActive && address.status !== 'active') return notActive('The address');
  return undefined;
}

/** Reads the replays of a batch and serializes both. */
export async function serializeBatch(store: Store, batch: ReplayBatch): Promise<api.ReplayBatch> {
  return serialize(batch, await loadBatchReplays(store, batch));
}

/** The same for a batch that was just started, which succeeds also if Redis is unavailable: a 503 would be repeated. */
export async function serializeStartedBatch(store: Store, batch: ReplayBatch): Promise<api.ReplayBatch> {
  const loaded = await loadBatchReplays(store, batch).catch((error: unknown) => {
    if (error instanceof StorageUnavailable) return { replays: [], unstarted: batch.members.length };
    throw error;
  });
  return serialize(batch, loaded);
}

function serialize(
  batch: ReplayBatch,
  { replays, unstarted }: Awaited<ReturnType<typeof loadBatchReplays>>,
): api.ReplayBatch {
  const { finishedAtMs, ...progress } = batchProgress(replays, unstarted);
  return {
    id: batch.id,
    addresses: batch.members.length,
    ...serializeReplayScope(batch),
    ...progress,
    operator: batch.operator,
    created_at: instant(batch.createdAtMs),
    finished_at: instant(finishedAtMs),
    replays: replays.map(serializeReplay),
  };
}
