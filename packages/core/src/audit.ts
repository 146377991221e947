/** The audit trail: who did what, when, to which subscription or delivery. */

export const AUDIT_ACTIONS = [
  'subscription.created',
  'subscription.updated',
  'subscription.deleted',
  'subscription.validated',
  'subscription.paused',
  'subscription.resumed',
  'subscription.resume_succeeded',
  'subscription.resume_failed',
  'subscription.secret_rotated',
  'subscription.tested',
  'delivery.replayed',
  'delivery.tried_now',
  'replay.started',
  'replay.cancelled',
  'replay.continued',
  'erasure.started',
  'erasure.done',
  'erasure.cancelled',
  'session.started',
  'session.ended',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who acts: an operator, or Posthorn itself. */
export const AUDIT_ACTORS = ['operator', 'posthorn'] as const;
export type AuditActor = (typeof AUDIT_ACTORS)[number];

export interface AuditEntry {
  action: AuditAction;
  /** The operator's name; null for an action of Posthorn itself. */
  operator: string | null;
  subscriptionId?: string | undefined;
  deliveryId?: string | undefined;
  replayId?: string | undefined;
  /** What changed, without any secret. */
  detail?: Record<string, unknown> | undefined;
}
