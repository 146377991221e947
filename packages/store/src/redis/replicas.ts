/** Waits until replicas have acknowledged what was written, so that a failover can't lose accepted events. */
import { partitionOf } from '@posthorn/core';
import { Cluster, Redis } from 'ioredis';
import type { StoredEvent } from '../events/event-record.ts';
import { allPrefixes, replicatedKey } from '../keys.ts';
import type { Store } from '../store.ts';
import { onDisconnect } from './connect-redis.ts';
import { oneAfterAnother } from './one-after-another.ts';

/** How long replicas may take. The connection is blocked meanwhile. */
const WAIT_MS = 1_000;
/**
 * For a master that lacks replicas. Where `INFO` does not list them, one that is near and back is found with it. (An
 * idle Redis looks only ten times a second whether a time is over.)
 */
const SHORT_WAIT_MS = 10;
/** A master has it until it, or a replica that takes over, begins a history of its own. */
const REPLICATION_ID = /^master_replid:(\w+)/m;
/**
 * A replica that has acknowledged something in the last two seconds. Replicas do so every second. Valkey has further
 * fields after these.
 */
const LIVE_REPLICA = /^slave\d+:.*\bstate=online\b.*\blag=[0-2]\b/gm;

/** Too few replicas acknowledged the write; it may still have been applied. */
export class TooFewReplicas extends Error {
  override name = 'TooFewReplicas';
}

export interface ReplicaWait {
  /**
   * To be called before an event is written. The function that it returns resolves once enough replicas have everything
   * of the event and its deliveries that this process wrote or read until that call. It rejects with `TooFewReplicas`
   * otherwise, or if another master may have taken over since `begin`: then the replicas that acknowledge are those of
   * the new one, which may not have the event.
   */
  begin(): (stored: Pick<StoredEvent, 'event' | 'subscriptionIds'>) => Promise<void>;
}

/** The master of a partition, as far as this process knows. */
interface Master {
  replicationId: string | undefined;
  /** How often another one has taken over, or may have. */
  changes: number;
  /** It has too few live replicas, so a long WAIT would only block the connection. */
  lacksReplicas: boolean;
}

/**
 * Returns the wait for `replicas` replicas. Calls during one WAIT share the next. In a Cluster, each master that has
 * one of an event's partitions needs `replicas` of its own.
 */
export function createReplicaWait(store: Store, replicas: number): ReplicaWait {
  const { redis } = store;
  const masters = allPrefixes(store).map((prefix) => {
    const master: Master = { replicationId: undefined, changes: 0, lacksReplicas: false };
    return { master, wait: oneAfterAnother(() => waitFor(redis, prefix, master, replicas)) };
  });
  // A new connection may lead to another master. In a Cluster, only the replication id says so: a master that is away
  // has connections that fail again and again, and must not concern the partitions of the others.
  if (redis instanceof Redis) {
    onDisconnect(redis, () => {
      for (const { master } of masters) master.changes += 1;
    });
  }
  return {
    begin() {
      const before = masters.map(({ master }) => master.changes);
      return async ({ event, subscriptionIds }) => {
        const ids = redis instanceof Cluster ? [event.id, ...subscriptionIds] : [];
        const partitions = new Set(ids.map((id) => partitionOf(id, store.partitions)));
        // One Redis has them all.
        if (partitions.size === 0) partitions.add(0);
        const acknowledged = masters.map(async ({ master, wait }, partition) => {
          if (!partitions.has(partition)) return;
          await wait();
          if (master.changes !== before[partition]) throw new TooFewReplicas('Another master may have taken over');
        });
        await Promise.all(acknowledged);
      };
    },
  };
}

async function waitFor(redis: Store['redis'], prefix: string, master: Master, replicas: number): Promise<void> {
  // WAIT covers only the writes of its own connection. This write comes after all that this process has read, whoever
  // wrote that.
  const waitMs = master.lacksReplicas ? SHORT_WAIT_MS : WAIT_MS;
  const commands = redis.pipeline().set(replicatedKey(prefix), '', 'PX', WAIT_MS).wait(replicas, waitMs);
  const [written, waited, info] = (await commands.info('replication').exec()) ?? [];
  if (written?.[0]) throw written[0];
  // Where INFO is refused, there is none.
  const [, replicationId] = REPLICATION_ID.exec(String(info?.[1])) ?? [];
  if (master.replicationId !== undefined && replicationId !== master.replicationId) master.changes += 1;
  master.replicationId = replicationId;
  // Refused, for example by a server that has just become a replica: it is unknown which servers have the write.
  if (waited?.[0]) throw new TooFewReplicas('WAIT was refused', { cause: waited[0] });
  const reached = Number(waited?.[1]);
  const mayReach = replicationId === undefined || liveReplicas(String(info?.[1])) >= replicas;
  master.lacksReplicas = !(reached >= replicas || mayReach);
  if (!(reached >= replicas)) throw new TooFewReplicas(`${reached} of ${replicas} replicas acknowledged the write`);
}

/** How many replicas are online and acknowledge, by the `INFO` of their master. */
export function liveReplicas(info: string): number {
  return info.match(LIVE_REPLICA)?.length ?? 0;
}
