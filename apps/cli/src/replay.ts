/** Starts bulk replays, and follows them with a progress bar. */
import { setTimeout as wait } from 'node:timers/promises';
import * as schemas from '@posthorn/operator-api';
import type { SingleBar } from 'cli-progress';
import type { Client } from './client.ts';
import { following, goesOn, mayPass, POLL_INTERVAL_MS } from './follow-work.ts';
import { SIGNALS } from './signals.ts';
import { UserError } from './user-error.ts';

/** One address, or several. */
export type Addresses = { subscription_id: string } | { subscription_ids: string[] };

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

export function isBatch(replay: schemas.StartedReplay): replay is schemas.ReplayBatch {
  return 'replays' in replay;
}

/** The path of a bulk replay or a batch. */
export function pathOf(id: string): string {
  return `/v1/${id.startsWith('rpb_') ? 'replay-batches' : 'replays'}/${encodeURIComponent(id)}`;
}

/** The body of a call that starts or rehearses a bulk replay. */
export function bodyOf(
  addresses: Addresses,
  { wait: _, follow: __, type, failedFrom, failedTo, ...rest }: ReplayOptions,
) {
  return { ...addresses, ...rest, event_type: type, failed_from: failedFrom, failed_to: failedTo };
}

/**
 * Starts a bulk replay, or a batch of them. With `wait`, shows its progress until it has made its deliveries or was
 * halted; with `follow`, until they have ended, also over restarts of the console. Returns its latest state.
 */
export async function replayAll(
  client: Client,
  addresses: Addresses,
  options: ReplayOptions,
): Promise<schemas.StartedReplay> {
  const { wait: untilMade, follow: untilEnded } = options;
  const bar = untilMade ? await progressBar() : undefined;
  let replay = await client.post(schemas.startedReplaySchema, '/v1/replays', bodyOf(addresses, options));
  if (!bar) return replay;
  const done = () => replay.replayed + replay.skipped;
  const isGoingOn = () =>
    replay.status === 'running' ||
    replay.status === 'canary' ||
    (untilEnded && replay.status !== 'halted' && replay.outcome.waiting > 0);
  let isLost = false;
  /** With `follow`, which may last for hours, stays at the state before while the console is away. */
  const look = async (before: schemas.StartedReplay) => {
    try {
      const found = await client.get(schemas.startedReplaySchema, pathOf(before.id));
      isLost = false;
      return found;
    } catch (error) {
      if (!untilEnded || !(error instanceof UserError) || !mayPass(error)) throw error;
      // The bar keeps its line.
      const newLine = process.stderr.isTTY ? '\n' : '';
      if (!isLost) process.stderr.write(`${newLine}${error.message}\nAsking again until it answers.\n`);
      isLost = true;
      return before;
    }
  };
  const endAt = (signal: NodeJS.Signals) => {
    bar.stop();
    process.stderr.write(`${goesOn(replay.id)}\n`);
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.once(signal, endAt);
  bar.start(replay.total, 0, { skipped: 0, delivered: 0, failed: 0 });
  try {
    while (isGoingOn()) {
      await wait(POLL_INTERVAL_MS);
      replay = await following(replay.id, look(replay));
      bar.setTotal(Math.max(replay.total, done()));
      const { delivered, failed } = replay.outcome;
      bar.update(done(), { skipped: replay.skipped, delivered, failed });
    }
    return replay;
  } finally {
    // Its timer would keep the process alive.
    bar.stop();
    for (const signal of SIGNALS) process.off(signal, endAt);
  }
}

/**
 * On stderr, and only on a terminal, so that stdout holds nothing but the result. Until it stops, the terminal breaks
 * no lines.
 */
async function progressBar(): Promise<SingleBar> {
  // Loaded here, since no other command needs it.
  const { Presets, SingleBar } = await import('cli-progress');
  return new SingleBar(
    {
      format: 'Replaying {bar} {value}/{total}  {skipped} skipped, {delivered} delivered, {failed} failed',
      stream: process.stderr,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
}
