/**
 * Finds the jobs that Redis has given to this process by a reply that never came, and puts them back. Without it they
 * stay locked, while this process renews its lease, until their locks expire (docs/decisions, 50).
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

/** A request for jobs, until those that it gave have begun. */
export interface Request {
  readonly partition: Partition;
  readonly token: string;
  /** A connection has closed meanwhile. Then ioredis sends the request again, and the token may have locked jobs twice. */
  isDoubtful: boolean;
}

export function createLostReplies(
  options: LostRepliesOptions & {
    askLostMs: number;
    /** How long Redis is asked. It may run what a broken connection has sent after what the next one sends. */
    lockMs: number;
    /** The jobs of a partition that this process has in flight. */
    knownIds: (partition: number) => string[];
  },
) {
  const { onDisconnect, putBackLost, onPutBack, onError, askLostMs, lockMs, knownIds } = options;
  const requests = new ActiveList<Request>();
  /** Tokens that may have locked jobs of which this process does not know. */
  let lost: { partition: number; token: string; timesLeft: number }[] = [];
  const asking = new Set<number>();
  let timer: NodeJS.Timeout | undefined;

  onDisconnect(() => {
    for (const request of requests) request.isDoubtful = true;
  });
  const ask = async (partition: number, some: typeof lost) => {
    if (asking.has(partition)) return;
    asking.add(partition);
    try {
      const tokens = some.map(({ token }) => token);
      const jobs = await putBackLost(partition, tokens, knownIds(partition));
      if (jobs > 0) onPutBack(jobs);
    } catch (error) {
      onError(error);
    } finally {
      for (const one of some) one.timesLeft -= 1;
      asking.delete(partition);
    }
  };
  const askForAll = () => {
    lost = lost.filter(({ timesLeft }) => timesLeft > 0);
    for (const [partition, some] of Map.groupBy(lost, (one) => one.partition)) void ask(partition, some);
  };
  return {
    /** To be called before jobs are requested. */
    sent(partition: Partition, token: string): Request {
      const request = { partition, token, isDoubtful: false };
      requests.add(request);
      return request;
    },
    /** To be called once the jobs that the request gave are in flight, or it has failed. */
    over(request: Request, hasFailed = false): void {
      requests.delete(request);
      if (!request.isDoubtful && !hasFailed) return;
      lost.push({ partition: request.partition.index, token: request.token, timesLeft: lockMs / askLostMs });
    },
    start(): void {
      timer = setInterval(askForAll, askLostMs);
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}
