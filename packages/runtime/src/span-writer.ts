/**
 * Writes spans as protobuf (opentelemetry/proto/trace/v1/trace.proto) into the buffer of their batch, each when it
 * ends. Most are a copy of the last one of their shape and error with other ids, times, flags and texts. The SDK's
 * serializer costs too much of ingest's CPU (docs/decisions, 49 and 62).
 */
import { SpanStatusCode } from '@opentelemetry/api';
import { SPAN_ID_BYTES, TRACE_ID_BYTES, type TraceContext } from '@posthorn/core';
import {
  BYTES,
  encodedKey,
  FIXED32,
  FIXED64,
  LENGTH_BYTES,
  lengthOfVarint,
  tag,
  VARINT,
  writeFixed32,
  writeLength,
  writeTime,
} from './protobuf.ts';
import { ID_BYTES } from './span-ids.ts';
import { KINDS, type SpanOrigin } from './span-record.ts';
import type { StartedSpan } from './started-span.ts';
import type { AttributeValue, SpanEnd, WrittenShape } from './tracing.ts';

/** The size of the first buffer, before it is known how large a batch is. */
const FIRST_BYTES = 64 * 1024;
/**
 * Room that `#ensure` always leaves for the fields of fixed length that follow: less than a hundred bytes in a span.
 */
const MARGIN = 128;
/** Spans of a shape that are kept to copy them: a receiver fails in few ways, in first attempts and in retries. */
const MAX_KEPT = 8;
/** Flags besides those of the trace: whether the parent is of another process is known (0x100), and true (0x200). */
const PARENT_IS_REMOTE = 0x300;
const IS_KNOWN = 0x100;

/** Offsets of the ids, times and flags from the start of each span. */
const TRACE_ID_AT = 1 + LENGTH_BYTES + 2;
const SPAN_ID_AT = TRACE_ID_AT + TRACE_ID_BYTES + 2;
const START_AT = SPAN_ID_AT + SPAN_ID_BYTES + 1;
const END_AT = START_AT + 8 + 1;
const FLAGS_AT = END_AT + 8 + 2;

/** The ids of a parent, while they are copied from it. */
const parentIds = Buffer.alloc(ID_BYTES);

/** The request that exports some spans. */
export interface SpanBatch {
  bytes: Uint8Array;
  /** Number of spans. */
  length: number;
}

/** The writer of a process, all of whose spans have the same resource and scope. */
export class SpanWriter {
  /** The next batch: its head, and the spans so far. */
  #buffer: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  /** A buffer of a batch that is not needed any more. */
  #spare: Buffer | undefined;
  /** The offset of the next byte to write. */
  #at = 0;
  #length = 0;
  /** What precedes the spans of a batch. Its lengths are those of a batch without spans. */
  readonly #head: Buffer;
  readonly #scopeAt: number;

  constructor({ resource, instrumentationScope: scope }: SpanOrigin) {
    this.#begin(1);
    const resourceAt = this.#begin(1);
    for (const [name, value] of Object.entries(resource.attributes))
      if (value !== undefined) this.#attribute(1, name, value as AttributeValue);
    this.#end(resourceAt);
    this.#scopeAt = this.#begin(2);
    const scopeAt = this.#begin(1);
    this.#text(1, scope.name);
    if (scope.version !== undefined) this.#text(2, scope.version);
    this.#end(scopeAt);
    this.#head = Buffer.from(this.#buffer.subarray(0, this.#at));
  }

  /** Spans of the next batch. */
  get length(): number {
    return this.#length;
  }

