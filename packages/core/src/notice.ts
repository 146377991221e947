/** The notice: what Posthorn tells its operators unasked, so that an alert can be built on it. */

export const NOTICE_TYPES = [
  'subscription.paused',
  'subscription.refused',
  'delivery.failed',
  'replay.done',
  'replay.failed',
] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];

export interface Notice {
  /** Unique; the same when a notice is sent again. */
  id: string;
  type: NoticeType;
  atMs: number;
  subscriptionId: string;
  deliveryId: string | null;
  replayId: string | null;
  /** Why: a status reason or a failure reason. */
  reason: string | null;
}
