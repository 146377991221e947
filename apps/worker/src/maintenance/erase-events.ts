/** Maintenance duty: finds and erases the events of erasures, and moves each erasure on to its next status. */
import {
  chunksOf,
  type Erasure,
  type EventRef,
  eachInTurn,
  nextErasureStatus,
  passesNeeded,
  throwRejections,
} from '@posthorn/core';
import {
  eraseFoundEvent,
  erasureProgress,
  eventsToErase,
  findNextEvents,
  hasPassToDo,
  loadErasures,
  loadUncounted,
  openErasures,
  removeOpenErasure,
  settleErasure,
} from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Steps of all scans in one run, each over 1,000 keys; shared by the erasures that have a pass to do. */
const MAX_SCAN_STEPS = 20;
/** Noting this many events takes as long as a step that finds none. The others wait for it: a run ends with the last one. */
const FOUND_FOR_A_STEP = 100;
/** Events erased in one run, and their deliveries; shared by the erasures that have events to erase. */
const MAX_EVENTS = 100;
const MAX_DELIVERIES = 1_000;
/** Events erased at once. One by one, most of the time would pass between commands. */
const EVENTS_AT_ONCE = 5;

type Uncounted = Omit<Erasure, 'counts'>;

interface Work {
  erasure: Uncounted;
  events: EventRef[];
  isToFind: boolean;
}

/** Whether events that an erasure has found are to be erased. */
function erases({ status, cancelledAtMs }: Uncounted): boolean {
  return (status === 'running' || status === 'waiting') && cancelledAtMs === null;
}

/**
 * Each step may be repeated after a crash and done by two processes at once: a scan moves its cursor only from where it
 * began, an event counts once, and a status changes once.
 */
export const eraseEvents = ({ store, secretBox, clock, logger }: DutyContext): Duty => {
  /** What an erasure has to do in a partition: the events to erase, those that are due longest first, and whether to find more. */
  const lookAt = async (id: string, partition: number): Promise<Work | undefined> => {
    const erasure = await loadUncounted(store, id);
    if (!erasure) {
      await removeOpenErasure(store, id);
      return undefined;
    }
    const events = erases(erasure) ? await eventsToErase(store, partition, id, clock.now(), MAX_EVENTS) : [];
    const finds = erasure.sealedValue !== undefined && erasure.cancelledAtMs === null;
    const isToFind = finds && (await hasPassToDo(store, id, partition, passesNeeded(erasure, clock.now())));
    return { erasure, events, isToFind };
  };
  const erase = async ({ erasure: { id }, events }: Work, shares: number) => {
    let left = Math.ceil(MAX_DELIVERIES / shares);
    const eraseSome = async (some: EventRef[]) => {
      const now = left > 0 ? await loadUncounted(store, id) : undefined;
      if (!now || !erases(now)) {
        left = 0;
        return;
      }
      const erased = await Promise.allSettled(some.map((event) => eraseFoundEvent(store, now, event, clock.now())));
      for (const one of erased) if (one.status === 'fulfilled') left -= 1 + one.value;
      throwRejections(erased);
    };
    await eachInTurn(chunksOf(events.slice(0, Math.ceil(MAX_EVENTS / shares)), EVENTS_AT_ONCE), eraseSome);
  };
  const find = async ({ erasure: { sealedValue = '', ...erasure } }: Work, partition: number, shares: number) => {
    const needed = passesNeeded(erasure, clock.now());
    const erased = { ...erasure, value: secretBox.open(sealedValue, erasure.id) };
    for (let left = MAX_SCAN_STEPS / shares; left > 0; ) {
      const { found, hasMore } = await findNextEvents(store, erased, partition, needed, clock.now());
      if (!hasMore) return;
      left -= 1 + found / FOUND_FOR_A_STEP;
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
  const carryOut = async (work: Work, partition: number, shares: { erasing: number; finding: number }) => {
    try {
      await erase(work, shares.erasing);
      if (work.isToFind) await find(work, partition, shares.finding);
    } finally {
      // Also after an error: one that nobody confirms is cancelled even if its value can't be opened.
      if (partition === 0) await settle(work.erasure.id);
    }
  };
  return {
    name: 'erase_events',
    everyMs: 500,
    onlyWithWork: true,
    async run(partition) {
      const ids = await openErasures(store);
      // An erasure that fails, for example because its value was sealed with a lost key, does not stop the others.
      const looks = await Promise.allSettled(ids.map((id) => lookAt(id, partition)));
      const works = looks.flatMap((look) => (look.status === 'fulfilled' && look.value ? [look.value] : []));
      // What waits, for a confirmation or for deliveries that are held, takes nothing away from the others.
      const shares = {
        erasing: works.filter(({ events }) => events.length > 0).length,
        finding: works.filter(({ isToFind }) => isToFind).length,
      };
      const done = await Promise.allSettled(works.map((work) => carryOut(work, partition, shares)));
      throwRejections([...looks, ...done]);
    },
  };
};
