/** The locks of the jobs in flight: while they are renewed, no other worker takes the jobs over. */
import { ActiveList } from '@posthorn/core';
import { ErrorCode } from 'bullmq';

export interface Lock {
  readonly partition: number;
  readonly jobId: string;
  readonly token: string;
  /** By a monotonic clock: the system clock may be set back. */
  renewedAtMs: number;
  /** The end of the job has been sent to Redis, so the job may be over there. */
  isEnding: boolean;
}

interface JobLocksOptions {
  lockMs: number;
  /** Renews locks of one partition. Resolves to the jobs whose lock is lost. */
  extend: (partition: number, jobIds: string[], tokens: string[]) => Promise<string[]>;
  onError: (error: unknown) => void;
}

/** Has the code that BullMQ gives for a job without a lock: perhaps another worker has the job now. */
function lostLock(jobId: string): Error {
  return Object.assign(new Error(`could not renew lock for job ${jobId}`), { code: ErrorCode.JobLockNotExist });
}

export function createJobLocks({ lockMs, extend, onError }: JobLocksOptions) {
  const held = new ActiveList<Lock>();
  let timer: NodeJS.Timeout | undefined;

  /** Renews the locks that are older than a quarter of their life. */
  const renew = () => {
    const nowMs = performance.now();
    const old = [...held].filter(({ renewedAtMs }) => renewedAtMs + lockMs / 4 < nowMs);
    for (const [partition, locks] of Map.groupBy(old, (lock) => lock.partition)) {
      for (const lock of locks) lock.renewedAtMs = nowMs;
      const [ids, tokens] = [locks.map(({ jobId }) => jobId), locks.map(({ token }) => token)];
      extend(partition, ids, tokens).then((lost) => report(lost, locks), onError);
    }
  };
  const report = (lost: readonly string[], asked: readonly Lock[]) => {
    for (const id of lost) {
      // A job that ended meanwhile has no lock any more.
      const lock = asked.find(({ jobId }) => jobId === id);
      if (lock && held.has(lock) && !lock.isEnding) onError(lostLock(id));
    }
  };
  return {
    add(partition: number, jobId: string, token: string): Lock {
      const lock = { partition, jobId, token, renewedAtMs: performance.now(), isEnding: false };
      held.add(lock);
      return lock;
    },
    /** Idempotent. */
    remove(lock: Lock): void {
      held.delete(lock);
    },
    idsOf(partition: number): string[] {
      return [...held].flatMap((lock) => (lock.partition === partition ? lock.jobId : []));
    },
    start(): void {
      timer = setInterval(renew, lockMs / 4);
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}
