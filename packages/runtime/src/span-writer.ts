/**
 * Writes spans as protobuf (opentelemetry/proto/trace/v1/trace.proto) into the buffer of their batch, some at a time.
 * One by one, as they end, would cost twice as much, and a whole batch would keep the event loop busy for milliseconds.
 * Once written, nothing of a span is left for the garbage collector. The SDK's serializer costs too much of ingest's
 * CPU (docs/decisions, 49 and 62).
 */
import type { Attributes, Link } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import {
  BYTES,
  encodedKey,
  FIXED32,
  FIXED64,
  LENGTH_BYTES,
  lengthOfVarint,
  tag,
  VARINT,
  writeLength,
} from './protobuf.ts';
import { ID_BYTES, TRACE_ID_BYTES } from './span-ids.ts';
import type { SpanRecord } from './span-record.ts';
import type { SpanShape } from './tracing.ts';

/** The size of the first buffer, before it is known how large a batch is. */
const FIRST_BYTES = 64 * 1024;
/** Spans that are written at a time. */
const MAX_WAITING = 32;
/** Room for the fields of fixed length that follow a check: less than a hundred bytes of a span. */
const MARGIN = 128;
const NS_PER_S = 1e9;
const NS_PER_MS = 1e6;
const MS_PER_S = 1e3;
/** The flags of a span say whether its parent is of another process; that is known, and true. */
const PARENT_IS_REMOTE = 0x300;
const IS_KNOWN = 0x100;

/** The request that exports some spans. */
export interface SpanBatch {
  bytes: Uint8Array;
  /** Of spans. */
  length: number;
}

/** The writer of a process, all of whose spans have the same resource and scope. */
export class SpanWriter {
  /** Of the next batch: room for what precedes the spans, and the spans. */
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  /** Where it goes on. */
  #at = 0;
  #waiting: SpanRecord[] = [];
  #written = 0;
  /** What precedes the spans of a batch. Its lengths are those of a batch without spans. */
  readonly #head: Buffer;
  readonly #scopeAt: number;

  constructor({ resource, instrumentationScope: scope }: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>) {
    this.#begin(1);
    const resourceAt = this.#begin(1);
    this.#attributes(1, resource.attributes);
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
    return this.#written + this.#waiting.length;
  }

