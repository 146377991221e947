/** The locks of the jobs in flight: while they are renewed, no other worker takes the jobs over. */

interface Lock {
  partition: number;
  token: string;
  renewedAtMs: number;
}

export interface JobLocksOptions {
  lockMs: number;
  /** Renews locks of one partition. Resolves to the jobs whose lock is lost. */
  extend: (partition: number, jobIds: string[], tokens: string[]) => Promise<string[]>;
  onError: (error: unknown) => void;
}

export function createJobLocks({ lockMs, extend, onError }: JobLocksOptions) {
  const held = new Map<string, Lock>();
  let timer: NodeJS.Timeout | undefined;

  /** Renews the locks that are older than a quarter of their life. */
  const renew = () => {
    const nowMs = Date.now();
    const old = [...held].filter(([, { renewedAtMs }]) => renewedAtMs + lockMs / 4 < nowMs);
    for (const [partition, locks] of Map.groupBy(old, ([, lock]) => lock.partition)) {
      for (const [, lock] of locks) lock.renewedAtMs = nowMs;
      const [ids, tokens] = [locks.map(([id]) => id), locks.map(([, { token }]) => token)];
      extend(partition, ids, tokens).then((lost) => report(lost, locks), onError);
    }
  };
  const report = (lost: readonly string[], asked: readonly [string, Lock][]) => {
    for (const id of lost) {
      // A job that ended meanwhile has no lock any more.
      const lock = asked.find(([askedId]) => askedId === id)?.[1];
      if (lock && held.get(id) === lock) onError(new Error(`could not renew lock for job ${id}`));
    }
  };
  return {
    add(partition: number, jobId: string, token: string): void {
      held.set(jobId, { partition, token, renewedAtMs: Date.now() });
    },
    remove(jobId: string, token: string): void {
      if (held.get(jobId)?.token === token) held.delete(jobId);
    },
    start(): void {
      timer = setInterval(renew, lockMs / 4);
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}
