/** The message of a receiver's error response, in one line, for lists. */
import { cutText } from './basics/cut-text.ts';
import type { AttemptResponse } from './came-back.ts';

/** Characters of a message. */
const MAX_LENGTH = 160;
/** The fields of a JSON error document that may hold its message, the most telling first. */
const MESSAGE_FIELDS = ['message', 'error', 'detail', 'error_description', 'title', 'errors'];
/** How deep a message may be: `{"errors": [{"message": …}]}`. */
const MAX_DEPTH = 4;

/**
 * Returns the message: of a JSON document its error, of an HTML page its title, otherwise the first words of the text.
 * Null if there is none.
 */
export function responseMessage({ headers, body }: Pick<AttemptResponse, 'headers' | 'body'>): string | null {
  const isHtml = /html/i.test(headers['content-type'] ?? '') || /^\s*<(!doctype|html)/i.test(body);
  const text = isHtml ? (/<title[^>]*>([^<]*)/i.exec(body)?.[1] ?? '') : (messageOfJson(body) ?? body);
  const line = text.replace(/\s+/g, ' ').trim();
  return line === '' ? null : cutText(line, MAX_LENGTH);
}

function messageOfJson(body: string): string | undefined {
  if (!/^\s*[{[]/.test(body)) return undefined;
  try {
    return messageIn(JSON.parse(body), MAX_DEPTH);
  } catch (error) {
    // The body is cut off, or it is not JSON: it is shown as it is.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function messageIn(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || depth === 0) return undefined;
  if (Array.isArray(value)) return messageIn(value[0], depth - 1);
  for (const field of MESSAGE_FIELDS) {
    const found = Object.hasOwn(value, field) && messageIn((value as Record<string, unknown>)[field], depth - 1);
    if (found) return found;
  }
  return undefined;
}
