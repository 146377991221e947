/** Maintenance duty: finds and erases the events of erasures, and moves each erasure on to its next status. */
import { type Erasure, eachInTurn, nextErasureStatus, passesNeeded, throwRejections } from '@posthorn/core';
import {
  eraseFoundEvent,
  erasureProgress,
  eventsToErase,
  findNextEvents,
  loadErasures,
  loadUncounted,
  openErasures,
  removeOpenErasure,
  scanningPartitions,
  settleErasure,
} from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Steps of all scans in one run, each over 1,000 keys; shared by the open erasures. */
const MAX_SCAN_STEPS = 20;
/** Events erased in one run, and their deliveries; shared by the open erasures. */
const MAX_EVENTS = 100;
const MAX_DELIVERIES = 1_000;

type Uncounted = Omit<Erasure, 'counts'>;

/** Whether events that an erasure has found are to be erased. */
function erases({ status, cancelledAtMs }: Uncounted): boolean {
  return (status === 'running' || status === 'waiting') && cancelledAtMs === null;
}

/**
 * Each step may be repeated after a crash and done by two processes at once: a scan moves its cursor only from where it
 * began, an event counts once, and a status changes once.
 */
export const eraseEvents = ({ store, secretBox, clock, logger }: DutyContext): Duty => {
  /** Erases events that were found in the partition, those that are due longest first. */
  const erase = async (erasure: Uncounted, partition: number, shares: number) => {
    const limit = Math.ceil(MAX_EVENTS / shares);
    let left = Math.ceil(MAX_DELIVERIES / shares);
    await eachInTurn(await eventsToErase(store, partition, erasure.id, clock.now(), limit), async (event) => {
      if (left <= 0) return;
      const now = await loadUncounted(store, erasure.id);
      if (!now || !erases(now)) left = 0;
      else left -= 1 + (await eraseFoundEvent(store, now, event, clock.now()));
    });
  };
  const find = async ({ sealedValue, ...erasure }: Uncounted, partition: number, shares: number) => {
    if (sealedValue === undefined || erasure.cancelledAtMs !== null || !scanningPartitions(store).includes(partition))
      return;
    const needed = passesNeeded(erasure, clock.now());
    const erased = { ...erasure, value: secretBox.open(sealedValue, erasure.id) };
    for (let step = 0; step < Math.ceil(MAX_SCAN_STEPS / shares); step++) {
      if (!(await findNextEvents(store, erased, partition, needed, clock.now()))) return;
    }
  };
  const settle = async (id: string) => {
    const { passes, left } = await erasureProgress(store, id);
    // Loaded after the progress, so that the counts include all work that the progress knows of.
    const [erasure] = await loadErasures(store, [id]);
    const next = erasure && nextErasureStatus(erasure, passes, left, clock.now());
    if (!next || !(await settleErasure(store, erasure, next, clock.now()))) return;
    const { field, valueHmac: value_hmac, counts } = erasure;
    const line = { erasure_id: id, status: next, field, value_hmac, events: counts.erasedEvents };
    logger.info({ ...line, operator: erasure.confirmedBy ?? erasure.operator }, 'erasure.advanced');
  };
  const work = async (id: string, partition: number, shares: number) => {
    const erasure = await loadUncounted(store, id);
    if (!erasure) return await removeOpenErasure(store, id);
    try {
      if (erases(erasure)) await erase(erasure, partition, shares);
      await find(erasure, partition, shares);
    } finally {
      // Also after an error: one that nobody confirms is cancelled even if its value can't be opened.
      if (partition === 0) await settle(id);
    }
  };
  return {
    name: 'erase_events',
    everyMs: 500,
    onlyWithWork: true,
    async run(partition) {
      const ids = await openErasures(store);
      // An erasure that fails, for example because its value was sealed with a lost key, does not stop the others.
      throwRejections(await Promise.allSettled(ids.map((id) => work(id, partition, ids.length))));
    },
  };
};
