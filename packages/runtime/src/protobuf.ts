/** The parts of protobuf's encoding that need no buffer of their own: tags, lengths, and the names of attributes. */

export const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
/** What precedes the value of a field. */
export const tag = (field: number, wireType: number) => (field << 3) | wireType;

/** Bytes of a length field that is written before the length is known: enough for 256 MiB. */
export const LENGTH_BYTES = 4;

/** The names that were encoded before. There are a few dozen. */
const keys = new Map<string, Buffer>();

/** Returns the name of an attribute as the field `key` of a `KeyValue`. */
export function encodedKey(key: string): Buffer {
  let encoded = keys.get(key);
  if (encoded === undefined) {
    const name = Buffer.from(key);
    // Names of one byte of length, and those of two: up to 255 characters, from OTEL_RESOURCE_ATTRIBUTES.
    const length = name.length < 0x80 ? [name.length] : [(name.length & 0x7f) | 0x80, name.length >> 7];
    encoded = Buffer.concat([Buffer.of(tag(1, BYTES), ...length), name]);
    // No name comes from a receiver or publisher; the limit is a safeguard in case that changes.
    if (keys.size < 1_000) keys.set(key, encoded);
  }
  return encoded;
}

/** Writes a length in `LENGTH_BYTES`: a varint may have more bytes than it needs. */
export function writeLength(buffer: Buffer, at: number, length: number): void {
  let rest = length;
  for (let i = 0; i < LENGTH_BYTES - 1; i++, rest >>>= 7) buffer[at + i] = (rest & 0x7f) | 0x80;
  buffer[at + LENGTH_BYTES - 1] = rest;
}

/** How many bytes a varint takes. */
export function lengthOfVarint(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}

export function writeFixed32(buffer: Buffer, at: number, value: number): number {
  buffer[at] = value;
  buffer[at + 1] = value >>> 8;
  buffer[at + 2] = value >>> 16;
  buffer[at + 3] = value >>> 24;
  return at + 4;
}

const MS_PER_S = 1e3;
const NS_PER_S = 1e9;
const NS_PER_MS = 1e6;

/** The second of the last time, and its start in nanoseconds since 1970: high * 2^32 + low. */
const second = { startMs: Number.NaN, high: 0, low: 0 };

/** Writes a time in milliseconds since 1970 as nanoseconds in 8 bytes. */
export function writeTime(buffer: Buffer, at: number, ms: number): void {
  let intoMs = ms - second.startMs;
  if (!(intoMs >= 0 && intoMs < MS_PER_S)) {
    const seconds = Math.floor(ms / MS_PER_S);
    const ns = BigInt(seconds) * BigInt(NS_PER_S);
    second.startMs = seconds * MS_PER_S;
    second.high = Number(ns >> 32n);
    second.low = Number(ns & 0xffffffffn);
    intoMs = ms - second.startMs;
  }
  const low = second.low + Math.round(intoMs * NS_PER_MS);
  const isOver = low >= 2 ** 32;
  writeFixed32(buffer, at, isOver ? low - 2 ** 32 : low);
  writeFixed32(buffer, at + 4, isOver ? second.high + 1 : second.high);
}
