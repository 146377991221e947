/** Gives notices: each as a line in the log, a metric, and, where `NOTICE_URL` is set, a signed POST that is repeated until it is taken. */
import { errorOfStatus, type Notice } from '@posthorn/core';
import type { Clock, Logger } from '@posthorn/runtime';
import type { Sender } from '@posthorn/sender';
import { signatureHeader } from '@posthorn/signing';
import {
  giveUpLease,
  holdLease,
  loadReplays,
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
  metrics: Pick<WorkerMetrics, 'notice'>;
  /** Names this process in the lease. */
  holder: string;
  /** Where notices are posted, and the secret that signs them; undefined for the log and the metric alone. */
  target?: { url: string; secret: string; sender: Sender } | undefined;
  /** Whether this process has an outage: what it can't post is left to a worker that can. */
  isCutOff: () => boolean;
}

/** How often waiting notices are looked for. */
export const NOTICES_EVERY_MS = 500;
/** Longer than a batch can take. */
const LEASE_MS = 60_000;
const BATCH = 10;
/** The most batches of a partition in one round. */
const BATCHES_A_ROUND = 20;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** A notice that nobody has taken for this long is given up. */
const GIVE_UP_AFTER_MS = 86_400_000;

/** One notifier over several partitions, with what it remembers between its rounds. */
export function createNotifier(context: NoticeContext, partitions: readonly number[]) {
  const { store, holder } = context;
  /** The last notice of each partition that this process has logged. */
  const logged = new Map<number, string>();
  let waitMs = 0;
  let notBeforeMs = 0;

  /** Logs what is new, whether or not it can be posted. */
  const logNew = async (partition: number): Promise<boolean> => {
    const notices = await waitingNotices(store, partition, BATCH, { after: logged.get(partition) });
    for (const notice of notices) {
      logNotice(context, notice);
      logged.set(partition, notice.entryId);
    }
    return notices.length === BATCH;
  };

  /** Posts the oldest of those logged; answers whether there may be more to post now. */
  const post = async (partition: number): Promise<boolean> => {
    const upTo = logged.get(partition);
    const oldest = upTo === undefined ? [] : await waitingNotices(store, partition, BATCH, { upTo });
    const taken = await Promise.all(oldest.map((notice) => isTaken(context, notice)));
    const done = oldest.filter((_, i) => taken[i]).map(({ entryId }) => entryId);
    await removeNotices(store, partition, done);
    if (done.length < oldest.length) {
      waitMs = Math.min(Math.max(FIRST_WAIT_MS, 2 * waitMs), LONGEST_WAIT_MS);
      notBeforeMs = performance.now() + waitMs;
      return false;
    }
    waitMs = 0;
    return oldest.length === BATCH;
  };

  return {
    /** One round over the partitions whose lease this process gets. A notice may be given twice, after a crash. */
    async giveNotices(): Promise<void> {
      for (const partition of partitions) {
        if (context.isCutOff() && performance.now() < notBeforeMs) {
          await giveUpLease(store, 'notifier', partition, holder);
          continue;
        }
        if (!(await holdLease(store, 'notifier', partition, holder, LEASE_MS))) continue;
        for (let batch = 0; batch < BATCHES_A_ROUND && (await logNew(partition)); batch++);
        for (
          let batch = 0;
          batch < BATCHES_A_ROUND && performance.now() >= notBeforeMs && (await post(partition));
          batch++
        );
      }
    },
  };
}

function logNotice({ logger, metrics }: NoticeContext, notice: Notice): void {
  metrics.notice(notice.type);
  const line = {
    notice: notice.type,
    notice_id: notice.id,
    subscription_id: notice.subscriptionId || undefined,
    delivery_id: notice.deliveryId ?? undefined,
    replay_id: notice.replayId ?? undefined,
    reason: notice.reason ?? undefined,
    worker: notice.worker ?? undefined,
  };
  if (notice.type === 'replay.done' || notice.type === 'outage.ended') logger.info(line, 'notice');
  else logger.warn(line, 'notice');
}

/** Posts a notice; answers whether it needs no further try. */
async function isTaken(context: NoticeContext, notice: WaitingNotice): Promise<boolean> {
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
    context.logger.error(line, 'notice.given_up');
    return true;
  }
  context.logger.warn(line, 'notice.not_taken');
  return false;
}

async function noticeBody(store: Store, notice: Notice) {
  const [replay] = notice.replayId === null ? [] : await loadReplays(store, [notice.replayId]);
  return {
    id: notice.id,
    type: notice.type,
    created_at: new Date(notice.atMs).toISOString(),
    data: {
      ...(notice.subscriptionId === '' ? {} : { subscription_id: notice.subscriptionId }),
      ...(notice.deliveryId === null ? {} : { delivery_id: notice.deliveryId }),
      ...(notice.reason === null ? {} : { reason: notice.reason }),
      ...(notice.replayId === null ? {} : { replay_id: notice.replayId }),
      ...(notice.worker === null ? {} : { worker: notice.worker }),
      ...(notice.sinceMs === null ? {} : { since: new Date(notice.sinceMs).toISOString() }),
      ...(replay ? { total: replay.total, replayed: replay.replayed, skipped: replay.skipped } : {}),
    },
  };
}
