/**
 * Random ids of traces and spans, made many at once and in each form that is needed. With the SDK's generator, the
 * start of a span takes twice as long.
 */
export const TRACE_ID_BYTES = 16;
/** Of a trace and a span. */
export const ID_BYTES = 24;
/** Ids that are made at once. */
const COUNT = 170;
/** In base64url three bytes are four characters, so the ids of each span begin with a whole character. */
const [HEX_LENGTH, PACKED_LENGTH] = [2 * ID_BYTES, (4 * ID_BYTES) / 3];

/** The ids for one span after the other. */
export class SpanIds {
  /** The bytes of many ids; never changed. */
  bytes: Buffer = Buffer.alloc(0);
  /** The offset of the current ids in `bytes`. */
  at = 0;
  #hex = '';
  #packed = '';
  #index = COUNT;

  /** Goes on to the next ids. */
  next(): void {
    this.#index += 1;
    if (this.#index >= COUNT) {
      this.bytes = randomIds();
      this.#hex = this.bytes.toString('hex');
      this.#packed = this.bytes.toString('base64url');
      this.#index = 0;
    }
    this.at = this.#index * ID_BYTES;
  }
  get traceId(): string {
    const from = this.#index * HEX_LENGTH;
    return this.#hex.slice(from, from + 2 * TRACE_ID_BYTES);
  }
  get spanId(): string {
    const to = (this.#index + 1) * HEX_LENGTH;
    return this.#hex.slice(to - 2 * (ID_BYTES - TRACE_ID_BYTES), to);
  }
  /** Both, as base64url. */
  get packed(): string {
    const from = this.#index * PACKED_LENGTH;
    return this.#packed.slice(from, from + PACKED_LENGTH);
  }
}

/** Random as the SDK's are: unlikely to come twice, and no secret. */
function randomIds(): Buffer {
  const words = new Uint32Array((COUNT * ID_BYTES) / Uint32Array.BYTES_PER_ELEMENT);
  for (let i = 0; i < words.length; i++) words[i] = Math.random() * 2 ** 32;
  return Buffer.from(words.buffer);
}
