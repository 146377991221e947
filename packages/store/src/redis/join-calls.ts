/**
 * Joins the calls of one turn of the event loop into one script: a call costs a process and Redis more than what is
 * done in it for one delivery.
 */
import { StorageUnavailable } from '@posthorn/core';
import type { Store } from '../store.ts';
import { atEndOfTurn } from './join-writes.ts';

interface Waiting<T, R> {
  one: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

interface Group<T, R> {
  waiting: Waiting<T, R>[];
  deliveries: number;
}

/**
 * Returns a function that gathers what it is called with in one turn of the event loop, and calls `run` with all of it,
 * in the order of the calls. `run` returns a result for each. It gets at most `max` items at once, with at most
 * `maxDeliveries` deliveries together; in Redis Cluster only those of one partition, which `prefixOf` says. What `run`
 * does may be repeated. After an error that one item alone may have caused, each is run alone, so that it does not hold
 * up the others.
 */
export function joinCalls<T, R>(options: {
  max: number;
  maxDeliveries?: number;
  deliveriesOf?: (one: T) => number;
  prefixOf: (one: T) => string;
  run: (store: Store, all: readonly T[]) => Promise<R[]>;
}): (store: Store, one: T) => Promise<R> {
  const { max, maxDeliveries = max, deliveriesOf = () => 1, prefixOf, run } = options;
  const groupsOf = new WeakMap<Store, Map<string, Group<T, R> | undefined>>();

  async function runAll(store: Store, waiting: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await run(
        store,
        waiting.map(({ one }) => one),
      );
      for (const [i, { resolve, reject }] of waiting.entries()) {
        const result = results[i];
        if (result === undefined) reject(new Error(`A script returned ${results.length} results of ${waiting.length}`));
        else resolve(result);
      }
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
      const groups = groupsOf.get(store) ?? new Map<string, Group<T, R> | undefined>();
      groupsOf.set(store, groups);
      const name = store.spansPartitions ? '' : prefixOf(one);
      const send = (group: Group<T, R>) => {
        // A full one has been sent already, and others may wait since.
        if (groups.get(name) !== group) return;
        // Not deleted: a Map whose keys come and go costs garbage (core/active-list.ts), and there are few names.
        groups.set(name, undefined);
        void runAll(store, group.waiting);
      };
      const deliveries = deliveriesOf(one);
      const open = groups.get(name);
      if (open && open.deliveries + deliveries > maxDeliveries) send(open);
      let group = groups.get(name);
      if (!group) {
        const begun: Group<T, R> = { waiting: [], deliveries: 0 };
        group = begun;
        groups.set(name, begun);
        atEndOfTurn(() => send(begun));
      }
      group.waiting.push({ one, resolve, reject });
      group.deliveries += deliveries;
      if (group.waiting.length === max) send(group);
    });
}
