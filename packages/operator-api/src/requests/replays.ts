/** What the operator API accepts about bulk replays. */
import { CANARY_DELIVERIES, MAX_BATCH_ADDRESSES, REPLAY_BATCH_ID, REPLAY_ID } from '@posthorn/core';
import { z } from 'zod';
import { EXAMPLE_SUBSCRIPTION_ID, inOrder, page, replayScope, subscriptionId } from './fields.ts';

export const replayParamsSchema = z.object({ id: z.string().regex(REPLAY_ID) });

export const replayBatchParamsSchema = z.object({ id: z.string().regex(REPLAY_BATCH_ID) });

/** The query of `GET /v1/replays`. */
export const replaysQuerySchema = z.strictObject({
  subscription_id: subscriptionId.optional(),
  batch_id: z
    .string()
    .regex(REPLAY_BATCH_ID, 'Expected the id of a batch of bulk replays')
    .optional()
    .describe('Only the replays of this batch'),
  ...page,
});

/**
 * Which deliveries of which addresses are replayed: the body of `POST /v1/replays` and of `POST /v1/replays/rehearse`.
 */
export const newReplaySchema = inOrder(
  z.strictObject({
    subscription_id: subscriptionId.optional().describe('The address; or several in `subscription_ids`'),
    subscription_ids: z
      .array(subscriptionId)
      .min(1)
      .max(MAX_BATCH_ADDRESSES)
      .optional()
      .describe(`1 to ${MAX_BATCH_ADDRESSES} addresses: one bulk replay of each, started together`),
    ...replayScope,
    canary: z
      .boolean()
      .default(false)
      .describe(
        `Send ${CANARY_DELIVERIES} deliveries of each address first, and go on only when all of them have arrived`,
      ),
  }),
)
  .superRefine(({ subscription_id: one, subscription_ids: several = [] }, context) => {
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    if ((one === undefined) === (several.length === 0))
      refuse(['subscription_id'], 'Expected either subscription_id or subscription_ids');
    for (const [i, id] of several.entries()) {
      const first = several.indexOf(id);
      if (first < i) refuse(['subscription_ids', i], `The same as subscription_ids.${first}`);
    }
  })
  .meta({
    examples: [{ subscription_id: EXAMPLE_SUBSCRIPTION_ID, failed_from: '2026-01-31T12:00:00Z', canary: true }],
  });