  /** Writes a span that has ended into the next batch. */
  add(span: StartedSpan, end: SpanEnd): void {
    this.#length += 1;
    const { shape, values, error, link } = end;
    shape.written ??= [];
    const kept = shape.written;
    const like = link ? -1 : findLike(kept, error, values);
    const earlier = kept[like];
    if (earlier && this.#writeLike(earlier, span, values)) return;
    const startsAt = this.#at;
    const written = this.#write(span, end);
    if (link) return;
    if (!earlier && kept.length === MAX_KEPT) kept.shift();
    // Memory of its own: a part of Buffer's pool would keep all 64 KiB of it.
    const bytes = Buffer.allocUnsafeSlow(this.#at - startsAt);
    this.#buffer.copy(bytes, 0, startsAt, this.#at);
    kept[earlier ? like : kept.length] = { ...written, bytes };
  }

  /** Ends the batch; undefined if it has no span. */
  takeBatch(): SpanBatch | undefined {
    if (this.#length === 0) return undefined;
    const bytes = this.#buffer.subarray(0, this.#at);
    writeLength(bytes, 1, this.#at - 1 - LENGTH_BYTES);
    writeLength(bytes, this.#scopeAt - LENGTH_BYTES, this.#at - this.#scopeAt);
    const batch = { bytes, length: this.#length };
    // The next one is likely to be as large.
    this.#buffer = this.#takeSpare(this.#at) ?? Buffer.allocUnsafeSlow(this.#at + (this.#at >> 3) + MARGIN);
    this.#at = this.#head.length;
    this.#length = 0;
    this.#buffer.set(this.#head);
    return batch;
  }

  /** Takes back the buffer of a batch that nobody needs any more, for a later batch: V8 need not collect it. */
  giveBack({ bytes }: SpanBatch): void {
    this.#spare = Buffer.from(bytes.buffer as ArrayBuffer);
  }

  #takeSpare(bytes: number): Buffer | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare && spare.length >= bytes ? spare : undefined;
  }

  /**
   * Writes a span as a copy of one that was written before. Returns false, and adds nothing, if more than ids, times,
   * flags and values of equal length differ.
   */
  #writeLike(written: WrittenShape, span: StartedSpan, values: SpanEnd['values']): boolean {
    const { bytes, parentAt, places } = written;
    if ((parentAt === undefined) !== (span.parent === undefined)) return false;
    this.#ensure(bytes.length);
    const startsAt = this.#at;
    this.#buffer.set(bytes, startsAt);
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value === written.values[i]) continue;
      const place = places[i];
      if (!place || typeof value !== typeof written.values[i]) return false;
      const at = startsAt + place.at;
      if (isByte(value)) this.#buffer[at] = value;
      // A text that is not ASCII takes more bytes.
      else if (typeof value !== 'string' || value.length !== place.length) return false;
      else if (this.#buffer.write(value, at) !== place.length) return false;
    }
    this.#idsTimesAndFlags(startsAt, span, parentAt);
    this.#at = startsAt + bytes.length;
    return true;
  }

  /** Writes a span without a copy. Returns what `#writeLike` needs to know about it. */
  #write(span: StartedSpan, { shape, values, error, link }: SpanEnd): Omit<WrittenShape, 'bytes'> {
    const startsAt = this.#at;
    const contentAt = this.#begin(2);
    this.#gap(1, BYTES, TRACE_ID_BYTES);
    this.#gap(2, BYTES, SPAN_ID_BYTES);
    this.#gap(7, FIXED64, 8);
    this.#gap(8, FIXED64, 8);
    this.#flags(16, span.parent ? PARENT_IS_REMOTE : IS_KNOWN);
    this.#integer(6, KINDS[shape.kind] + 1);
    const parentAt = span.parent && this.#gap(4, BYTES, SPAN_ID_BYTES) - startsAt;
    this.#text(5, shape.name);
    for (const [name, value] of Object.entries(shape.attributes))
      if (value !== undefined) this.#attribute(9, name, value);
    const places = shape.varying.map((name, i) => {
      const value = values[i];
      if (value !== undefined) this.#attribute(9, name, value);
      if (typeof value !== 'string' && !isByte(value)) return undefined;
      const length = typeof value === 'string' ? Buffer.byteLength(value) : 1;
      return { at: this.#at - length - startsAt, length };
    });
    if (error !== undefined) this.#error(error);
    if (link) this.#link(link);
    this.#end(contentAt);
    this.#idsTimesAndFlags(startsAt, span, parentAt);
    return { error, parentAt, places, values: values.map((value, i) => this.#own(value, startsAt, places[i])) };
  }

  /** Reads a text back from the buffer: the original may be a slice that keeps a longer text in memory. */
  #own(value: SpanEnd['values'][number], startsAt: number, place: WrittenShape['places'][number]): typeof value {
    const from = startsAt + (place?.at ?? 0);
    return place && typeof value === 'string' ? this.#buffer.toString('utf8', from, from + place.length) : value;
  }

  #idsTimesAndFlags(startsAt: number, span: StartedSpan, parentAt?: number): void {
    const { block, index, parent, startMs, endMs } = span;
    const buffer = this.#buffer;
    const ids = block.bytes;
    const idsAt = index * ID_BYTES;
    copy(ids, idsAt + TRACE_ID_BYTES, buffer, startsAt + SPAN_ID_AT, SPAN_ID_BYTES);
    writeTime(buffer, startsAt + START_AT, startMs);
    writeTime(buffer, startsAt + END_AT, endMs);
    // Those of the trace are the lowest byte.
    buffer[startsAt + FLAGS_AT] = span.flags;
    if (parent && parentAt !== undefined) {
      if (parent.bytes === undefined) parentIds.write(parent.traceId + parent.spanId, 'hex');
      const { bytes = parentIds, at = 0 } = parent;
      copy(bytes, at, buffer, startsAt + TRACE_ID_AT, TRACE_ID_BYTES);
      copy(bytes, at + TRACE_ID_BYTES, buffer, startsAt + parentAt, SPAN_ID_BYTES);
    } else copy(ids, idsAt, buffer, startsAt + TRACE_ID_AT, TRACE_ID_BYTES);
  }

  /** Reserves a field of fixed length that is filled later. Returns the offset of its value. */
  #gap(field: number, type: number, bytes: number): number {
    this.#ensure(0);
    this.#buffer[this.#at++] = tag(field, type);
    if (type === BYTES) this.#buffer[this.#at++] = bytes;
    this.#at += bytes;
    return this.#at - bytes;
  }

  #error(error: string): void {
    this.#attribute(9, 'error.type', error);
    const statusAt = this.#begin(15);
    this.#integer(3, SpanStatusCode.ERROR);
    this.#end(statusAt);
  }

  #link(context: TraceContext): void {
    const startsAt = this.#begin(13);
    this.#hex(1, context.traceId);
    this.#hex(2, context.spanId);
    this.#flags(6, context.flags | PARENT_IS_REMOTE);
    this.#end(startsAt);
  }

