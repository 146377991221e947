/**
 * Sends notices: each as a log line, a metric and, if `NOTICE_URL` is set, a signed POST that is repeated until it is
 * accepted.
 */
import {
  atMost,
  DAY_MS,
  eachInTurn,
  errorOfStatus,
  knownOrNew,
  type Notice,
  type NoticeType,
  throwRejections,
} from '@posthorn/core';
import { type Clock, createRepeating, type Logger } from '@posthorn/runtime';
import type { Sender } from '@posthorn/sender';
import { signatureHeader } from '@posthorn/signing';
import {
  allPartitions,
  droppedNotices,
  giveUpLease,
  holdLease,
  loadOthers,
  loadReplays,
  partitionsWithNotices,
  removeNotices,
  reportedDropped,
  type Store,
  type WaitingNotice,
  waitingNotices,
} from '@posthorn/store';
import { LRUCache } from 'lru-cache';
import type { WorkerMetrics } from './metrics.ts';

export interface NoticeContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  metrics: Pick<WorkerMetrics, 'notice' | 'noticeGivenUp'>;
  /** Names this process in the lease. */
  holder: string;
  /** Where notices are posted, and the secret that signs them. Without it, a notice is only a log line and a metric. */
  to?: { url: string; secret: string; sender: Sender } | undefined;
  /** Whether this process has an outage: it leaves notices that it can't post to a worker that can. */
  isCutOff: () => boolean;
}

const EVERY_MS = 1_000;
/** Longer than a batch takes. The lease is renewed before each batch, and only while there are notices. */
const LEASE_MS = 60_000;
const BATCH = 10;
/** Logging waits for no receiver, so it reads many at once. */
const LOG_BATCH = 1_000;
/** A large incident raises thousands of these. New ones of all other types are posted first. */
const POSTED_LAST: readonly NoticeType[] = ['delivery.failed', 'subscription.failures'];
/** The part of a batch for those that are posted first: the others go on also if none of these is accepted. */
const MAX_FIRST_IN_BATCH = 8;
/** Notices of a partition that are remembered to be posted first. Further ones are posted in order. */
const MAX_POSTED_FIRST = 10_000;
/** Notices that need no action: logged as info. */
const GOOD_NEWS: readonly NoticeType[] = ['replay.done', 'outage.ended', 'subscription.recovered'];
const MAX_BATCHES_PER_RUN = 20;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** Refused notices whose wait is remembered. Further ones are posted again without a wait. */
const MAX_REFUSED = 1_000;
/** A notice that was not accepted for this long is dropped. */
const GIVE_UP_AFTER_MS = DAY_MS;

/** How long to wait after a failure, and until when. */
interface Wait {
  waitMs: number;
  untilMs: number;
}
const AT_ONCE: Wait = { waitMs: 0, untilMs: Number.NEGATIVE_INFINITY };

/** The service that sends notices. It releases its leases when it stops. */
export function createNoticeService(context: NoticeContext) {
  const { store, holder, logger } = context;
  const partitions = allPartitions(store);
  return createRepeating({
    name: 'notices',
    everyMs: EVERY_MS,
    run: createNotifier(context, partitions),
    onStop: () => Promise.all(partitions.map((partition) => giveUpLease(store, 'notifier', partition, holder))),
    logger,
  });
}

/**
 * Returns a function that sends the notices of the partitions whose lease this process gets. A notice may be sent twice
 * after a crash. Once it is stopping, it ends with the batch that is being posted.
 */
