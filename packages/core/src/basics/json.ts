/**
 * Reads JSON without losing what the publisher wrote (long numbers included) and without letting depth exhaust the
 * stack.
 */
import { AppError } from '../errors.ts';

/** Deepest nesting of objects and arrays that a body may have, far below what exhausts a stack. */
export const MAX_JSON_DEPTH = 512;

/**
 * Values that a text may have: 500 for each event of the largest batch, and more. Many keys in one object cost most,
 * about a microsecond each with their validation, while the event loop is blocked.
 */
export const MAX_JSON_VALUES = 262_144;
/**
 * Values that a text may have if some of its numbers must be kept as text. Each value then costs about a microsecond,
 * while the event loop is blocked.
 */
const MAX_LOSSLESS_VALUES = 100_000;

/**
 * Text that may hold a number which a double can't carry exactly or would print otherwise. Hits inside strings are
 * harmless, but slow, so only what may begin a value counts: UUIDs have an `e` behind a digit.
 */
const PERHAPS_LOSSY_NUMBER = /(?:^|[:,[])\s*-?(?:[\d.]{16}|\d+\.\d*0(?!\d)|[\d.]+[eE]|(?<=-)0|0\.0{6})/;

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
 * Parses a JSON text. A number that a double would change is kept as `JSON.rawJSON`, so that `JSON.stringify` gives it
 * back digit for digit. Throws `AppError` `invalid_json` for anything that isn't JSON, nests deeper than
 * `MAX_JSON_DEPTH`, has more than `MAX_JSON_VALUES`, or has such numbers among more than 100,000 values.
 */
export function parseJson(text: string): unknown {
  const isLossy = PERHAPS_LOSSY_NUMBER.test(text);
  const isMeasured = isLossy || text.length > MAX_JSON_VALUES || opensMore(text, MAX_JSON_DEPTH);
  const { isTooDeep, values } = isMeasured ? measure(text, MAX_JSON_DEPTH) : SMALL;
  if (isTooDeep) {
    throw new AppError('invalid_json', `The body nests deeper than ${MAX_JSON_DEPTH} levels.`);
  }
  if (values > MAX_JSON_VALUES) {
    throw new AppError('invalid_json', `The body has more than ${MAX_JSON_VALUES} values. Send fewer events at once.`);
  }
  if (isLossy && values > MAX_LOSSLESS_VALUES) {
    const detail = `The body has more than ${MAX_LOSSLESS_VALUES} values, and numbers that a double cannot carry as written. Send fewer events at once.`;
    throw new AppError('invalid_json', detail);
  }
  try {
    return isLossy ? lossless.parse(text, keepNumberText) : JSON.parse(text);
  } catch (cause) {
    throw new AppError('invalid_json', `The body is not valid JSON${placeOf(cause)}.`, { cause });
  }
}

/** Where the parser stopped, if its message says so. Nothing else of the message: it may quote a secret. */
function placeOf(error: unknown): string {
  const { message } = error as SyntaxError;
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  if (line !== undefined) return `: see line ${line}, column ${column}`;
  return message === 'Unexpected end of JSON input' ? ': it ends too soon' : '';
}

/** Whether a parsed value is a number kept as text by `parseJson`. */
export function isRawNumber(value: unknown): boolean {
  return lossless.isRawJSON(value);
}

function keepNumberText(this: unknown, _key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return String(value) === context.source ? value : lossless.rawJSON(context.source);
}

/** What `measure` would return for a text that opens few objects and arrays, as far as it matters. */
const SMALL = { isTooDeep: false, values: 0 };

/** Whether a JSON text nests deeper than `maxDepth`. */
export function nestsDeeper(text: string, maxDepth: number): boolean {
  return opensMore(text, maxDepth) && measure(text, maxDepth).isTooDeep;
}

/** Whether a text has more opening brackets than that, so that it may nest too deep. Far faster than `measure`. */
function opensMore(text: string, maxDepth: number): boolean {
  let count = 0;
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      count += 1;
      if (count > maxDepth) return true;
    }
  }
  return false;
}

/** Whether a text nests too deep, and about how many values it has. Stops where it is refused anyway. */
function measure(text: string, maxDepth: number): { isTooDeep: boolean; values: number } {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x2c) {
      if (++values > MAX_JSON_VALUES) break;
    } else if (c === 0x7b || c === 0x5b) {
      if (++depth > maxDepth) return { isTooDeep: true, values };
      const next = text.charCodeAt(i + 1);
      // The first value of an object or array has no comma before it.
      if (next !== 0x7d && next !== 0x5d && ++values > MAX_JSON_VALUES) break;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return { isTooDeep: false, values };
}