  #attribute(field: number, key: string, value: AttributeValue): void {
    const name = encodedKey(key);
    if (typeof value === 'string') {
      const startsAt = this.#at;
      // Nearly all texts are ASCII.
      if (this.#textValue(field, name, value, value.length)) return;
      this.#at = startsAt;
      this.#textValue(field, name, value, Buffer.byteLength(value));
    } else if (typeof value === 'boolean') {
      this.#keyValue(field, name, 2);
      this.#buffer[this.#at++] = tag(2, VARINT);
      this.#buffer[this.#at++] = Number(value);
    } else if (Number.isSafeInteger(value) && value >= 0) {
      this.#keyValue(field, name, 1 + lengthOfVarint(value));
      this.#buffer[this.#at++] = tag(3, VARINT);
      this.#varint(value);
    } else {
      this.#keyValue(field, name, 9);
      this.#buffer[this.#at++] = tag(4, FIXED64);
      this.#at = this.#buffer.writeDoubleLE(value, this.#at);
    }
  }

  /** Writes a `KeyValue` with a text of this many bytes. Returns false if the text takes more: write it again then. */
  #textValue(field: number, name: Buffer, text: string, bytes: number): boolean {
    this.#keyValue(field, name, 1 + lengthOfVarint(bytes) + bytes);
    this.#buffer[this.#at++] = tag(1, BYTES);
    this.#varint(bytes);
    return this.#characters(text, bytes);
  }

  /** Writes the beginning of a `KeyValue`, up to the content of its value, which takes `ofValue` bytes. */
  #keyValue(field: number, name: Buffer, ofValue: number): void {
    const length = name.length + 1 + lengthOfVarint(ofValue) + ofValue;
    this.#ensure(length);
    this.#buffer[this.#at++] = tag(field, BYTES);
    this.#varint(length);
    copy(name, 0, this.#buffer, this.#at, name.length);
    this.#at += name.length;
    this.#buffer[this.#at++] = tag(2, BYTES);
    this.#varint(ofValue);
  }

  #text(field: number, text: string): void {
    const startsAt = this.#at;
    for (let bytes = text.length; ; bytes = Buffer.byteLength(text)) {
      this.#ensure(bytes);
      this.#at = startsAt;
      this.#buffer[this.#at++] = tag(field, BYTES);
      this.#varint(bytes);
      if (this.#characters(text, bytes)) return;
    }
  }

  /** Writes a text. Returns whether it takes this many bytes. There must be room for them and `MARGIN` more. */
  #characters(text: string, bytes: number): boolean {
    // Faster than a loop over the characters, since V8 has many kinds of strings.
    const written = this.#buffer.write(text, this.#at);
    this.#at += bytes;
    return written === bytes;
  }

  #hex(field: number, digits: string): void {
    this.#ensure(digits.length);
    this.#buffer[this.#at++] = tag(field, BYTES);
    this.#buffer[this.#at++] = digits.length / 2;
    this.#at += this.#buffer.write(digits, this.#at, 'hex');
  }

  #integer(field: number, value: number): void {
    this.#ensure(0);
    this.#buffer[this.#at++] = tag(field, VARINT);
    this.#varint(value);
  }

  #flags(field: number, flags: number): void {
    this.#ensure(0);
    // The tag of a field above 15 takes two bytes.
    this.#varint(tag(field, FIXED32));
    this.#at = writeFixed32(this.#buffer, this.#at, flags);
  }

  /** Begins a message whose length `#end` writes. Returns the offset of its content. */
  #begin(field: number): number {
    this.#ensure(0);
    this.#buffer[this.#at++] = tag(field, BYTES);
    this.#at += LENGTH_BYTES;
    return this.#at;
  }

  #end(startsAt: number): void {
    writeLength(this.#buffer, startsAt - LENGTH_BYTES, this.#at - startsAt);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#at++] = rest;
  }

  /** Makes room for this many bytes and `MARGIN` more. Moves the batch into a larger buffer if necessary. */
  #ensure(bytes: number): void {
    if (this.#at + bytes + MARGIN <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + bytes + MARGIN));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/** Whether a value is a number that takes one byte, such as the count of a retry. */
function isByte(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 0x80;
}

/** The index of the kept span that has the same error, and values where this one has some; -1 if none does. */
function findLike(kept: readonly WrittenShape[], error: string | undefined, values: SpanEnd['values']): number {
  for (let i = 0; i < kept.length; i++)
    if (kept[i]?.error === error && haveSame(kept[i]?.values ?? [], values)) return i;
  return -1;
}

function haveSame(some: SpanEnd['values'], others: SpanEnd['values']): boolean {
  for (let i = 0; i < others.length; i++) if ((some[i] === undefined) !== (others[i] === undefined)) return false;
  return true;
}

/** For a few bytes, faster than a call of `Buffer`'s own. */
function copy(from: Uint8Array, fromAt: number, to: Buffer, at: number, bytes: number): void {
  for (let i = 0; i < bytes; i++) to[at + i] = from[fromAt + i] ?? 0;
}
