/** What the operator API accepts about operators: sign-in and the audit trail. */
import { AUDIT_ACTIONS, AUDIT_ACTORS } from '@posthorn/core';
import { z } from 'zod';
import { inOrder, page, period, subscriptionId } from './fields.ts';

/** The body of `POST /v1/session`. */
export const signInSchema = z
  .strictObject({ token: z.string().min(1).max(1_024) })
  .meta({ examples: [{ token: 'an-operator-token' }] });

/** An id that Posthorn made: a prefix that says of what, and the rest. */
const AUDIT_TARGET = /^[a-z]{3}_[\w-]{1,100}$/;

/** The query of `GET /v1/audit`. */
export const auditQuerySchema = inOrder(
  z.strictObject({
    subscription_id: subscriptionId.optional(),
    operator: z.string().max(64).optional().describe('The name of an operator'),
    actor: z
      .enum(AUDIT_ACTORS)
      .optional()
      .describe('`posthorn`: only what Posthorn did by itself; `operator`: only what operators did'),
    action: z.enum(AUDIT_ACTIONS).optional(),
    target: z
      .string()
      .regex(AUDIT_TARGET, 'Expected the id of a subscription, a delivery, a bulk replay or an erasure')
      .optional()
      .describe('The id of a subscription, a delivery, a bulk replay or an erasure that the entry names'),
    ...period,
    ...page,
  }),
);
