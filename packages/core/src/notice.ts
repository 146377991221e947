/** The notice: a message to the operators about something that may need action, on which they can build alerts. */

export const NOTICE_TYPES = [
  'subscription.paused',
  'subscription.resume_failed',
  'subscription.refused',
  'subscription.failing',
  'subscription.recovered',
  'subscription.failures',
  'delivery.failed',
  'replay.done',
  'replay.failed',
  'replay.halted',
  'outage.started',
  'outage.ended',
] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];

export interface Notice {
  /** Unique; the same when a notice is sent again. */
  id: string;
  type: NoticeType;
  atMs: number;
  /** Empty for the notices of an outage. */
  subscriptionId: string;
  deliveryId: string | null;
  /** Of deliveries that expired: how many of the address at once; `deliveryId` is one of them. */
  deliveries: number | null;
  replayId: string | null;
  /**
   * Why: a status reason, a failure reason, or what fails in an outage (`dns` or `connection`). Of a failing address:
   * its most frequent error.
   */
  reason: string | null;
  /** Of an outage: the worker process as `host:pid`. Of an outage or a failing address: when it began. */
  worker: string | null;
  sinceMs: number | null;
  /** Of `subscription.failures`: the failed deliveries in a row, and how many pause the address. */
  failures: number | null;
  pauseAfter: number | null;
}
