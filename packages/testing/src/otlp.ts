/** Decodes OTLP traces, from the published .proto files alone: what the SDK writes is not read by the SDK. */
import type { CollectedSpan } from './collector.ts';

/** Returns the spans of an `ExportTraceServiceRequest`. Throws if it is not one. */
export function decodeTraces(body: Buffer, contentType: string): CollectedSpan[] {
  if (contentType.startsWith('application/json')) return fromJson(JSON.parse(body.toString()));
  if (contentType === 'application/x-protobuf') return fromProtobuf(body);
  throw new Error(`A collector does not take ${contentType}`);
}

type Field = bigint | Buffer;
type Message = Map<number, Field[]>;

/** Reads the fields of a protobuf message by number: varints and fixed ones as integers, all others as bytes. */
function read(bytes: Buffer): Message {
  const message: Message = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('The message ends within a number');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    if (at + length > bytes.length) throw new Error('The message ends within a field');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const value = readValue(tag & 7, varint, take);
    message.set(tag >> 3, [...(message.get(tag >> 3) ?? []), value]);
  }
  return message;
}

function readValue(wireType: number, varint: () => bigint, take: (length: number) => Buffer): Field {
  switch (wireType) {
    case 0:
      return varint();
    case 1:
      return take(8).readBigUInt64LE();
    case 2:
      return take(Number(varint()));
    case 5:
      return BigInt(take(4).readUInt32LE());
    default:
      throw new Error(`There is no wire type ${wireType}`);
  }
}

const NONE = Buffer.alloc(0);
const bytesOf = (message: Message, field: number) => (message.get(field)?.[0] as Buffer | undefined) ?? NONE;
const textOf = (message: Message, field: number) => bytesOf(message, field).toString();
const hexOf = (message: Message, field: number) => bytesOf(message, field).toString('hex');
const numberOf = (message: Message, field: number) => (message.get(field)?.[0] as bigint | undefined) ?? 0n;
const messagesOf = (message: Message, field: number) =>
  (message.get(field) ?? []).map((bytes) => read(bytes as Buffer));

function fromProtobuf(body: Buffer): CollectedSpan[] {
  return messagesOf(read(body), 1).flatMap((ofResource) => {
    const resource = attributesOf(messagesOf(read(bytesOf(ofResource, 1)), 1));
    return messagesOf(ofResource, 2)
      .flatMap((ofScope) => messagesOf(ofScope, 2))
      .map((span) => ({
        traceId: hexOf(span, 1),
        spanId: hexOf(span, 2),
        parentSpanId: hexOf(span, 4),
        name: textOf(span, 5),
        kind: Number(numberOf(span, 6)),
        startNs: numberOf(span, 7),
        endNs: numberOf(span, 8),
        attributes: attributesOf(messagesOf(span, 9)),
        flags: Number(numberOf(span, 16)),
        links: messagesOf(span, 13).map((link) => ({
          traceId: hexOf(link, 1),
          spanId: hexOf(link, 2),
          flags: Number(numberOf(link, 6)),
        })),
        status: Number(numberOf(read(bytesOf(span, 15)), 3)),
        resource,
      }));
  });
}

function attributesOf(pairs: Message[]): Record<string, unknown> {
  return Object.fromEntries(pairs.map((pair) => [textOf(pair, 1), decodeValue(read(bytesOf(pair, 2)))]));
}

function doubleOf(bits: bigint): number {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(bits);
  return bytes.readDoubleLE();
}

function decodeValue(value: Message): unknown {
  if (value.has(1)) return textOf(value, 1);
  if (value.has(2)) return numberOf(value, 2) === 1n;
  if (value.has(3)) return Number(BigInt.asIntN(64, numberOf(value, 3)));
  if (value.has(4)) return doubleOf(numberOf(value, 4));
  throw new Error('Posthorn has attributes that are texts, booleans and numbers only');
}

interface JsonAttribute {
  key: string;
  value: { stringValue?: string; boolValue?: boolean; intValue?: number | string };
}
interface JsonSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: JsonAttribute[];
  flags: number;
  links?: { traceId: string; spanId: string; flags: number }[];
  status?: { code?: number };
}
interface JsonTraces {
  resourceSpans: { resource: { attributes: JsonAttribute[] }; scopeSpans: { spans: JsonSpan[] }[] }[];
}

function fromJson({ resourceSpans }: JsonTraces): CollectedSpan[] {
  const decode = (attributes: JsonAttribute[]) =>
    Object.fromEntries(
      attributes.map(({ key, value }) => [
        key,
        value.stringValue ?? value.boolValue ?? (value.intValue === undefined ? undefined : Number(value.intValue)),
      ]),
    );
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        name: span.name,
        kind: span.kind,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        attributes: decode(span.attributes),
        flags: span.flags,
        links: (span.links ?? []).map(({ traceId, spanId, flags }) => ({ traceId, spanId, flags })),
        status: span.status?.code ?? 0,
        resource: decode(resource.attributes),
      })),
  );
}
