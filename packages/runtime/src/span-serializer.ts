/**
 * Writes spans as protobuf (opentelemetry/proto/trace/v1/trace.proto), some at a time: one by one, as they end, costs twice as much, and a whole
 * batch keeps the event loop busy for milliseconds. The SDK's serializer costs too much of ingest's CPU (docs/decisions, 49).
 */
import { type Attributes, type Link, type SpanContext, TraceFlags } from '@opentelemetry/api';
import { type ISerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { SpanRecord } from './span-record.ts';
import type { CommonAttributes } from './tracing.ts';

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
const tag = (field: number, wireType: number) => (field << 3) | wireType;

/** The length of a message that is not known before: up to 256 MiB. */
const LENGTH_BYTES = 4;
/** Spans are written into buffers of this size. Each is free when the last of its spans has been exported. */
const CHUNK_BYTES = 64 * 1024;
/** Spans that are written at a time. */
const MAX_WAITING = 32;
/** Room for the fields of fixed length that follow a check. */
const MARGIN = 64;
const NS_PER_S = 1e9;
const NS_PER_MS = 1e6;
const MS_PER_S = 1e3;
/** The flags of a span say whether its parent is of another process; that is known, and true. */
const PARENT_IS_REMOTE = 0x300;
const IS_KNOWN = 0x100;

interface Range {
  buffer: Buffer;
  from: number;
  to: number;
}

/**
 * What waits for its export in place of a span: where that is written. Spans wait for up to seconds; the less of them stays, the less garbage collection
 * has to move. Has what the SDK's queue asks of a span.
 */
export class QueuedSpan {
  /** Until it is written. */
  span: SpanRecord | undefined;
  range: Range | undefined;

  constructor(span: SpanRecord) {
    this.span = span;
  }
  /** Only spans that are sampled are recorded. */
  spanContext(): typeof SAMPLED {
    return SAMPLED;
  }
  get resource(): typeof NO_ATTRIBUTES_TO_WAIT_FOR {
    return NO_ATTRIBUTES_TO_WAIT_FOR;
  }
}

const SAMPLED = { traceFlags: TraceFlags.SAMPLED };
const NO_ATTRIBUTES_TO_WAIT_FOR = { asyncAttributesPending: false };

/** The names of attributes, as the field `key` of a `KeyValue`. There are a few dozen. */
const keys = new Map<string, Buffer>();

function encodedKey(key: string): Buffer {
  let encoded = keys.get(key);
  if (encoded === undefined) {
    const name = Buffer.from(key);
    encoded = Buffer.concat([Buffer.of(tag(1, BYTES), name.length), name]);
    // No name is that of a receiver or publisher; the limit is there for whoever adds one.
    if (keys.size < 1_000) keys.set(key, encoded);
  }
  return encoded;
}

/** The serializer of a process, all of whose spans have the same resource and scope. */
export class SpanSerializer implements ISerializer<QueuedSpan[], unknown> {
  #buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** Where the span that is being written begins, and where it goes on. */
  #from = 0;
  #at = 0;
  #waiting: QueuedSpan[] = [];
  readonly #resource: Buffer;
  readonly #scope: Buffer;

  constructor({ resource, instrumentationScope: scope }: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>) {
    const resourceAt = this.#begin(1);
    this.#attributes(1, resource.attributes);
    this.#end(resourceAt);
    this.#resource = this.#buffer.subarray(0, this.#at);
    this.#from = this.#at;
    const scopeAt = this.#begin(1);
    this.#text(1, scope.name);
    if (scope.version !== undefined) this.#text(2, scope.version);
    this.#end(scopeAt);
    this.#scope = this.#buffer.subarray(this.#from, this.#at);
  }

  /** Takes a span that has ended, to be written soon; returns what to queue for its export. */
  add(span: SpanRecord): QueuedSpan {
    const queued = new QueuedSpan(span);
    this.#waiting.push(queued);
    if (this.#waiting.length === MAX_WAITING) this.#writeWaiting();
    return queued;
  }

  /** The request for spans that this has taken. */
  serializeRequest(spans: readonly QueuedSpan[]): Uint8Array | undefined {
    if (spans.length === 0) return undefined;
    this.#writeWaiting();
    const ranges: Range[] = [];
    let bytes = 0;
    for (const { range } of spans) {
      if (!range) throw new TypeError('The span is of another serializer.');
      const last = ranges.at(-1);
      bytes += range.to - range.from;
      // Most spans follow one another.
      if (last && last.buffer === range.buffer && last.to === range.from) last.to = range.to;
      else ranges.push({ ...range });
    }
    const ofScope = beginning(2, this.#scope.length + bytes);
    const ofResource = beginning(1, this.#resource.length + ofScope.length + this.#scope.length + bytes);
    const parts = ranges.map(({ buffer, from, to }) => buffer.subarray(from, to));
    return Buffer.concat([ofResource, this.#resource, ofScope, this.#scope, ...parts]);
  }

  deserializeResponse(data: Uint8Array): unknown {
    return ProtobufTraceSerializer.deserializeResponse(data);
  }

  #writeWaiting(): void {
    for (const queued of this.#waiting) {
      if (!queued.span) continue;
      this.#from = this.#at;
      this.#span(queued.span);
      queued.range = { buffer: this.#buffer, from: this.#from, to: this.#at };
      queued.span = undefined;
    }
    this.#waiting = [];
  }

  #span(span: SpanRecord): void {
    const { parentSpanContext: parent } = span;
    const startsAt = this.#begin(2);
    const { context } = span;
    this.#ids(1, context);
    if (parent) this.#hex(4, parent.spanId);
    this.#text(5, span.name);
    this.#integer(6, span.kind + 1);
    this.#time(7, span.startMs);
    this.#time(8, span.endMs);
    for (const common of span.common) this.#common(9, common);
    this.#attributes(9, span.attributes);
    if (span.droppedAttributesCount > 0) this.#integer(10, span.droppedAttributesCount);
    for (const link of span.links) this.#link(link);
    if (span.status.code !== 0) {
      const statusAt = this.#begin(15);
      this.#integer(3, span.status.code);
      this.#end(statusAt);
    }
    this.#flags(16, context.flags | (parent?.isRemote ? PARENT_IS_REMOTE : IS_KNOWN));
    this.#end(startsAt);
  }

  #link({ context }: Link): void {
    const startsAt = this.#begin(13);
    this.#ids(1, context);
    this.#flags(6, context.traceFlags | (context.isRemote ? PARENT_IS_REMOTE : IS_KNOWN));
    this.#end(startsAt);
  }

  #ids(field: number, { traceId, spanId }: Pick<SpanContext, 'traceId' | 'spanId'>): void {
    this.#hex(field, traceId);
    this.#hex(field + 1, spanId);
  }

  /** Attributes that are written only once, and copied after that. */
  #common(field: number, common: CommonAttributes): void {
    const { written } = common;
    if (written) {
      this.#ensure(written.length);
      this.#buffer.set(written, this.#at);
      this.#at += written.length;
    } else {
      const startsAt = this.#at - this.#from;
      this.#attributes(field, common.attributes);
      common.written = Buffer.from(this.#buffer.subarray(this.#from + startsAt, this.#at));
    }
  }

  #attributes(field: number, attributes: Attributes): void {
    for (const key in attributes) {
      const value = attributes[key];
      if (value === undefined) continue;
      const name = encodedKey(key);
      if (typeof value === 'string') {
        const startsAt = this.#at - this.#from;
        // Nearly all texts are ASCII.
        if (!this.#textValue(field, name, value, value.length)) {
          this.#at = this.#from + startsAt;
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
    const startsAt = this.#at - this.#from;
    for (let bytes = text.length; ; bytes = Buffer.byteLength(text)) {
      this.#ensure(bytes);
      this.#at = this.#from + startsAt;
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

  /** Begins a message whose length `end` writes; returns the place for it, from the beginning of the span. */
  #begin(field: number): number {
    this.#ensure(0);
    this.#buffer[this.#at++] = tag(field, BYTES);
    this.#at += LENGTH_BYTES;
    return this.#at - this.#from;
  }

  #end(startsAt: number): void {
    const from = this.#from + startsAt;
    writeLength(this.#buffer, from - LENGTH_BYTES, this.#at - from);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#at++] = rest;
  }

  /** Makes room for so many bytes, and some fields of fixed length: if need be in a new buffer, into which the span moves. */
  #ensure(bytes: number): void {
    if (this.#at + bytes + MARGIN <= this.#buffer.length) return;
    const written = this.#at - this.#from;
    const larger = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, 2 * (written + bytes + MARGIN)));
    this.#buffer.copy(larger, 0, this.#from, this.#at);
    this.#buffer = larger;
    this.#from = 0;
    this.#at = written;
  }
}

/** The beginning of a message of known length. */
function beginning(field: number, length: number): Buffer {
  const bytes = Buffer.of(tag(field, BYTES), 0, 0, 0, 0);
  writeLength(bytes, 1, length);
  return bytes;
}

/** A varint may have more bytes than it needs. */
function writeLength(buffer: Buffer, at: number, length: number): void {
  let rest = length;
  for (let i = 0; i < LENGTH_BYTES - 1; i++, rest >>>= 7) buffer[at + i] = (rest & 0x7f) | 0x80;
  buffer[at + LENGTH_BYTES - 1] = rest;
}

function lengthOfVarint(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}
