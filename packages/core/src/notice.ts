/** The notice: a message to the operators about something that may need action, on which they can build alerts. */

export const NOTICE_TYPES = [
  'subscription.paused',
  'subscription.refused',
  'delivery.failed',
  'replay.done',
  'replay.failed',
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
  replayId: string | null;
  /** Why: a status reason, a failure reason, or what fails in an outage (`dns` or `connection`). */
  reason: string | null;
  /** Of an outage: the worker process as `host:pid`, and when the outage began. */
  worker: string | null;
  sinceMs: number | null;
}
