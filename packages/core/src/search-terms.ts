/** What an event can be found by besides its id: its session, the publisher's reference, and the user. */
import type { Event } from './event.ts';

/** The parameters of a search. They stand for `data.id`, `data.reference` and `data.metadata.user_id`. */
export const SEARCH_FIELDS = ['session_id', 'reference', 'user_id'] as const;
type SearchField = (typeof SEARCH_FIELDS)[number];

export interface SearchTerm {
  field: SearchField;
  value: string;
}

/** The session that an event is about, as far as a search or a timeline shows it. */
export interface SessionFacts {
  sessionId: string;
  status: string;
  reference: string | null;
  userId: string | null;
}

/**
 * Reads the session of an event, the data of which was valid when it was accepted. Only texts are read, which
 * `JSON.parse` keeps as they are: `parseJson` may take twenty times as long.
 */
export function sessionFacts({ dataJson }: Pick<Event, 'dataJson'>): SessionFacts {
  return factsOf(JSON.parse(dataJson) as Snapshot);
}

type Snapshot = Record<string, unknown> & { metadata?: unknown };

/**
 * Half a character, where a publisher has cut a text off within an emoji, is U+FFFD here: nobody could search for it
 * otherwise, since UTF-8 has no halves.
 */
function factsOf(data: Snapshot): SessionFacts {
  const metadata = data.metadata as Record<string, unknown> | undefined;
  return {
    sessionId: String(data.id).toWellFormed(),
    status: String(data.status),
    reference: textOf(data.reference),
    userId: textOf(metadata?.user_id),
  };
}

/** The terms that an event with this valid `data` is found by. */
export function searchTermsOf(data: Snapshot): SearchTerm[] {
  return termsOf(factsOf(data));
}

/** The terms that an event of this session is found by. */
export function termsOf({ sessionId, reference, userId }: SessionFacts): SearchTerm[] {
  const terms: SearchTerm[] = [{ field: 'session_id', value: sessionId }];
  if (reference !== null) terms.push({ field: 'reference', value: reference });
  if (userId !== null) terms.push({ field: 'user_id', value: userId });
  return terms;
}

/** Whether an event of this session has one of the terms. */
export function hasTerm(facts: SessionFacts, terms: readonly SearchTerm[]): boolean {
  const own = termsOf(facts);
  return terms.some((term) => own.some(({ field, value }) => field === term.field && value === term.value));
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : null;
}
