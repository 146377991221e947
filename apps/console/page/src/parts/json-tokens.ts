/** Splits JSON into the parts that are shown in different colors, and makes invisible characters visible. */

type TokenKind = 'name' | 'string' | 'number' | 'word';

/** A part of the text; punctuation and whitespace have no kind. */
export interface Token {
  kind: TokenKind | null;
  text: string;
}

/**
 * A name, a string (the last one may be cut off), a number, or true, false and null. Reads each character at most a few
 * times.
 */
const TOKEN =
  /("[^"\\]*(?:\\.[^"\\]*)*"(?=\s{0,100}:))|("[^"\\]*(?:\\.[^"\\]*)*"?)|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
const KINDS: readonly TokenKind[] = ['name', 'string', 'number', 'word'];

/** Whether a text looks like a JSON object or list. It may be cut off. */
export const looksLikeJson = (text: string) => /^\s*[{[]/.test(text);

/** Characters that nobody sees, or that change the direction of those after them. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns the same JSON with invisible characters escaped, so that they are seen. */
export function escapeInvisible(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replaceAll(INVISIBLE, (character) => character.split('').map(escaped).join(''));
}

/** Returns the tokens; their texts together are exactly `json`, whatever it is. */
export function jsonTokens(json: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  const add = (kind: TokenKind | null, text: string) => {
    if (text !== '') tokens.push({ kind, text });
  };
  for (const match of json.matchAll(TOKEN)) {
    add(null, json.slice(end, match.index));
    const group = KINDS.findIndex((_, i) => match[i + 1] !== undefined);
    add(KINDS[group] ?? null, match[0]);
    end = match.index + match[0].length;
  }
  add(null, json.slice(end));
  return tokens;
}
