/** For tests of replays and notices: failed deliveries and bulk replays. */
import type { Attempt, ReplayFilter, Verdict } from '@posthorn/core';
import { type CreatedDelivery, listDeliveries, loadReplays, startReplay, stepReplay } from '../index.ts';
import { recordVerdict } from '../test-attempts.ts';
import { deliver, loadOne, store, time } from '../test-deliveries.ts';

export const anna = 'anna';

/** Stores an event and its delivery to a subscription; resolves with the delivery's id. */
export async function deliverTo(subscriptionId: string): Promise<string> {
  const [made] = await deliver([subscriptionId]);
  return (made as CreatedDelivery).deliveryId;
}
/** Records the last attempt of a delivery. */
export async function end(id: string, verdict: Verdict = { kind: 'failed', reason: 'timeout' }): Promise<void> {
  const ok = verdict.kind === 'succeeded';
  const { attemptCount } = await loadOne(id);
  const made: Attempt = {
    number: attemptCount + 1,
    startedAtMs: time.nowMs,
    durationMs: 0,
    statusCode: ok ? 200 : null,
    error: ok ? null : 'timeout',
  };
  const limits = { pauseAfter: 1_000, maxAttempts: 6 };
  await recordVerdict(store, { delivery: await loadOne(id), attempt: made, verdict, limits });
}
/** A delivery that has failed; resolves with its id. */
export async function failed(subscriptionId: string): Promise<string> {
  const id = await deliverTo(subscriptionId);
  await end(id);
  return id;
}
export const noFilter: ReplayFilter = { eventType: null, error: null, failedFromMs: null, failedToMs: null };
export const ofAll = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, filter: noFilter, canary: false };
/** Starts a bulk replay; resolves with its id. */
export async function start(
  subscriptionId: string,
  range: Partial<Parameters<typeof startReplay>[1]> = {},
): Promise<string> {
  const replay = await startReplay(store, { subscriptionId, ...ofAll, ...range }, time.nowMs, anna);
  if (typeof replay === 'string') throw new Error(replay);
  return replay.id;
}
/** Steps a bulk replay until it ends; resolves with its record. */
export async function run(replayId: string) {
  while ((await stepReplay(store, replayId, time.nowMs)) === 'more');
  return (await loadReplays(store, [replayId]))[0]!;
}
export const replaysIn = async (subscriptionId: string) =>
  (await listDeliveries(store, { subscriptionId }, { limit: 250 })).items.filter(({ replayOf }) => replayOf !== null);
