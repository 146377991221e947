/** The query fields that every list has. */
import { z } from 'zod';

const DEFAULT_LIMIT = 50;
const MOST = 250;

export const pageFields = {
  limit: z
    .string()
    .regex(/^\d{1,4}$/, `Expected a whole number from 1 to ${MOST}`)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MOST, `Expected a whole number from 1 to ${MOST}`)
    .default(DEFAULT_LIMIT),
  cursor: z.string().max(200).optional(),
};
