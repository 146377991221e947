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
import { createSeldom } from '@posthorn/runtime';
import {
  eraseAgain,
  eraseFoundEvent,
  erasureProgress,
  eventsToErase,
  type Finder,
  findByEventId,
  findNextEvents,
  loadErasures,
  loadUncounted,
  openErasures,
  type Place,
  readPlace,
  removeOpenErasure,
  retryUnreadable,
  settleErasure,
  UnreadableRecord,
  unreadableToRetry,
} from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Steps of all scans in one run, each over 1,000 keys; shared by the passes that are under way. */
const MAX_SCAN_STEPS = 20;
/** Events noted in one run, which takes about as long as those steps; shared by the erasures that have a pass to do. */
const MAX_FOUND = 2_000;
/** Events erased in one run, and their deliveries; shared by the erasures that have events to erase. */
const MAX_EVENTS = 100;
const MAX_DELIVERIES = 1_000;
/** Events erased at once. One by one, most of the time would pass between commands. */
const EVENTS_AT_ONCE = 5;
/** Runs fail at most once in this time because of events that can't be read, and as seldom because of deliveries. */
const REPORT_UNREADABLE_EVERY_MS = 60_000;

type Uncounted = Omit<Erasure, 'counts' | 'unreadable'>;

interface Work {
  erasure: Uncounted;
  events: EventRef[];
  /** Where its pass goes on; undefined if it has none to do here. */
  place: Place | undefined;
  /** Events that it could not read, and is to try again. */
  unreadable: EventRef[];
}

/** Whether events that an erasure has found are to be erased. */
function erases({ status, cancelledAtMs }: Uncounted): boolean {
  return (status === 'running' || status === 'waiting') && cancelledAtMs === null;
}

/** Whether work failed only because records can't be read. */
function isUnreadable(error: unknown): boolean {
  return error instanceof AggregateError ? error.errors.every(isUnreadable) : error instanceof UnreadableRecord;
}

/**
 * Returns a function that leaves out failures because of records that can't be read, unless none was reported lately.
 * Some of thousands are tried again in each run, and a duty that always fails is taken for one that does nothing.
 */
function createUnreadableFilter() {
  const mayReport = createSeldom({ everyMs: REPORT_UNREADABLE_EVERY_MS });
  return <T extends PromiseSettledResult<unknown>>(results: readonly T[]): readonly T[] => {
    const others = results.filter((one) => one.status === 'fulfilled' || !isUnreadable(one.reason));
    return others.length < results.length && mayReport() ? results : others;
  };
}

/**
 * Each step may be repeated after a crash and done by two processes at once: a scan moves its cursor only from where it
 * began, an event counts once, and a status changes once.
 */
