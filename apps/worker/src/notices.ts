/** Sends notices: each as a log line, a metric and, if `NOTICE_URL` is set, a signed POST that is repeated until it is accepted. */
import { errorOfStatus, type Notice, type NoticeType } from '@posthorn/core';
import { type Clock, createRepeating, type Logger } from '@posthorn/runtime';
import type { Sender } from '@posthorn/sender';
import { signatureHeader } from '@posthorn/signing';
import {
  allPartitions,
  giveUpLease,
  holdLease,
  loadReplays,
  partitionsWithNotices,
  removeNotices,
  type Store,
  type WaitingNotice,
  waitingNotices,
} from '@posthorn/store';
import type { WorkerMetrics } from './metrics.ts';

export interface NoticeContext {
  store: Store;
  clock: Clock;
  logger: Logger;
  metrics: Pick<WorkerMetrics, 'notice' | 'noticeGivenUp'>;
  /** Names this process in the lease. */
  holder: string;
  /** Where notices are posted, and the secret that signs them. Without it, a notice is only a log line and a metric. */
  target?: { url: string; secret: string; sender: Sender } | undefined;
  /** Whether this process has an outage: it leaves notices that it can't post to a worker that can. */
  isCutOff: () => boolean;
}

const EVERY_MS = 1_000;
/** Longer than a batch takes. The lease is renewed before each batch, and only while there are notices. */
const LEASE_MS = 60_000;
const BATCH = 10;
/** Notices that need no action: logged as info. */
const GOOD_NEWS: readonly NoticeType[] = ['replay.done', 'outage.ended', 'subscription.recovered'];
const MAX_BATCHES_PER_RUN = 20;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** A notice that was not accepted for this long is dropped. */
const GIVE_UP_AFTER_MS = 86_400_000;

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
 * Returns a function that sends the notices of the partitions whose lease this process gets. A notice may be sent twice after a
 * crash.
 */
function createNotifier(context: NoticeContext, partitions: readonly number[]) {
  const { store, holder } = context;
  /** The last notice of each partition that this process has logged. */
  const logged = new Map<number, string>();
  let waitMs = 0;
  let notBeforeMs = 0;

  /** Logs new notices, whether or not they can be posted. Returns whether there may be more. */
  const logNew = async (partition: number): Promise<boolean> => {
    const notices = await waitingNotices(store, partition, BATCH, { after: logged.get(partition) });
    for (const notice of notices) {
      logNotice(context, notice);
      logged.set(partition, notice.entryId);
    }
    return notices.length === BATCH;
  };

  /** Posts the oldest logged notices. Returns whether there may be more to post now. */
  const post = async (partition: number): Promise<boolean> => {
    const upTo = logged.get(partition);
    const oldest = upTo === undefined ? [] : await waitingNotices(store, partition, BATCH, { upTo });
    const isDone = await Promise.all(oldest.map((notice) => postNotice(context, notice)));
    const done = oldest.filter((_, i) => isDone[i]).map(({ entryId }) => entryId);
    await removeNotices(store, partition, done);
    if (done.length < oldest.length) {
      waitMs = Math.min(Math.max(FIRST_WAIT_MS, 2 * waitMs), MAX_WAIT_MS);
      notBeforeMs = performance.now() + waitMs;
      return false;
    }
    waitMs = 0;
    return oldest.length === BATCH;
  };

  const canPost = () => performance.now() >= notBeforeMs;
  return async (): Promise<void> => {
    const withNotices = await partitionsWithNotices(store);
    for (const partition of partitions) {
      if (!withNotices.has(partition)) continue;
      const [oldest] = await waitingNotices(store, partition, 1, {});
      if (!oldest) continue;
      if (context.isCutOff() && !canPost()) {
        await giveUpLease(store, 'notifier', partition, holder);
        continue;
      }
      const hold = () => holdLease(store, 'notifier', partition, holder, LEASE_MS);
      if (!(await hold())) continue;
      await whileMore(() => logNew(partition));
      await whileMore(async () => canPost() && (await post(partition)) && (await hold()));
    }
  };
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
function subjectOf({ subscriptionId, deliveryId, reason, replayId, worker, failures, pauseAfter }: Notice) {
  return {
    subscription_id: subscriptionId || undefined,
    delivery_id: deliveryId ?? undefined,
    reason: reason ?? undefined,
    replay_id: replayId ?? undefined,
    worker: worker ?? undefined,
    consecutive_failures: failures ?? undefined,
    pause_after: pauseAfter ?? undefined,
  };
}

/** Posts a notice. Returns whether it needs no further try. */
async function postNotice(context: NoticeContext, notice: WaitingNotice): Promise<boolean> {
  if (context.target === undefined) return true;
  const { url, secret, sender } = context.target;
  const nowMs = context.clock.now();
  const body = JSON.stringify(await noticeBody(context.store, notice));
  const headers = {
    'Content-Type': 'application/json',
    'Service-Signature': signatureHeader([secret], Math.floor(nowMs / 1000), body),
    'Service-Event': notice.type,
    'Service-Event-Id': notice.id,
  };
  const result = await sender.send({ url, headers, body });
  if (result.kind === 'responded' && errorOfStatus(result.statusCode) === null) return true;
  const line = {
    notice_id: notice.id,
    outcome: result.kind,
    status_code: result.kind === 'responded' ? result.statusCode : undefined,
  };
  if (nowMs - notice.atMs > GIVE_UP_AFTER_MS) {
    context.metrics.noticeGivenUp();
    context.logger.error(line, 'notice.given_up');
    return true;
  }
  context.logger.warn(line, 'notice.deferred');
  return false;
}

async function noticeBody(store: Store, notice: Notice) {
  const [replay] = notice.replayId === null ? [] : await loadReplays(store, [notice.replayId]);
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
