/** Replays one delivery, or all failed ones of an address while a bar shows how far it is. */
import { setTimeout as wait } from 'node:timers/promises';
import { Presets, SingleBar } from 'cli-progress';
import type { Answer, Client } from './client.ts';

const LOOK_EVERY_MS = 250;

export interface BulkOptions {
  from?: string | undefined;
  to?: string | undefined;
  wait: boolean;
}

/** Starts a bulk replay and, with `wait`, follows it to its end; answers it as it then is. */
export async function replayAll(client: Client, subscriptionId: string, options: BulkOptions): Promise<Answer> {
  const { from, to } = options;
  let replay = await client.post('/v1/replays', { subscription_id: subscriptionId, from, to });
  if (!options.wait) return replay;
  // Drawn on stderr and only for people: what a program reads on stdout stays whole.
  const bar = new SingleBar(
    { format: 'Replaying {bar} {value}/{total}  {skipped} skipped', stream: process.stderr, clearOnComplete: false },
    Presets.shades_classic,
  );
  const done = () => replay.replayed + replay.skipped;
  bar.start(replay.total, 0, { skipped: 0 });
  while (replay.status === 'running') {
    await wait(LOOK_EVERY_MS);
    replay = await client.get(`/v1/replays/${replay.id}`);
    bar.setTotal(Math.max(replay.total, done()));
    bar.update(done(), { skipped: replay.skipped });
  }
  bar.stop();
  return replay;
}

/** Waits until a delivery has had an attempt or is held, at most `limitMs`; answers it as it then is. */
export async function afterFirstAttempt(client: Client, deliveryId: string, limitMs: number): Promise<Answer> {
  const endsAt = performance.now() + limitMs;
  for (;;) {
    const delivery = await client.get(`/v1/deliveries/${deliveryId}`);
    if (delivery.status !== 'pending' || performance.now() > endsAt) return delivery;
    await wait(LOOK_EVERY_MS);
  }
}
