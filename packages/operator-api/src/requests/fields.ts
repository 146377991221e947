/** What the requests of several resources have in common: ids, periods, pages of a list. */
import {
  EVENT_ID,
  eventTypeSchema,
  FAILURE_REASONS,
  instantMsSchema,
  REPLAY_ID,
  SUBSCRIPTION_ID,
} from '@posthorn/core';
import { z } from 'zod';

export const subscriptionId = z.string().regex(SUBSCRIPTION_ID, 'Expected the id of a subscription');
export const EXAMPLE_SUBSCRIPTION_ID = 'sub_0123456789abcdefghijkl';
export const replayId = z.string().regex(REPLAY_ID, 'Expected the id of a bulk replay');
export const eventId = z.string().regex(EVENT_ID, 'Expected the id of an event');

/** A period in milliseconds since 1970, both ends included. */
export const period = {
  from: instantMsSchema.optional().describe('At or after: ISO 8601 with a zone'),
  to: instantMsSchema.optional().describe('At or before: ISO 8601 with a zone'),
};

/** Refuses a period that ends before it begins: nothing would match it. */
export function inOrder<S extends z.ZodType<Period>>(schema: S): S {
  return schema
    .refine(({ from, to }) => isBefore(from, to), {
      path: ['to'],
      message: 'Expected an instant that is not before from',
    })
    .refine(({ failed_from: from, failed_to: to }) => isBefore(from, to), {
      path: ['failed_to'],
      message: 'Expected an instant that is not before failed_from',
    });
}
type Period = { [name in 'from' | 'to' | 'failed_from' | 'failed_to']?: number | undefined };
const isBefore = (from: number | undefined, to: number | undefined) =>
  from === undefined || to === undefined || from <= to;

/** Which failed deliveries a bulk replay covers. */
export const replayScope = {
  ...period,
  event_type: eventTypeSchema.optional(),
  error: z.enum(FAILURE_REASONS).optional().describe('The `failure_reason` of the failed deliveries'),
  failed_from: instantMsSchema.optional().describe('Failed at or after'),
  failed_to: instantMsSchema.optional().describe('Failed at or before'),
};

/**
 * For a parameter of a query, which always arrives as text: what it is in documents. Generated clients take a value of
 * this type, and write it as the text that the schema expects.
 */
export const documentedAs = (type: { type: 'integer' | 'boolean'; [keyword: string]: unknown }) => ({
  override({ jsonSchema: text }: { jsonSchema: object }) {
    Object.assign(text, { enum: undefined, pattern: undefined }, type);
  },
});

const DEFAULT_PAGE_LIMIT = 50;
/** The largest `limit` of a list. */
export const MAX_PAGE_LIMIT = 250;
const EXPECTED_LIMIT = `Expected a whole number from 1 to ${MAX_PAGE_LIMIT}`;

export const cursorOf = (maxLength: number) =>
  z.string().max(maxLength).optional().describe('The `next_cursor` of the previous page');

/** The parameters that every list has. */
export const page = {
  limit: z
    .string()
    .regex(/^\d{1,4}$/, EXPECTED_LIMIT)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MAX_PAGE_LIMIT, EXPECTED_LIMIT)
    .default(DEFAULT_PAGE_LIMIT)
    .describe(`Items per page, 1 to ${MAX_PAGE_LIMIT}`)
    .meta(documentedAs({ type: 'integer', minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT })),
  cursor: cursorOf(200),
};

export const searchValue = z.string().min(1).max(2_000);
/** What an event can be found by besides its id. */
export const searchFields = {
  session_id: searchValue.optional().describe('`data.id`'),
  reference: searchValue.optional().describe('`data.reference`'),
  user_id: searchValue.optional().describe('`data.metadata.user_id`'),
};

/** The filters of a list, by name. The command line has an option for each, which `satisfies` this type checks. */
export type FiltersOf<Query extends z.ZodType<object>> = Record<
  Exclude<keyof z.input<Query>, 'limit' | 'cursor'>,
  unknown
>;
