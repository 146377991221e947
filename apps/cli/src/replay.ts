/** Follows work that takes time: a bulk replay, with a progress bar, and the first attempt of a delivery. */
import { setTimeout as wait } from 'node:timers/promises';
import * as schemas from '@posthorn/operator-api';
import { Presets, SingleBar } from 'cli-progress';
import type { Client } from './client.ts';

const POLL_INTERVAL_MS = 250;

/** Starts a bulk replay. With `wait`, shows its progress until it ends. Returns its latest state. */
export async function replayAll(
  client: Client,
  subscriptionId: string,
  { wait: untilEnd, ...period }: { from?: string | undefined; to?: string | undefined; wait: boolean },
): Promise<schemas.Replay> {
  let replay = await client.post(schemas.replaySchema, '/v1/replays', { subscription_id: subscriptionId, ...period });
  if (!untilEnd) return replay;
  // On stderr, and only on a terminal, so that stdout holds nothing but the result.
  const bar = new SingleBar(
    { format: 'Replaying {bar} {value}/{total}  {skipped} skipped', stream: process.stderr, clearOnComplete: false },
    Presets.shades_classic,
  );
  const done = () => replay.replayed + replay.skipped;
  bar.start(replay.total, 0, { skipped: 0 });
  while (replay.status === 'running') {
    await wait(POLL_INTERVAL_MS);
    replay = await client.get(schemas.replaySchema, `/v1/replays/${replay.id}`);
    bar.setTotal(Math.max(replay.total, done()));
    bar.update(done(), { skipped: replay.skipped });
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
