/** The form of a maintenance duty: background work that no job does, repeated in each partition. */
import type { JobQueues } from '@posthorn/queue';
import type { Clock, Logger } from '@posthorn/runtime';
import type { SecretBox } from '@posthorn/signing';
import type { Store } from '@posthorn/store';

export interface Duty {
  /** Its name in metrics and logs. */
  name: string;
  /** Time from the end of one run to the start of the next. */
  everyMs: number;
  /**
   * Whether it is only run in partitions in which something waits: looking for that costs one command for all duties.
   * `partitionsWithWork` of the store must know the key that says so; otherwise the duty would never run.
   */
  onlyWithWork?: boolean;
  /**
   * Does a bounded amount of work in one partition. Safe to repeat after a crash, and to run in two processes at once:
   * a lease may change hands during a run.
   */
  run(partition: number): Promise<void>;
}

export interface DutyContext {
  store: Store;
  jobQueues: JobQueues;
  clock: Clock;
  logger: Logger;
  /** Opens the values of erasures. */
  secretBox: Pick<SecretBox, 'open'>;
  /** Held deliveries, and overdue ones, released per second to one address. */
  releasePerSecond: number;
  /** For how long after an upgrade the data stay readable by the release before. */
  rollbackWindowMs: number;
  /** A delivery this old must have its job: a process of 0.1.0 that was about to add it has done so, or died. */
  jobExpectedAfterMs?: number | undefined;
}
