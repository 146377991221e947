/** The parts of protobuf's encoding that need no buffer of their own: tags, lengths, and the names of attributes. */

export const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
/** What precedes the value of a field. */
export const tag = (field: number, wireType: number) => (field << 3) | wireType;

/** The length of a message that is not known before: up to 256 MiB. */
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
    // No name is that of a receiver or publisher; the limit is there for whoever adds one.
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
