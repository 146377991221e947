/** What a worker that starts learns of the addresses that are failing. */
import { withTimeLimit } from '@posthorn/core';
import { type Logger, onlyAtStart, type Service } from '@posthorn/runtime';
import { listFailing, type Store } from '@posthorn/store';
import type { Slots } from './slots.ts';

/** Half of those that `Slots` remembers; Redis lists them in a few milliseconds. */
const MAX_FAILING = 5_000;
/** The start does not wait for longer, for example for one master of a Cluster. */
const MAX_WAIT_MS = 1_000;

/**
 * To be started before any attempt. Addresses that were failing before, the newest 5,000, count as slow at first.
 * Otherwise a worker knows no address when it starts, so hundreds that hang may take the slots of all unknown ones, for
 * one time limit after the other. If Redis does not list them, the worker starts without.
 */
export function createFailingBefore(parts: { store: Store; slots: Slots; logger: Logger }): Service {
  const { store, slots, logger } = parts;
  const note = async () => {
    const failing = await withTimeLimit(MAX_WAIT_MS, listFailing(store, MAX_FAILING));
    slots.presumeSlow(failing.map(({ subscriptionId }) => subscriptionId));
  };
  return onlyAtStart('failing addresses', () =>
    note().catch((err: unknown) => logger.warn({ err }, 'failing_addresses.not_read')),
  );
}