  /** Takes a span that has ended into the next batch. It is written soon. */
  add(span: SpanRecord): void {
    this.#waiting.push(span);
    if (this.#waiting.length === MAX_WAITING) this.#writeWaiting();
  }

  /** Ends the batch; undefined if it has no span. */
  takeBatch(): SpanBatch | undefined {
    this.#writeWaiting();
    if (this.#written === 0) return undefined;
    const bytes = this.#buffer.subarray(0, this.#at);
    writeLength(bytes, 1, this.#at - 1 - LENGTH_BYTES);
    writeLength(bytes, this.#scopeAt - LENGTH_BYTES, this.#at - this.#scopeAt);
    const batch = { bytes, length: this.#written };
    // The next one is likely to be as large.
    this.#buffer = Buffer.allocUnsafeSlow(this.#at + (this.#at >> 3) + MARGIN);
    this.#at = this.#head.length;
    this.#written = 0;
    this.#buffer.set(this.#head);
    return batch;
  }

  #writeWaiting(): void {
    if (this.#waiting.length === 0) return;
    for (const span of this.#waiting) this.#span(span);
    this.#written += this.#waiting.length;
    this.#waiting = [];
  }

  #span(span: SpanRecord): void {
    const { shape } = span;
    const template = shape.written ?? this.#template(shape);
    this.#ensure(template.length);
    const startsAt = this.#begin(2);
    this.#idsAndTimes(span);
    this.#buffer.set(template, this.#at);
    this.#at += template.length;
    this.#attributes(9, span.attributes);
    if (span.droppedAttributesCount > 0) this.#integer(10, span.droppedAttributesCount);
    for (const link of span.links) this.#link(link);
    if (span.status.code !== 0) {
      const statusAt = this.#begin(15);
      this.#integer(3, span.status.code);
      this.#end(statusAt);
    }
    this.#end(startsAt);
  }

  /** The fields of a fixed length, for which there is room. */
  #idsAndTimes({ ids, idsAt, context, parentSpanContext: parent, kind, startMs, endMs }: SpanRecord): void {
    const buffer = this.#buffer;
    let at = this.#at;
    buffer[at] = tag(1, BYTES);
    buffer[at + 1] = TRACE_ID_BYTES;
    if (parent) buffer.write(parent.traceId, at + 2, 'hex');
    else for (let i = 0; i < TRACE_ID_BYTES; i++) buffer[at + 2 + i] = ids[idsAt + i] ?? 0;
    at += 2 + TRACE_ID_BYTES;
    buffer[at] = tag(2, BYTES);
    buffer[at + 1] = ID_BYTES - TRACE_ID_BYTES;
    at += 2 - TRACE_ID_BYTES;
    for (let i = TRACE_ID_BYTES; i < ID_BYTES; i++) buffer[at + i] = ids[idsAt + i] ?? 0;
    at += ID_BYTES;
    if (parent) {
      buffer[at] = tag(4, BYTES);
      buffer[at + 1] = ID_BYTES - TRACE_ID_BYTES;
      buffer.write(parent.spanId, at + 2, 'hex');
      at += 2 + ID_BYTES - TRACE_ID_BYTES;
    }
    this.#at = at;
    this.#integer(6, kind + 1);
    this.#time(7, startMs);
    this.#time(8, endMs);
    this.#flags(16, context.flags | (parent ? PARENT_IS_REMOTE : IS_KNOWN));
  }

  /** Name and attributes of a shape, written once. They are written where the next span will be. */
  #template(shape: SpanShape): Buffer {
    const startsAt = this.#at;
    this.#text(5, shape.name);
    this.#attributes(9, shape.attributes);
    const template = Buffer.from(this.#buffer.subarray(startsAt, this.#at));
    this.#at = startsAt;
    shape.written = template;
    return template;
  }

  #link({ context }: Link): void {
    const startsAt = this.#begin(13);
    this.#hex(1, context.traceId);
    this.#hex(2, context.spanId);
    this.#flags(6, context.traceFlags | (context.isRemote ? PARENT_IS_REMOTE : IS_KNOWN));
    this.#end(startsAt);
  }

  #attributes(field: number, attributes: Attributes): void {
    for (const key in attributes) {
      const value = attributes[key];
      if (value === undefined) continue;
      const name = encodedKey(key);
      if (typeof value === 'string') {
        const startsAt = this.#at;
        // Nearly all texts are ASCII.
        if (!this.#textValue(field, name, value, value.length)) {
          this.#at = startsAt;
          this.#textValue(field, name, value, Buffer.byteLength(value));
        }
      } else if (typeof value === 'boolean') {
        this.#keyValue(field, name, 2);
        this.#buffer[this.#at++] = tag(2, VARINT);
        this.#buffer[this.#at++] = Number(value);
      } else if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) {
        this.#keyValue(field, name, 1 + lengthOfVarint(value));
        this.#buffer[this.#at++] = tag(3, VARINT);
        this.#varint(value);
      } else {
        this.#keyValue(field, name, 9);
        this.#buffer[this.#at++] = tag(4, FIXED64);
        this.#at = this.#buffer.writeDoubleLE(Number(value), this.#at);
      }
    }
  }

  /** A `KeyValue` with a text that takes so many bytes. Returns false if it takes more: then it must be written again. */
  #textValue(field: number, name: Buffer, text: string, bytes: number): boolean {
    this.#keyValue(field, name, 1 + lengthOfVarint(bytes) + bytes);
    this.#buffer[this.#at++] = tag(1, BYTES);
    this.#varint(bytes);
    return this.#characters(text, bytes);
  }

  /** The beginning of a `KeyValue`, up to the content of its value. */
  #keyValue(field: number, name: Buffer, ofValue: number): void {
    const length = name.length + 1 + lengthOfVarint(ofValue) + ofValue;
    this.#ensure(length);
    this.#buffer[this.#at++] = tag(field, BYTES);
    this.#varint(length);
    const buffer = this.#buffer;
    const at = this.#at;
    for (let i = 0; i < name.length; i++) buffer[at + i] = name[i] ?? 0;
    this.#at = at + name.length;
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

  /** Returns whether a text takes so many bytes, for which there is room and for `MARGIN` more. */
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

  #time(field: number, ms: number): void {
    this.#ensure(0);
    const seconds = Math.floor(ms / MS_PER_S);
    const ns = Math.round((ms % MS_PER_S) * NS_PER_MS);
    // In parts, since nanoseconds since 1970 are beyond what a number holds exactly: high * 2^16 + low.
    const high = Math.floor(seconds / 2 ** 16) * NS_PER_S;
    const low = (high % 2 ** 16) * 2 ** 16 + (seconds % 2 ** 16) * NS_PER_S + ns;
    this.#buffer[this.#at++] = tag(field, FIXED64);
    this.#fixed32(low % 2 ** 32);
    this.#fixed32(Math.floor(high / 2 ** 16) + Math.floor(low / 2 ** 32));
  }

  #flags(field: number, flags: number): void {
    this.#ensure(0);
    // The tag of a field above 15 takes two bytes.
    this.#varint(tag(field, FIXED32));
    this.#fixed32(flags);
  }

  #fixed32(value: number): void {
    const buffer = this.#buffer;
    const at = this.#at;
    buffer[at] = value;
    buffer[at + 1] = value >>> 8;
    buffer[at + 2] = value >>> 16;
    buffer[at + 3] = value >>> 24;
    this.#at = at + 4;
  }

  /** Begins a message whose length `end` writes; returns where it begins. */
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

  /** Makes room for so many bytes, and some fields of fixed length: if need be in a larger buffer, into which the batch moves. */
  #ensure(bytes: number): void {
    if (this.#at + bytes + MARGIN <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + bytes + MARGIN));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}
