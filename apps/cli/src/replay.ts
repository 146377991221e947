/** Follows work that takes time: a bulk replay, with a progress bar, and the first attempt of a delivery. */
import { setTimeout as wait } from 'node:timers/promises';
import * as schemas from '@posthorn/operator-api';
import { Presets, SingleBar } from 'cli-progress';
import type { Client } from './client.ts';

const POLL_INTERVAL_MS = 250;

/** What a bulk replay covers, in the words of the command line. */
export interface ReplayOptions {
  from?: string | undefined;
  to?: string | undefined;
  type?: string | undefined;
  error?: string | undefined;
  failedFrom?: string | undefined;
  failedTo?: string | undefined;
  canary?: true | undefined;
  /** False: returns at once. */
  wait: boolean;
  /** Waits until no delivery of it waits any more, retries included. */
  follow?: true | undefined;
}

/**
 * Starts a bulk replay. With `wait`, shows its progress until it has made its deliveries or was halted; with `follow`, until they have
 * ended. Returns its latest state.
 */
export async function replayAll(
  client: Client,
  subscriptionId: string,
  { wait: untilMade, follow: untilEnded, type, failedFrom, failedTo, ...rest }: ReplayOptions,
): Promise<schemas.Replay> {
  const scope = { ...rest, event_type: type, failed_from: failedFrom, failed_to: failedTo };
  let replay = await client.post(schemas.replaySchema, '/v1/replays', { subscription_id: subscriptionId, ...scope });
  if (!untilMade) return replay;
  // On stderr, and only on a terminal, so that stdout holds nothing but the result.
  const bar = new SingleBar(
    {
      format: 'Replaying {bar} {value}/{total}  {skipped} skipped, {delivered} delivered, {failed} failed',
      stream: process.stderr,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
  const done = () => replay.replayed + replay.skipped;
  const isGoingOn = () =>
    replay.status === 'running' ||
    replay.status === 'canary' ||
    (untilEnded && replay.status !== 'halted' && replay.outcome.waiting > 0);
  bar.start(replay.total, 0, { skipped: 0, delivered: 0, failed: 0 });
  while (isGoingOn()) {
    await wait(POLL_INTERVAL_MS);
    replay = await client.get(schemas.replaySchema, `/v1/replays/${replay.id}`);
    bar.setTotal(Math.max(replay.total, done()));
    const { delivered, failed } = replay.outcome;
    bar.update(done(), { skipped: replay.skipped, delivered, failed });
  }
  bar.stop();
  return replay;
}

/** Waits at most `timeoutMs` until a delivery has had an attempt or is held. Returns its latest state. */
export async function awaitFirstAttempt(
  client: Client,
  id: string,
  timeoutMs: number,
): Promise<schemas.DeliveryWithAttempts> {
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const delivery = await client.get(schemas.deliveryWithAttemptsSchema, `/v1/deliveries/${id}`);
    if (delivery.status !== 'pending' || performance.now() > endsAtMs) return delivery;
    await wait(POLL_INTERVAL_MS);
  }
}
