/** The parameters that several routes share. */
import { AppError, DELIVERY_ID, EVENT_ID, instantMsSchema, REPLAY_ID, SUBSCRIPTION_ID } from '@posthorn/core';
import { BadCursor } from '@posthorn/store';
import { z } from 'zod';

const DEFAULT_LIMIT = 50;
const MOST = 250;

export const subscriptionId = z.string().regex(SUBSCRIPTION_ID, 'Expected the id of a subscription');
export const deliveryId = z.string().regex(DELIVERY_ID, 'Expected the id of a delivery');
export const eventId = z.string().regex(EVENT_ID, 'Expected the id of an event');
export const replayId = z.string().regex(REPLAY_ID, 'Expected the id of a bulk replay');

/** A time, both ends included. */
export const timeFields = { from: instantMsSchema.optional(), to: instantMsSchema.optional() };

/** What every list has. */
export const pageFields = {
  limit: z
    .string()
    .regex(/^\d{1,4}$/, `Expected a whole number from 1 to ${MOST}`)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MOST, `Expected a whole number from 1 to ${MOST}`)
    .default(DEFAULT_LIMIT)
    .meta({ description: `Items of a page, 1 to ${MOST}` }),
  cursor: z.string().max(200).optional().meta({ description: 'The `next_cursor` of the page before' }),
};

/** A cursor that no list gave is the caller's mistake; any other error stays what it is. */
export function cursorProblem(error: unknown): unknown {
  if (!(error instanceof BadCursor)) return error;
  return new AppError('invalid_fields', 'The query is not valid.', {
    fields: [{ path: 'cursor', message: error.message }],
  });
}
