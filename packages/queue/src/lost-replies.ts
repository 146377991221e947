/**
 * Finds jobs that Redis has locked for this process in a reply that never arrived, and puts them back. Without it they
 * stay locked until their locks expire, since this process goes on renewing its lease (docs/decisions, 50).
 */
import { ActiveList } from '@posthorn/core';
import type { Partition } from './partitions.ts';

export interface LostRepliesOptions {
  /** Calls the listener whenever a connection over which jobs are taken has closed. */
  onDisconnect: (listener: () => void) => void;
  /**
   * Puts back the jobs of a partition that were taken with one of these tokens, except for the known ones. Resolves to
   * how many.
   */
  putBackLost: (partition: number, tokens: readonly string[], knownIds: readonly string[]) => Promise<number>;
  /** Called when jobs were put back whose reply was lost. */
  onPutBack: (jobs: number) => void;
  onError: (error: unknown) => void;
}

/** A request for jobs. It is open until the jobs that it returned have begun. */
export interface Request {
  readonly partition: Partition;
  readonly token: string;
  /** It may have been run twice, and have locked jobs each time: ioredis sends it again if its connection closes. */
  isDoubtful: boolean;
}

/** A token that may have locked jobs of which this process does not know. */
interface DoubtfulToken {
  readonly partition: number;
  readonly token: string;
  /** Intervals that have passed without an open question to Redis. */
  intervals: number;
  /** Redis is to be asked about it now, or again after an error. */
  isDue: boolean;
  /** No question follows the one that is due, or was. */
  isLast: boolean;
}

/**
 * Redis is asked in these intervals, not in each: a call costs it about a microsecond for each active job, and all
 * workers call after it restarts.
 */
const isPowerOfTwo = (n: number) => (n & (n - 1)) === 0;

export function createLostReplies(
  options: LostRepliesOptions & {
    /**
     * Redis is asked after this time and after 2, 4, 8, … times as long. After an error it is asked again in this time.
     */
    askLostMs: number;
    /**
     * Redis is asked for at least this long: it may run commands of a broken connection after those of the next
     * connection.
     */
    lockMs: number;
    /** The jobs of a partition that this process has in flight. */
    knownIds: (partition: number) => string[];
  },
) {
  const { onDisconnect, putBackLost, onPutBack, onError, askLostMs, lockMs, knownIds } = options;
  const requests = new ActiveList<Request>();
  let lost: DoubtfulToken[] = [];
  const asking = new Set<number>();
  let timer: NodeJS.Timeout | undefined;

  onDisconnect(() => {
    for (const request of requests) request.isDoubtful = true;
  });
  const ask = async (partition: number, due: readonly DoubtfulToken[]) => {
    asking.add(partition);
    try {
      const tokens = due.map(({ token }) => token);
      const jobs = await putBackLost(partition, tokens, knownIds(partition));
      for (const one of due) one.isDue = false;
      if (jobs > 0) onPutBack(jobs);
    } catch (error) {
      onError(error);
    } finally {
      asking.delete(partition);
    }
  };
  const askForAll = () => {
    for (const [partition, some] of Map.groupBy(lost, (one) => one.partition)) {
      if (asking.has(partition)) continue;
      for (const one of some) {
        one.intervals += 1;
        if (!isPowerOfTwo(one.intervals)) continue;
        one.isDue = true;
        one.isLast = one.intervals * askLostMs >= lockMs;
      }
      const due = some.filter(({ isDue }) => isDue);
      if (due.length > 0) void ask(partition, due);
    }
    // By the last question, all locks of the token have expired or their jobs were put back.
    lost = lost.filter(({ isLast, isDue }) => !isLast || isDue);
  };
  return {
    /** To be called before jobs are requested. */
    sent(partition: Partition, token: string): Request {
      const request = { partition, token, isDoubtful: false };
      requests.add(request);
      return request;
    },
    /** To be called once the jobs that the request returned are in flight, or the request has failed. */
    over(request: Request, hasFailed = false): void {
      requests.delete(request);
      if (!request.isDoubtful && !hasFailed) return;
      lost.push({
        partition: request.partition.index,
        token: request.token,
        intervals: 0,
        isDue: false,
        isLast: false,
      });
    },
    start(): void {
      timer = setInterval(askForAll, askLostMs);
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}