export function createNotifier(
  context: NoticeContext,
  partitions: readonly number[],
): (stopping: AbortSignal) => Promise<void> {
  const { store, holder } = context;
  /** The last notice of each partition that this process has logged. */
  const logged = new Map<number, string>();
  /** Of each partition, by id, new notices that this process has logged and posts first: in this order. */
  const first = new Map<number, Map<string, WaitingNotice>>();
  /** The last notice of each partition that this process has posted for the first time. */
  const tried = new Map<number, string>();
  /** Before the first one: the entries since this process began. An earlier one may have posted those before. */
  const begunAtMs = context.clock.now();
  /** The entry of each partition after which the next batch of those begins; undefined: with the oldest. */
  const passed = new Map<number, string | undefined>();
  /** Until when nothing is posted. */
  let all = AT_ONCE;
  /** Until when each refused notice is not posted, by id. */
  const refused = new LRUCache<string, Wait>(atMost(MAX_REFUSED));
  const isOver = ({ untilMs }: Wait) => performance.now() >= untilMs;
  const isDue = ({ id }: WaitingNotice) => isOver(refused.get(id) ?? AT_ONCE);

  /** Logs new notices, whether or not they can be posted. Returns whether there may be more. */
  const logNew = async (partition: number): Promise<boolean> => {
    const notices = await waitingNotices(store, partition, LOG_BATCH, { after: logged.get(partition) });
    for (const notice of notices) {
      logNotice(context, notice);
      logged.set(partition, notice.entryId);
    }
    if (context.to === undefined) {
      const entryIds = notices.map(({ entryId }) => entryId);
      await removeNotices(store, partition, entryIds);
    } else {
      const isNew = ({ entryId }: WaitingNotice) => Number.parseInt(entryId, 10) >= begunAtMs;
      const ahead = knownOrNew(first, partition, () => new Map());
      for (const notice of notices)
        if (isNew(notice) && !POSTED_LAST.includes(notice.type) && ahead.size < MAX_POSTED_FIRST)
          ahead.set(notice.id, notice);
    }
    return notices.length === LOG_BATCH;
  };

  /**
   * Posts those of a batch that are due. If none is accepted, all notices wait: for a second if some were refused,
   * since others may not be. If some are accepted, only the others wait.
   */
  const postBatch = async (partition: number, batch: WaitingNotice[]): Promise<void> => {
    const due = batch.filter(isDue);
    const results = await Promise.allSettled(due.map((notice) => postNotice(context, notice)));
    const outcomes = results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'));
    const ahead = first.get(partition);
    for (const [i, notice] of due.entries()) {
      if (outcomes[i] !== 'done') refused.set(notice.id, longer(refused.get(notice.id)));
      // One that failed is tried again after those that were not tried yet; one that was refused, with all others.
      if (ahead?.delete(notice.id) && outcomes[i] === 'failed') ahead.set(notice.id, notice);
    }
    const done = due.filter((_, i) => outcomes[i] === 'done').map(({ entryId }) => entryId);
    await removeNotices(store, partition, done);
    if (due.length > 0) all = done.length > 0 ? AT_ONCE : longer(outcomes.includes('refused') ? AT_ONCE : all);
    throwRejections(results);
  };
  /**
   * Posts the next batch: of those that are posted first, and of logged notices that were not tried yet, oldest first,
   * or else of all. So neither the refused ones nor the failed deliveries of an incident, which may be many, hold up a
   * new pause; and pauses that fail hold up nothing. Returns whether there may be more.
   */
  const post = async (partition: number): Promise<boolean> => {
    const batchOf = (after: string | undefined, upTo: string | undefined) =>
      upTo === undefined ? [] : waitingNotices(store, partition, BATCH, { after, upTo });
    const ahead = [...(first.get(partition)?.values() ?? [])].filter(isDue).slice(0, MAX_FIRST_IN_BATCH);
    const isAhead = ({ id }: WaitingNotice) => ahead.some((notice) => notice.id === id);
    const untried = await batchOf(tried.get(partition) ?? String(begunAtMs), logged.get(partition));
    const fresh = untried.filter((notice) => !isAhead(notice)).slice(0, BATCH - ahead.length);
    const newest = fresh.at(-1);
    if (newest) tried.set(partition, newest.entryId);
    if (ahead.length + fresh.length > 0) {
      await postBatch(partition, [...ahead, ...fresh]);
      return true;
    }
    const again = await batchOf(passed.get(partition), logged.get(partition));
    passed.set(partition, again.length === BATCH ? again.at(-1)?.entryId : undefined);
    await postBatch(partition, again);
    return again.length === BATCH;
  };

  const canPost = () => isOver(all);
  const sendAll = async (partition: number, stopping: AbortSignal): Promise<void> => {
    if (stopping.aborted) return;
    if (context.isCutOff() && !canPost()) {
      first.delete(partition);
      await giveUpLease(store, 'notifier', partition, holder);
      return;
    }
    const hold = async () => {
      const isHeld = await holdLease(store, 'notifier', partition, holder, LEASE_MS);
      // Another process posts them.
      if (!isHeld) first.delete(partition);
      return isHeld;
    };
    if (!(await hold())) return;
    await reportDropped(context, partition);
    await whileMore(() => logNew(partition));
    await whileMore(async () => !stopping.aborted && canPost() && (await post(partition)) && (await hold()));
  };
  let runs = 0;
  return async (stopping) => {
    const withNotices = await partitionsWithNotices(store);
    // Another process has posted all of them.
    for (const partition of first.keys()) if (!withNotices.has(partition)) first.delete(partition);
    const some = partitions.filter((partition) => withNotices.has(partition));
    // Each run begins with another one: after a batch of which none is accepted, the others have to wait.
    const start = runs++ % Math.max(1, some.length);
    // One after the other, since they share what `NOTICE_URL` can take. One whose master is away holds up none of the
    // others.
    await eachInTurn([...some.slice(start), ...some.slice(0, start)], (partition) => sendAll(partition, stopping));
  };
}

