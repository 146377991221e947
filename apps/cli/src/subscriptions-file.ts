/** Reads the file of `posthorn apply`: the subscriptions that should exist. */
import { SUBSCRIPTION_ID } from '@posthorn/core';
import { newSubscriptionSchema } from '@posthorn/operator-api';
import type { Document } from 'yaml';
import { z } from 'zod';
import { readText } from './read-text.ts';
import { UserError } from './user-error.ts';

/**
 * Times that a file may use its anchors: ten for each subscription. Nested anchors, which can grow exponentially,
 * exceed it soon.
 */
const MAX_ALIASES = 100_000;
/** Mistakes that are printed: one that a template makes may stand in each of 10,000 subscriptions. */
const MAX_MISTAKES = 20;

/** Messages in place of those of the parser that advise a programmer, by its error code. */
const MESSAGES: { [code: string]: string } = {
  MULTIPLE_DOCS: 'Several documents, separated by "---". Put all subscriptions into one.',
};

const fields = newSubscriptionSchema.omit({ key: true, secret: true }).extend({
  event_types: newSubscriptionSchema.shape.event_types.default('all'),
  environment: newSubscriptionSchema.shape.environment.default('both'),
  description: newSubscriptionSchema.shape.description.default(''),
  secret_env: z.string().min(1).optional(),
});
const entrySchema = fields
  .extend({
    key: newSubscriptionSchema.shape.key,
    id: z.string().regex(SUBSCRIPTION_ID, 'Expected the id of a subscription').optional(),
  })
  .refine(({ key, id }) => (key === undefined) !== (id === undefined), 'Expected either key or id');
const fileSchema = z.strictObject(
  {
    subscriptions: z
      .array(entrySchema, 'Expected a list, which may be empty: []')
      .max(10_000, 'Expected at most 10,000 subscriptions'),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'Expected "subscriptions:", and a list below it' : undefined) },
);

/** A subscription that should exist: found by its key, or by its id if it was created without a key. */
export type Wanted = z.output<typeof entrySchema>;

/** What identifies a subscription in the file. */
export const identityOf = ({ key, id }: Pick<Wanted, 'key' | 'id'>): string => key ?? id ?? '';

/** Reads and checks the file, or the standard input for `-`. Throws `UserError` that names the line of each mistake. */
export async function readSubscriptionsFile(path: string): Promise<Wanted[]> {
  // Loaded here, since no other command needs it.
  const { LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  const document = parseDocument(await readText(path), { lineCounter: lines, logLevel: 'error' });
  // A warning is of a tag or directive that would be ignored.
  const unreadable = [...document.errors, ...document.warnings];
  if (unreadable.length > 0)
    throw new UserError(`${path}: ${listOf(unreadable.map(({ code, message }) => MESSAGES[code] ?? message))}`);
  const parsed = fileSchema.safeParse(contentOf(document, path) ?? {});
  const lineOf = (at: readonly PropertyKey[]): string => {
    for (let length = at.length; length >= 0; length--) {
      const range = (document.getIn(at.slice(0, length), true) as { range?: [number] } | undefined)?.range;
      if (range) return `${path}:${lines.linePos(range[0]).line}`;
    }
    return path;
  };
  if (parsed.error) {
    const mistakes = parsed.error.issues.map(({ path: at, message }) =>
      [lineOf(at), ...(at.length > 0 ? [at.join('.')] : []), message].join(': '),
    );
    throw new UserError(listOf(mistakes));
  }
  const wanted = parsed.data.subscriptions;
  const seen = new Set<string>();
  for (const [i, entry] of wanted.entries()) {
    const identity = identityOf(entry);
    if (seen.has(identity)) throw new UserError(`${lineOf(['subscriptions', i])}: ${identity} occurs twice.`);
    seen.add(identity);
  }
  return wanted;
}

function listOf(mistakes: readonly string[]): string {
  const more = mistakes.length - MAX_MISTAKES;
  const shown = mistakes.slice(0, MAX_MISTAKES);
  return [...shown, ...(more > 0 ? [`... and ${more} more.`] : [])].join('\n');
}

/** Returns the content of the file. Throws `UserError` for an alias without its anchor, or too many of them. */
function contentOf(document: Document, path: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (cause) {
    throw new UserError(`${path}: ${(cause as Error).message}`, { cause });
  }
}
