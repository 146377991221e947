/** Joins the calls of one turn of the event loop into one script: a call costs a process and Redis more than what is done in it for one delivery. */
import { StorageUnavailable } from '@posthorn/core';
import type { Store } from './store.ts';

interface Waiting<T, R> {
  one: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

/**
 * Returns a function that calls `run` with all that was passed to it in one turn of the event loop, at most `max` at once, and resolves to what that returns for
 * each. `groupOf`: what one script may use, everything or one partition. What `run` does may be repeated: after an error that only one of them may have caused,
 * each is run alone.
 */
export function joinCalls<T, R>(options: {
  max: number;
  groupOf: (store: Store, one: T) => string;
  run: (store: Store, all: readonly T[]) => Promise<R[]>;
}): (store: Store, one: T) => Promise<R> {
  const { max, groupOf, run } = options;
  const groupsOf = new WeakMap<Store, Map<string, Waiting<T, R>[]>>();

  async function runAll(store: Store, waiting: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await run(
        store,
        waiting.map(({ one }) => one),
      );
      for (const [i, result] of results.entries()) waiting[i]?.resolve(result);
    } catch (error) {
      const isOneAtFault = waiting.length > 1 && !(error instanceof StorageUnavailable);
      for (const one of waiting) {
        if (isOneAtFault) await runAll(store, [one]);
        else one.reject(error);
      }
    }
  }

  return (store, one) =>
    new Promise((resolve, reject) => {
      const groups = groupsOf.get(store) ?? new Map<string, Waiting<T, R>[]>();
      groupsOf.set(store, groups);
      const name = groupOf(store, one);
      const waiting = groups.get(name) ?? [];
      waiting.push({ one, resolve, reject });
      const send = () => {
        // A full one has been sent already, and others may wait since.
        if (groups.get(name) !== waiting) return;
        groups.delete(name);
        void runAll(store, waiting);
      };
      if (waiting.length === max) send();
      else if (waiting.length === 1) {
        groups.set(name, waiting);
        setImmediate(send);
      }
    });
}

/** For deliveries: one script may use all partitions, or in Redis Cluster one. */
export function groupOfPartition(store: Store, { prefix }: { prefix: string }): string {
  return store.spansPartitions ? '' : prefix;
}