/**
 * Logs and counts notices that were dropped unsent. They are counted twice if the process dies before
 * `reportedDropped`.
 */
async function reportDropped({ store, logger, metrics }: NoticeContext, partition: number): Promise<void> {
  const count = await droppedNotices(store, partition);
  // 0.2.0 leaves a number below 0 where a reply is lost.
  if (count <= 0) return;
  metrics.noticeGivenUp(count);
  logger.error({ notices: count, partition }, 'notices.dropped');
  await reportedDropped(store, partition, count);
}

function longer({ waitMs }: Wait = AT_ONCE): Wait {
  const nextMs = Math.min(Math.max(FIRST_WAIT_MS, 2 * waitMs), MAX_WAIT_MS);
  return { waitMs: nextMs, untilMs: performance.now() + nextMs };
}

async function whileMore(doBatch: () => Promise<boolean>): Promise<void> {
  for (let batch = 0; batch < MAX_BATCHES_PER_RUN && (await doBatch()); batch++);
}

function logNotice({ logger, metrics }: NoticeContext, notice: Notice): void {
  metrics.notice(notice.type);
  const level = GOOD_NEWS.includes(notice.type) ? 'info' : 'warn';
  logger[level]({ notice: notice.type, notice_id: notice.id, ...subjectOf(notice) }, 'notice.raised');
}

/** What a notice is about. JSON leaves out the undefined fields. */
function subjectOf(notice: Notice) {
  const { subscriptionId, deliveryId, deliveries, reason, replayId, worker, failures, pauseAfter } = notice;
  return {
    subscription_id: subscriptionId || undefined,
    delivery_id: deliveryId ?? undefined,
    deliveries: deliveries ?? undefined,
    reason: reason ?? undefined,
    replay_id: replayId ?? undefined,
    worker: worker ?? undefined,
    consecutive_failures: failures ?? undefined,
    pause_after: pauseAfter ?? undefined,
  };
}

/**
 * Posts a notice. Returns `done` if it was accepted, was given up, or is not to be posted since `NOTICE_URL` is not
 * set; `refused` if the status may be about this notice alone; otherwise `failed`.
 */
async function postNotice(context: NoticeContext, notice: WaitingNotice): Promise<'done' | 'refused' | 'failed'> {
  if (context.to === undefined) return 'done';
  const { url, secret, sender } = context.to;
  const nowMs = context.clock.now();
  const body = JSON.stringify(await noticeBody(context.store, notice));
  const headers = {
    'Content-Type': 'application/json',
    'Service-Signature': signatureHeader([secret], Math.floor(nowMs / 1000), body),
    'Service-Event': notice.type,
    'Service-Event-Id': notice.id,
  };
  const result = await sender.send({ url, headers, body });
  if (result.kind === 'responded' && errorOfStatus(result.statusCode) === null) return 'done';
  const line = {
    notice_id: notice.id,
    outcome: result.kind,
    status_code: result.kind === 'responded' ? result.statusCode : undefined,
    ...(result.kind === 'connection_failed' && { error: result.error, detail: result.detail }),
  };
  if (nowMs - notice.atMs > GIVE_UP_AFTER_MS) {
    context.metrics.noticeGivenUp();
    context.logger.error(line, 'notice.given_up');
    return 'done';
  }
  context.logger.warn(line, 'notice.deferred');
  return result.kind === 'responded' && isRefusal(result.statusCode) ? 'refused' : 'failed';
}

/** 408 and 429 ask for a pause. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

async function noticeBody(store: Store, notice: Notice) {
  const load = (ids: string[]) => loadReplays(store, ids);
  // Without its counts if its record is gone, or can't be read.
  const [replay] = notice.replayId === null ? [] : await loadOthers(load, [notice.replayId], []);
  return {
    id: notice.id,
    type: notice.type,
    created_at: new Date(notice.atMs).toISOString(),
    data: {
      ...subjectOf(notice),
      since: notice.sinceMs === null ? undefined : new Date(notice.sinceMs).toISOString(),
      total: replay?.total,
      replayed: replay?.replayed,
      skipped: replay?.skipped,
    },
  };
}
