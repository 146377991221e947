/**
 * Random ids of traces and spans, made many at once and in each form that is needed. With the SDK's generator, the
 * start of a span takes twice as long.
 */
import { SPAN_ID_BYTES, TRACE_ID_BYTES } from '@posthorn/core';

/** Of a trace and a span. */
export const ID_BYTES = TRACE_ID_BYTES + SPAN_ID_BYTES;
/** Ids that are made at once. */
const COUNT = 170;
/** In base64url three bytes are four characters, so the ids of each span begin with a whole character. */
const [HEX_LENGTH, PACKED_LENGTH] = [2 * ID_BYTES, (4 * ID_BYTES) / 3];

/** The ids of many spans, each in all forms. */
export class IdBlock {
  readonly bytes = randomIds();
  readonly #hex = this.bytes.toString('hex');
  #packed: string | undefined;

  traceId(index: number): string {
    const from = index * HEX_LENGTH;
    return this.#hex.slice(from, from + 2 * TRACE_ID_BYTES);
  }

  spanId(index: number): string {
    const to = (index + 1) * HEX_LENGTH;
    return this.#hex.slice(to - 2 * SPAN_ID_BYTES, to);
  }

  /** Both, as base64url. */
  packed(index: number): string {
    const from = index * PACKED_LENGTH;
    this.#packed ??= this.bytes.toString('base64url');
    return this.#packed.slice(from, from + PACKED_LENGTH);
  }
}

/** The ids for one span after the other. */
export class SpanIds {
  block = new IdBlock();
  /** Of the current ids in their block. */
  index = -1;

  /** Goes on to the next ids. */
  next(): void {
    this.index += 1;
    if (this.index < COUNT) return;
    this.block = new IdBlock();
    this.index = 0;
  }

  get traceId(): string {
    return this.block.traceId(this.index);
  }
}

/** Each byte is random, as those of the SDK's ids: unlikely to come twice, and no secret. */
function randomIds(): Buffer {
  const words = new Uint32Array((COUNT * ID_BYTES) / Uint32Array.BYTES_PER_ELEMENT);
  for (let i = 0; i < words.length; i++) words[i] = Math.random() * 2 ** 32;
  return Buffer.from(words.buffer);
}
