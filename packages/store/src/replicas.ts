/** Waits until replicas have acknowledged what was written, so that a failover can't lose accepted events. */
import { partitionOf } from '@posthorn/core';
import { Cluster } from 'ioredis';
import type { StoredEvent } from './event-record.ts';
import { allPrefixes, replicatedKey } from './keys.ts';
import { oneAfterAnother } from './one-after-another.ts';
import type { Store } from './store.ts';

/** How long replicas may take. The connection is blocked meanwhile. */
const WAIT_MS = 1_000;

/** Too few replicas acknowledged the write; it may still have been applied. */
export class TooFewReplicas extends Error {
  override name = 'TooFewReplicas';
}

/**
 * Returns a function that resolves once `replicas` replicas have everything of an event and its deliveries that this
 * process wrote or read before the call, and rejects with `TooFewReplicas`. Calls during one WAIT share the next. In a
 * Cluster, each master that has one of these partitions needs `replicas` of its own.
 */
export function createReplicaWait(
  store: Store,
  replicas: number,
): (stored: Pick<StoredEvent, 'event' | 'subscriptionIds'>) => Promise<void> {
  const { redis } = store;
  const waitFor = async (prefix: string) => {
    // WAIT covers only the writes of its own connection. This write comes after all that this process has read, whoever wrote that.
    const replies = await redis.pipeline().set(replicatedKey(prefix), '', 'PX', WAIT_MS).wait(replicas, WAIT_MS).exec();
    const [written, waited] = replies ?? [];
    if (written?.[0]) throw written[0];
    // Refused, for example by a server that has just become a replica: it is unknown which servers have the write.
    if (waited?.[0]) throw new TooFewReplicas('WAIT was refused', { cause: waited[0] });
    const reached = Number(waited?.[1]);
    if (!(reached >= replicas)) throw new TooFewReplicas(`${reached} of ${replicas} replicas acknowledged the write`);
  };
  const waits = allPrefixes(store).map((prefix) => oneAfterAnother(() => waitFor(prefix)));
  return async ({ event, subscriptionIds }) => {
    const ids = redis instanceof Cluster ? [event.id, ...subscriptionIds] : [];
    const partitions = new Set(ids.map((id) => partitionOf(id, store.partitions)));
    // One Redis has them all.
    if (partitions.size === 0) partitions.add(0);
    await Promise.all(Array.from(partitions, (partition) => waits[partition]?.()));
  };
}
