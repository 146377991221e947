/** Reads JSON without losing what the publisher wrote (long numbers included) and without letting depth exhaust the stack. */
import { AppError } from './errors.ts';

/** Deepest nesting of objects and arrays that a body may have. */
export const MAX_JSON_DEPTH = 64;

/** Text that may hold a number which a double can't carry exactly or would print otherwise; hits inside strings are harmless. */
const PERHAPS_LOSSY_NUMBER = /[\d.]{16}|\d\.\d*0(?!\d)|\d[eE]|-0|0\.0{6}/;

interface RawJson {
  rawJSON: string;
}
type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
// Node 24 has both; TypeScript's library does not declare them yet.
const lossless = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): boolean;
};

/**
 * Parses a JSON text. A number that a double would change is kept as `JSON.rawJSON`, so that `JSON.stringify` gives it back
 * digit for digit. Throws `AppError` `invalid_json` for anything that isn't JSON or nests deeper than `MAX_JSON_DEPTH`.
 */
export function parseJson(text: string): unknown {
  if (nestsTooDeep(text)) {
    throw new AppError('invalid_json', `The body nests deeper than ${MAX_JSON_DEPTH} levels.`);
  }
  try {
    return PERHAPS_LOSSY_NUMBER.test(text) ? lossless.parse(text, keepNumberText) : JSON.parse(text);
  } catch (cause) {
    throw new AppError('invalid_json', 'The body is not valid JSON.', { cause });
  }
}

/** Whether a parsed value is a number kept as text by `parseJson`. */
export function isRawNumber(value: unknown): boolean {
  return lossless.isRawJSON(value);
}

function keepNumberText(this: unknown, _key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return String(value) === context.source ? value : lossless.rawJSON(context.source);
}

function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return false;
}
