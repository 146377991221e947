/**
 * Joins the calls of one turn of the event loop into one script: a call costs a process and Redis more than what is
 * done in it for one delivery.
 */
import { StorageUnavailable } from '@posthorn/core';
import type { Store } from '../store.ts';
import { atEndOfTurn, writeAtOnce } from './join-writes.ts';

interface Waiting<T, R> {
  one: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

interface Group<T, R> {
  waiting: Waiting<T, R>[];
  deliveries: number;
}

/** The calls of a store, in Redis Cluster of one of its partitions: those that gather, and how many scripts run. */
interface Line<T, R> {
  open: Group<T, R> | undefined;
  inFlight: number;
}

/**
 * Returns a function that gathers what it is called with in one turn of the event loop, and calls `run` with all of it,
 * in the order of the calls, and with the last one. `run` returns a result for each. It gets at most `max` items at
 * once, with at most `maxDeliveries` deliveries together; in Redis Cluster only those of one partition, which
 * `prefixOf` says. What `run` does may be repeated. After an error that one item alone may have caused, each is run
 * alone, so that it does not hold up the others. With `early`, so many items with as many deliveries do not wait for
 * the end of the turn, unless that many scripts are in flight: Redis works while this process begins the next ones.
 */
export function joinCalls<T, R>(options: {
  max: number;
  maxDeliveries?: number;
  deliveriesOf?: (one: T) => number;
  early?: { items: number; unlessInFlight: number };
  prefixOf: (one: T) => string;
  run: (store: Store, all: readonly T[], last: T) => Promise<R[]>;
}): (store: Store, one: T) => Promise<R> {
  const { max, maxDeliveries = max, deliveriesOf = () => 1, early, prefixOf, run } = options;
  // No line is removed: there are few, and a Map whose keys come and go costs garbage (core/active-list.ts).
  const linesOf = new WeakMap<Store, Map<string, Line<T, R>>>();

  function lineOf(store: Store, one: T): Line<T, R> {
    const lines = linesOf.get(store) ?? new Map<string, Line<T, R>>();
    linesOf.set(store, lines);
    const name = store.spansPartitions ? '' : prefixOf(one);
    let line = lines.get(name);
    if (!line) {
      line = { open: undefined, inFlight: 0 };
      lines.set(name, line);
    }
    return line;
  }

  /** Never rejects. */
  async function runAll(store: Store, waiting: readonly Waiting<T, R>[]): Promise<void> {
    const all = waiting.map(({ one }) => one);
    try {
      const results = await run(store, all, all.at(-1) as T);
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

  async function send(store: Store, line: Line<T, R>, { waiting }: Group<T, R>): Promise<void> {
    line.open = undefined;
    line.inFlight += 1;
    await runAll(store, waiting);
    line.inFlight -= 1;
  }

  return (store, one) =>
    new Promise((resolve, reject) => {
      const line = lineOf(store, one);
      const deliveries = deliveriesOf(one);
      if (line.open && line.open.deliveries + deliveries > maxDeliveries) void send(store, line, line.open);
      let group = line.open;
      if (!group) {
        const begun: Group<T, R> = { waiting: [], deliveries: 0 };
        group = begun;
        line.open = begun;
        atEndOfTurn(() => {
          // Another one may be open by now.
          if (line.open === begun) void send(store, line, begun);
        });
      }
      group.waiting.push({ one, resolve, reject });
      group.deliveries += deliveries;
      if (group.waiting.length === max) void send(store, line, group);
      else if (
        early &&
        Math.min(group.waiting.length, group.deliveries) >= early.items &&
        line.inFlight < early.unlessInFlight
      ) {
        const enough = group;
        writeAtOnce(() => void send(store, line, enough));
      }
    });
}
