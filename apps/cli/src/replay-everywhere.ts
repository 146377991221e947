/** Replays what failed at all active addresses: finds those with such deliveries, and starts batches of them. */
import { chunksOf, MAX_BATCH_ADDRESSES } from '@posthorn/core';
import * as schemas from '@posthorn/operator-api';
import type { Client } from './client.ts';
import { bodyOf, type ReplayOptions } from './replay.ts';
import { UserError } from './user-error.ts';

/** What a replay at all active addresses would do. */
export interface Everywhere {
  /** The addresses to which deliveries would go, in batches. */
  batches: string[][];
  count: number;
  skipped: number;
  /** False: there may be more than `count`. */
  isComplete: boolean;
}

/** Rehearses the replay at all active addresses. Changes nothing. */
export async function rehearseEverywhere(client: Client, options: ReplayOptions): Promise<Everywhere> {
  const { subscriptionSchema } = schemas;
  const query = { status: 'active' };
  const active = await client.list(subscriptionSchema, '/v1/subscriptions', query, Number.POSITIVE_INFINITY);
  const everywhere: Everywhere = { batches: [], count: 0, skipped: 0, isComplete: true };
  // A batch has addresses of one environment.
  for (const group of Map.groupBy(active, ({ environment }) => environment).values()) {
    const failed: string[] = [];
    for (const some of chunksOf(group, MAX_BATCH_ADDRESSES)) {
      const body = bodyOf({ subscription_ids: some.map(({ id }) => id) }, options);
      const rehearsal = await client.post(schemas.rehearsalSchema, '/v1/replays/rehearse', body);
      everywhere.count += rehearsal.count;
      everywhere.skipped += rehearsal.skipped;
      everywhere.isComplete &&= rehearsal.is_complete;
      // Where it has not looked at all failed deliveries, there may be some.
      const found = rehearsal.addresses.filter(({ count, is_complete: isComplete }) => count > 0 || !isComplete);
      failed.push(...found.map(({ subscription_id: id }) => id));
    }
    everywhere.batches.push(...chunksOf(failed, MAX_BATCH_ADDRESSES));
  }
  return everywhere;
}

/**
 * Starts the batches one after the other. Throws `UserError` at the end if some were refused: one of their addresses is
 * not active any more. Any other error ends it at once; the batches before it go on.
 */
export async function* replayEverywhere(
  client: Client,
  { batches }: Everywhere,
  options: ReplayOptions,
): AsyncGenerator<schemas.ReplayBatch[]> {
  const refusals: string[] = [];
  for (const ids of batches) {
    const body = bodyOf({ subscription_ids: ids }, options);
    const started = await client.post(schemas.replayBatchSchema, '/v1/replays', body).catch((error: unknown) => {
      if (!(error instanceof UserError) || error.status !== 422) throw error;
      refusals.push(error.message);
    });
    if (started) yield [started];
  }
  if (refusals.length === 0) return;
  const refused = `${refusals.length} of ${batches.length} batches ${refusals.length === 1 ? 'was' : 'were'} refused`;
  throw new UserError(`${refused}. Repeat the command: it replays what is left. The console said: ${refusals[0]}`);
}
