/** What the operator API returns about operators: the session and the audit trail. */
import { AUDIT_ACTIONS } from '@posthorn/core';
import { z } from 'zod';
import { instant } from './fields.ts';

export const sessionSchema = z
  .strictObject({
    operator: z.string(),
    operators: z.array(z.string()).describe('The names of all operators that have a token now'),
    csrf_token: z
      .string()
      .nullable()
      .describe('Send it as X-CSRF-Token; null if the call was authenticated by a token'),
    expires_at: instant.nullable(),
  })
  .meta({ id: 'Session' });
export type Session = z.infer<typeof sessionSchema>;

export const auditEntrySchema = z
  .strictObject({
    id: z.string(),
    at: instant,
    operator: z.string().nullable().describe('Null: Posthorn itself'),
    action: z.enum(AUDIT_ACTIONS),
    subscription_id: z.string().nullable(),
    delivery_id: z.string().nullable(),
    replay_id: z.string().nullable(),
    summary: z.string().describe('What was done, in plain words; times in it are in UTC'),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;
