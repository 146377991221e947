/**
 * The drill of docs/backups.md during a chaos run: a backup is taken and restored, and publishers repeat what they
 * published since.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Publisher } from '@posthorn/client';
import { eventually } from '@posthorn/testing';
import type { Backup, Cast } from './cast.ts';
import type { Published } from './check.ts';
import type { Receivers } from './receivers.ts';

/** What the judge has to know about a restore; the rest are figures to print. */
export interface Restored extends Pick<Backup, 'begunAtMs' | 'takenAtMs'> {
  /** Redis was restored and no app had started. */
  restoredAtMs: number;
  'time between backup and restore, s': number;
  'published again': number;
  'of them unknown to the backup': number;
}

/**
 * Takes a backup after a third of the time, restores it after two, and goes on: there is no moment without load, and no
 * third without disturbances.
 */
export async function drill(
  cast: Cast,
  publishers: Publisher[],
  published: Map<string, Published>,
  { arrivals }: Pick<Receivers, 'arrivals'>,
  breakFor: (ms: number) => Promise<void>,
  { breakMs, say }: { breakMs: number; say: (line: string) => void },
): Promise<Restored> {
  const backUp = async () => {
    await wait(breakMs / 3);
    const backup = await cast.backUp();
    return { backup, known: new Set(published.keys()) };
  };
  const [{ backup, known }] = await Promise.all([backUp(), breakFor((breakMs / 3) * 2)]);
  // The backup may have taken until now. Something has to be lost by the restore.
  await eventually('an event since the backup to be delivered', () =>
    arrivals.some(({ eventId, taken }) => taken && !known.has(eventId) && published.get(eventId)?.acceptedAtMs),
  );
  say('The backup is taken. Everything is killed, and starts on the backup ...');
  const restoredAtMs = await cast.restore(backup);
  const repeating = publishAgain(publishers, published, backup);
  const [figures] = await Promise.all([repeating, breakFor(breakMs / 3)]);
  const { begunAtMs, takenAtMs } = backup;
  const spanS = Math.round((restoredAtMs - begunAtMs) / 1000);
  return { begunAtMs, takenAtMs, restoredAtMs, 'time between backup and restore, s': spanS, ...figures };
}

/**
 * Repeats every event that was confirmed since the backup was begun. Those that are not confirmed yet are being
 * repeated anyway.
 */
async function publishAgain(publishers: Publisher[], published: Map<string, Published>, { begunAtMs }: Backup) {
  const events = [...published.values()].filter(({ acceptedAtMs }) => Number(acceptedAtMs) >= begunAtMs);
  const repeating = publishers.map(async (publisher, own) => {
    const accepted = [];
    for (const { event } of events.filter((_, i) => i % publishers.length === own)) {
      await publisher.ready();
      accepted.push(publisher.publish(event));
    }
    return await Promise.all(accepted);
  });
  const accepted = (await Promise.all(repeating)).flat();
  const unknown = accepted.filter(({ duplicate }) => !duplicate).length;
  return { 'published again': events.length, 'of them unknown to the backup': unknown };
}
