/**
 * What a console's directory of subscriptions costs: its memory, the load after a start, searches, and who waits for
 * them.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { addFailure, DAY_MS, deliveryId, eventRef, newAttemptRun, newEventId } from '@posthorn/core';
import { addCounts, newSubscription, openStore, type Store, saveSubscription } from '@posthorn/store';
import { type Bench, inParallel } from './harness.ts';

const CUSTOMERS = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'stark', 'wayne', 'tyrell'];

export interface DirectoryFigures {
  /** Memory of the process for each subscription. */
  bytesEach: number;
  /** The first search after a start. `turnMs` is the CPU time of the longest turn of the event loop. */
  load: { ms: number; cpuMs: number; turnMs: number };
  searches: Record<string, { p50Ms: number; p99Ms: number; cpuMs: number; turnMs: number }>;
}

/**
 * Stores `count` subscriptions, and has a process of its own keep a directory of them and search it `reads` times in
 * each way.
 */
export async function benchDirectory(bench: Bench, count: number, reads: number): Promise<DirectoryFigures> {
  const prefix = `bench-${randomUUID()}`;
  const { store, start, stop } = openStore(
    { REDIS_URL: bench.redisUrl, KEY_PREFIX: prefix, PARTITIONS: 1, RETENTION: 30 * DAY_MS },
    { onError: (error) => console.error(error.message) },
  );
  await start();
  await fill(store, count);
  const script = join(import.meta.dirname, 'processes/directory.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script], {
    env: { ...process.env, REDIS_URL: bench.redisUrl, KEY_PREFIX: prefix, COUNT: `${count}`, READS: `${reads}` },
  });
  await stop();
  await bench.redis.flushdb();
  return JSON.parse(stdout) as DirectoryFigures;
}

/** Of 100 subscriptions two are paused and one fails. */
async function fill(store: Store, count: number): Promise<void> {
  const failing: [id: string, url: string][] = [];
  await inParallel(count, 500, async (i) => {
    const made = newSubscription(fieldsOf(i), Date.now() - i);
    await saveSubscription(store, { ...made, status: i % 50 === 0 ? 'paused' : 'active', takesEvents: true });
    if (i % 100 === 1) failing.push([made.id, made.url]);
  });
  const addresses = failing.map(([id, url], i) => {
    const run = { ...newAttemptRun(), url, totalMs: 0, longBuckets: new Map<number, number>() };
    const ref = eventRef({ id: newEventId(Date.now()), environment: 'production' });
    const failure = { label: '503', sinceMs: Date.now() - i, deliveryId: deliveryId(ref, id), attemptNumber: 1 };
    for (let n = 0; n < 10; n++) addFailure(run, failure);
    return [id, run] as const;
  });
  const buckets = { attemptBuckets: new Map(), arrivalBuckets: new Map() };
  await addCounts(store, { succeeded: 0, failed: 0, ...buckets, addresses: new Map(addresses) }, Date.now());
}

/** The fields of the subscription with this number. */
export function fieldsOf(i: number): Parameters<typeof newSubscription>[0] {
  const customer = CUSTOMERS[i % CUSTOMERS.length];
  return {
    url: `https://h${i}.${customer}.example/webhooks/identity?tenant=${i}`,
    description: `${customer} branch ${i}`,
    eventTypes: 'all',
    environment: 'production',
    sealedSecret: 'x'.repeat(120),
  };
}