export const eraseEvents = ({ store, secretBox, clock, logger }: DutyContext): Duty => {
  // Two, so that an event that can't be read does not hide a delivery.
  const [withoutReportedEvents, withoutReportedDeliveries] = [createUnreadableFilter(), createUnreadableFilter()];
  /** When this process first saw the time of an erasure that was ahead of its own clock. */
  const firstSeenMs = new Map<string, number>();
  /**
   * The erasure with times that are not ahead. The clock of the console that has confirmed or cancelled it may be: it
   * would then stay as it is for as long.
   */
  const notAhead = <E extends Uncounted>(erasure: E): E => {
    const nowMs = clock.now();
    const limit = (atMs: number | null) => {
      if (atMs === null || atMs <= nowMs) return atMs;
      const key = `${erasure.id} ${atMs}`;
      const firstMs = firstSeenMs.get(key) ?? nowMs;
      firstSeenMs.set(key, firstMs);
      return firstMs;
    };
    const { confirmedAtMs, cancelledAtMs } = erasure;
    return { ...erasure, confirmedAtMs: limit(confirmedAtMs), cancelledAtMs: limit(cancelledAtMs) };
  };
  /**
   * What an erasure has to do in a partition: the events to erase, those that are due longest first, and where to find
   * more.
   */
  const lookAt = async (id: string, partition: number): Promise<Work | undefined> => {
    // Before the erasure: the end of that removes the place, and its passes would seem to be still to do.
    const place = await readPlace(store, id, partition);
    const erasure = await loadUncounted(store, id);
    if (!erasure) {
      await removeOpenErasure(store, id);
      return undefined;
    }
    const events = erases(erasure) ? await eventsToErase(store, partition, id, clock.now(), MAX_EVENTS) : [];
    const finds = erasure.sealedValue !== undefined && erasure.cancelledAtMs === null;
    if (!finds) return { erasure, events, place: undefined, unreadable: [] };
    const goesOn = Number(place?.passes) < passesNeeded(notAhead(erasure), clock.now());
    const unreadable = await unreadableToRetry(store, partition, id, clock.now());
    return { erasure, events, place: goesOn ? place : undefined, unreadable };
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
  /**
   * Makes steps of a pass that erasures at one place share. One that fails, or finds very many events, stays behind and
   * is in a pass of its own from the next run on. Returns whether any of the others has come as far as it may.
   */
  const makeSteps = async (finders: Finder[], partition: number, steps: number, maxFound: number): Promise<boolean> => {
    const outcomes: PromiseSettledResult<void>[] = [];
    let [others, hasEnded] = [finders.map((finder) => ({ finder, left: maxFound })), false];
    for (let step = 0; step < steps && others.length > 0; step++) {
      const finding = others.map(({ finder }) => finder);
      const { next, found, noted, erased } = await findNextEvents(store, partition, finding, clock.now());
      outcomes.push(noted, ...(await Promise.allSettled([eraseAgain(store, erased, clock.now())])));
      hasEnded = next === undefined && found.some((count) => count !== undefined);
      others = others.flatMap(({ finder, left }, i) => {
        const count = found[i];
        if (next === undefined || count === undefined || count >= left) return [];
        return [{ finder: { ...finder, place: { ...finder.place, ...next } }, left: left - count }];
      });
    }
    throwRejections(outcomes);
    return hasEnded || others.length > 0;
  };
  /**
   * Tries again what could not be read. Makes the next steps of all passes, and begins one for those that wait, unless
   * one is under way that gets on.
   */
  const find = async (works: Work[], partition: number): Promise<PromiseSettledResult<unknown>[]> => {
    const open = async ({ erasure, place, unreadable }: Work) => ({
      ...erasure,
      place,
      unreadable,
      value: secretBox.open(erasure.sealedValue ?? '', erasure.id),
    });
    const opened = await Promise.allSettled(
      works.filter(({ place, unreadable }) => place || unreadable.length > 0).map(open),
    );
    const all = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const retried = await Promise.allSettled(
      all.map((one) => retryUnreadable(store, partition, one, one.unreadable, clock.now())),
    );
    const finders = all.flatMap(({ place, ...one }): Finder[] => (place ? [{ ...one, place }] : []));
    const byId = finders.filter(({ field }) => field === 'event_id');
    const passing = finders.filter(({ field }) => field !== 'event_id');
    const waiting = passing.filter(({ place }) => place.cursor === undefined);
    const begun = passing.filter(({ place }) => place.cursor !== undefined);
    const underWay = [...Map.groupBy(begun, ({ place: { cursor, run } }) => `${cursor} ${run}`).values()];
    const maxFound = Math.ceil(MAX_FOUND / passing.length);
    const pass = (some: Finder[], passes: number) =>
      makeSteps(some, partition, Math.ceil(MAX_SCAN_STEPS / passes), maxFound);
    const findById = async (one: Finder) =>
      await eraseAgain(store, await findByEventId(store, partition, one, clock.now()), clock.now());
    const found = await Promise.allSettled(byId.map(findById));
    const made = await Promise.allSettled(underWay.map((some) => pass(some, underWay.length)));
    const getsOn = made.some((one) => one.status === 'fulfilled' && one.value);
    const begins = waiting.length > 0 && !getsOn ? [pass(waiting, underWay.length + 1)] : [];
    return [...opened, ...withoutReportedEvents(retried), ...found, ...made, ...(await Promise.allSettled(begins))];
  };
  const settle = async (id: string) => {
    const { passes, left } = await erasureProgress(store, id);
    // Loaded after the progress, so that the counts include all work that the progress knows of.
    const [erasure] = await loadErasures(store, [id]);
    const next = erasure && nextErasureStatus(notAhead(erasure), passes, left, clock.now());
    if (!next || !(await settleErasure(store, erasure, next, clock.now()))) return;
    const { field, valueHmac: value_hmac, counts } = erasure;
    const line = { erasure_id: id, status: next, field, value_hmac, events: counts.erasedEvents };
    logger.info({ ...line, operator: erasure.confirmedBy ?? erasure.operator }, 'erasure.advanced');
  };
  return {
    name: 'erase_events',
    everyMs: 500,
    onlyWithWork: true,
    async run(partition) {
      const ids = await openErasures(store);
      if (ids.length === 0) firstSeenMs.clear();
      // An erasure that fails, for example because its value was sealed with a lost key, does not stop the others.
      const looks = await Promise.allSettled(ids.map((id) => lookAt(id, partition)));
      const works = looks.flatMap((look) => (look.status === 'fulfilled' && look.value ? [look.value] : []));
      // What waits, for a confirmation or for deliveries that are held, takes nothing away from the others.
      const erasing = works.filter(({ events }) => events.length > 0);
      const erased = await Promise.allSettled(erasing.map((work) => erase(work, erasing.length)));
      const found = await find(works, partition);
      // Also after an error: one that nobody confirms is cancelled even if its value can't be opened.
      const toSettle = partition === 0 ? works : [];
      const settled = await Promise.allSettled(toSettle.map(({ erasure: { id } }) => settle(id)));
      throwRejections([...looks, ...withoutReportedDeliveries(erased), ...found, ...settled]);
    },
  };
};
