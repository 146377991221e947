/** Waits until replicas have what was written, so that a failover can't lose what was accepted. */
import { Cluster } from 'ioredis';
import { partitionPrefix, replicatedKey } from './keys.ts';
import { allPartitions, type Store } from './store.ts';

/** How long replicas may take; the connection takes nothing else meanwhile. */
const WAIT_MS = 1_000;

/** Too few replicas acknowledged the write; it may still have been applied. */
export class TooFewReplicas extends Error {
  override name = 'TooFewReplicas';
}

/**
 * A function that resolves once `replicas` replicas have everything written before it was called, by this process or that it has read;
 * rejects with `TooFewReplicas`. All that call while one WAIT is under way share the next. In a Cluster that is so for every
 * master that has a partition, with `replicas` of its own.
 */
export function createReplicaWait(store: Store, replicas: number): () => Promise<void> {
  const { redis } = store;
  const partitions = redis instanceof Cluster ? allPartitions(store) : [0];
  const waitFor = async (partition: number) => {
    // WAIT is about the writes of its own connection. This one comes after all that was read here, whoever wrote it.
    const answers = await redis
      .pipeline()
      .set(replicatedKey(partitionPrefix(store, partition)), '', 'PX', WAIT_MS)
      .wait(replicas, WAIT_MS)
      .exec();
    const [written, waited] = answers!;
    if (written![0]) throw written![0];
    // Refused, as by a server that has just become a replica itself: nobody knows who has it.
    if (waited![0]) throw new TooFewReplicas('WAIT was refused', { cause: waited![0] });
    const reached = Number(waited![1]);
    if (!(reached >= replicas)) throw new TooFewReplicas(`${reached} of ${replicas} replicas have it`);
  };
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= underWay
      .catch(() => undefined)
      .then(async () => {
        next = undefined;
        underWay = Promise.all(partitions.map(waitFor));
        await underWay;
      });
    return next;
  };
}
