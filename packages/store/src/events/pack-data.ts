/** Shortens the JSON text of an event's data for storage: what nearly every event contains becomes one character. */

/**
 * Characters that no JSON text contains, since strings must escape them: not tab, line feed and carriage return, which
 * a text may have between values.
 */
const FREE = Array.from({ length: 0x1f }, (_, i) => i + 1).filter((code) => ![0x09, 0x0a, 0x0d].includes(code));
const [MARK = '', UUID_TOKEN = '', ...TOKENS] = FREE.map((code) => String.fromCharCode(code));

/**
 * What a token stands for: the fields and values of a session snapshot (specification 2.2), and what lies between any
 * values. Stored, so none may change or move. Each token has one: a 27th would have no token, and texts would lose it.
 */
const FRAGMENTS = [
  '{"id":"',
  '","reference":"',
  '","status":"',
  '","country":"',
  '","tier":',
  ',"achieved_tier":',
  ',"metadata":{"user_id":"',
  '"}}',
  '","',
  '":"',
  ',"',
  '":',
  'reference":"',
  'status":"',
  'country":"',
  'tier":',
  'metadata":{"',
  'user_id":"',
  'approved',
  'declined',
  'in_review',
  'submitted',
  'resubmission_requested',
  'expired',
  'created',
  'cancelled',
] as const satisfies { length: 26 };
const tokenOf = new Map<string, string>(FRAGMENTS.map((fragment, i) => [fragment, TOKENS[i] ?? '']));
/** By the code of the token. */
const fragmentAt: string[] = Array.from({ length: 0x20 }, () => '');
for (const [fragment, token] of tokenOf) fragmentAt[token.charCodeAt(0)] = fragment;

/** A longer text is stored as it is: packing costs some nanoseconds a character, and its size is in its values. */
const MAX_PACKED_LENGTH = 4_096;

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const escaped = (text: string) => text.replace(/[{}"]/g, '\\$&');
/** The first alternative that matches is taken, so longer ones come first. */
const packable = new RegExp([UUID, ...FRAGMENTS.toSorted((a, b) => b.length - a.length).map(escaped)].join('|'), 'g');
const unsafe = new RegExp(`[${MARK}-\u001f]`);
const UUID_CODE = UUID_TOKEN.charCodeAt(0);
/** The 16 bytes of a UUID in base64url. */
const PACKED_UUID_LENGTH = 22;

/**
 * Packs a compact JSON text, or returns it as it is: a text that is long, or has characters between its values that
 * packing uses.
 */
export function packData(json: string): string {
  if (json.length > MAX_PACKED_LENGTH || unsafe.test(json)) return json;
  return MARK + json.replace(packable, (found) => tokenOf.get(found) ?? UUID_TOKEN + packUuid(found));
}

/** Whether a text was packed. */
export function isPacked(text: string): boolean {
  return text.startsWith(MARK);
}

/**
 * The JSON text that was packed. A loop takes half of what a regular expression does that calls a function for each
 * token.
 */
export function unpackData(text: string): string {
  let json = '';
  // Where the characters begin that stand for themselves.
  let plainAt = 1;
  for (let i = 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x1f) continue;
    if (i > plainAt) json += text.slice(plainAt, i);
    if (code === UUID_CODE) {
      json += unpackUuid(text.slice(i + 1, i + 1 + PACKED_UUID_LENGTH));
      i += PACKED_UUID_LENGTH;
    } else json += fragmentAt[code];
    plainAt = i + 1;
  }
  return json + text.slice(plainAt);
}

/** A UUID as 22 characters. */
export function packUuid(uuid: string): string {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('base64url');
}

export function unpackUuid(text: string): string {
  const hex = Buffer.from(text, 'base64url').toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
