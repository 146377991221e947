/** That spans are written as the SDK writes them. */
import { describe, expect, it } from '@jest/globals';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { TraceContext } from '@posthorn/core';
import { decodeTraces } from '@posthorn/testing';
import fc from 'fast-check';
import { SpanIds } from './span-ids.ts';
import { NO_LIMITS, spanRecord } from './span-record.ts';
import { SpanWriter } from './span-writer.ts';
import { StartedSpan } from './started-span.ts';
import type { AttributeValue, SpanEnd, SpanShape } from './tracing.ts';

const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };
const scope = {
  // OTEL_RESOURCE_ATTRIBUTES may have names of up to 255 characters.
  resource: resourceFromAttributes({ 'service.name': 'posthorn-wörker', ['ö'.repeat(255)]: 'long' }),
  instrumentationScope: { name: 'posthorn', version: '1.2.3' },
};

/** The same in a trace whose id is random. */
const random = { ...remote, flags: 3 };

/** A parent whose ids are known as bytes too. */
const ids = Buffer.from(`ff${remote.traceId}${remote.spanId}`, 'hex');
const remoteBytes = { ...remote, bytes: ids, at: 1 };

/** A span and how it ended. */
interface Ended {
  span: StartedSpan;
  end: SpanEnd;
}

/** Spans that have ended, each with a parent or without. */
function spansOf(parts: readonly { parent?: TraceContext; end: SpanEnd }[]): Ended[] {
  const ended: Ended[] = [];
  const ids = new SpanIds();
  for (const { parent, end } of parts) {
    ids.next();
    new StartedSpan((span) => ended.push({ span, end }), ids, parent).end(end);
  }
  return ended;
}

/** How a span ends whose attributes are all its own. */
function endWith(attributes: Record<string, AttributeValue | undefined>, shape: Partial<SpanShape> = {}): SpanEnd {
  return {
    shape: { kind: 'client', name: 'name', attributes: {}, varying: Object.keys(attributes), ...shape },
    values: Object.values(attributes),
  };
}

const decode = (bytes: Uint8Array | undefined) => decodeTraces(Buffer.from(bytes ?? []), 'application/x-protobuf');

/** What the collector gets of these spans. */
function exported(spans: readonly Ended[]) {
  const writer = new SpanWriter(scope);
  for (const { span, end } of spans) writer.add(span, end);
  const batch = writer.takeBatch();
  expect(batch?.length).toBe(spans.length);
  return decode(batch?.bytes);
}

/** What it gets from the SDK's serializer. */
function exportedBySdk(spans: readonly Ended[]) {
  const records = spans.map(({ span, end }) => spanRecord(scope, NO_LIMITS, span, end));
  return decode(ProtobufTraceSerializer.serializeRequest(records));
}

describe('the writer of spans', () => {
  it.each([
    ['texts', ['', 'a', 'ÿ€😀', 'x'.repeat(127), 'x'.repeat(128), 'é'.repeat(10_000), 'y'.repeat(200_000)]],
    ['numbers', [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]],
    ['fractions', [0.5, 1e300, 1e-9]],
    ['booleans', [true, false]],
  ])('writes what the serializer of the SDK writes: %s', (_, values) => {
    const link = { ...remote, traceId: 'f'.repeat(32) };
    const spans = spansOf(
      values.flatMap((value) => [
        { parent: remote, end: { ...endWith({ text: 'one', value }), error: 'timeout', link } },
        { end: endWith({}, { kind: 'producer' }) },
        { end: endWith({ a: 1 }, { kind: 'internal', name: `with ${value}`, attributes: { value, none: undefined } }) },
      ]),
    );
    const ofSdk = exportedBySdk(spans);
    expect(exported(spans)).toEqual(ofSdk);
    expect(ofSdk).toHaveLength(3 * values.length);
    expect(ofSdk[0]).toMatchObject({
      traceId: remote.traceId,
      spanId: spans[0]?.span.spanId,
      parentSpanId: remote.spanId,
      attributes: { text: 'one', value: values[0], 'error.type': 'timeout' },
      links: [{ traceId: 'f'.repeat(32) }],
      resource: { 'service.name': 'posthorn-wörker' },
    });
    expect(ofSdk[1]).toMatchObject({ traceId: spans[1]?.span.traceId, parentSpanId: '' });
    expect(ofSdk[2]).toMatchObject({ name: `with ${values[0]}`, attributes: { value: values[0], a: 1 } });
  });

  it('writes spans of one shape as the SDK does, whatever differs from the one before', () => {
    const text = fc.constantFrom('', 'a', 'é', 'ab', 'bc', 'éa', '😀', 'abcd', 'a€', 'x'.repeat(200));
    const value = fc.oneof(text, fc.constantFrom(undefined, true, false, 0, 1, 2, 127, 128, 200, 404, 0.5, -1));
    const errors = ['timeout', '500', '503', 'é', ...Array.from({ length: 9 }, (_, i) => `rare ${i}`)];
    const span = fc.record({
      parent: fc.constantFrom(undefined, remote, random, remoteBytes),
      values: fc.tuple(value, value, text),
      error: fc.oneof(fc.constantFrom(undefined, undefined, '500'), fc.constantFrom(...errors)),
      link: fc.constantFrom(undefined, undefined, undefined, remote, random),
    });
    fc.assert(
      fc.property(fc.array(span, { minLength: 2, maxLength: 40 }), (parts) => {
        const shape: SpanShape = { kind: 'client', name: 'x', attributes: { a: 1 }, varying: ['b', 'c', 'd'] };
        const spans = spansOf(
          parts.map(({ parent, ...end }) => ({ ...(parent && { parent }), end: { shape, ...end } })),
        );
        expect(exported(spans)).toEqual(exportedBySdk(spans));
      }),
      { numRuns: 300 },
    );
  });

  it('copies spans of first attempts and retries that fail in turns, and writes them as the SDK does', () => {
    const shape: SpanShape = { kind: 'client', name: 'x', attributes: { a: 1 }, varying: ['id', 'resend_count'] };
    const attempts = [undefined, 1, 2, undefined, 127, 128, 3, 'a', 4, 'b', undefined];
    const spans = spansOf(
      ['500', 'timeout', undefined, '500', 'connection'].flatMap((error, i) =>
        attempts.map((count, j) => ({
          parent: j % 2 === 0 ? remote : random,
          end: { shape, values: ['id-'.padEnd(3 + i, 'x') + j, count], error },
        })),
      ),
    );
    expect(exported(spans)).toEqual(exportedBySdk(spans));
    // Of each error, and of none, one with a count and one without.
    expect(shape.written?.map(({ error }) => error).sort()).toEqual(
      ['500', '500', 'connection', 'connection', 'timeout', 'timeout', undefined, undefined].sort(),
    );
    const kept = shape.written?.[0];
    const [again] = spansOf([{ parent: remote, end: { shape, values: kept?.values ?? [], error: kept?.error } }]);
    if (!again) throw new Error('There is no span.');
    expect(exported([again])).toEqual(exportedBySdk([again]));
    expect(shape.written?.[0]).toBe(kept);
  });

  it('keeps few of the spans of a shape', () => {
    const shape: SpanShape = { kind: 'client', name: 'x', attributes: {}, varying: [] };
    exported(spansOf(Array.from({ length: 100 }, (_, i) => ({ end: { shape, values: [], error: `error ${i}` } }))));
    expect(shape.written?.map(({ error }) => error)).toEqual(Array.from({ length: 8 }, (_, i) => `error ${92 + i}`));
  });

  it('keeps no more memory than these spans take', () => {
    const shape: SpanShape = { kind: 'client', name: 'x', attributes: {}, varying: [] };
    exported(spansOf([{ end: { shape, values: [] } }]));
    const [kept] = shape.written ?? [];
    // A part of Buffer's pool would keep all of the pool.
    expect(kept?.bytes.buffer.byteLength).toBe(kept?.bytes.length);
  });

  it('writes times to the nanosecond, as the SDK does', () => {
    const [ended] = spansOf([{ end: endWith({}) }]);
    if (!ended) throw new Error('There is no span.');
    const noon = 1_700_000_000_000;
    // The last second is kept: of times within it, before it and after it.
    const near = [noon + 999.9999999, noon, noon + 0.25, noon - 0.25, noon + 4_295, noon + 5_294, noon + 1e6, noon];
    for (const ms of [1, 65_535_999.999, 65_536_000, ...near, 2 ** 42 + 0.5, 1.8e13, 0]) {
      ended.span.endMs = ms;
      expect(exported([ended])[0]?.endNs).toBe(exportedBySdk([ended])[0]?.endNs);
    }
  });

  it('writes batches of any size, each span into one', () => {
    const ours = spansOf(Array.from({ length: 5_000 }, (_, i) => ({ end: endWith({ i }) })));
    const writer = new SpanWriter(scope);
    const sizes = [1, 31, 32, 33, 512, 2_000, 1];
    let next = 0;
    for (const size of sizes) {
      const spans = ours.slice(next, next + size);
      next += size;
      for (const { span, end } of spans) writer.add(span, end);
      expect(writer.length).toBe(size);
      const batch = writer.takeBatch();
      expect(batch?.length).toBe(size);
      expect(decode(batch?.bytes).map(({ spanId }) => spanId)).toEqual(spans.map(({ span }) => span.spanId));
    }
  });

  it('leaves what is in a batch alone when it goes on', () => {
    const ours = spansOf(Array.from({ length: 100 }, () => ({ end: endWith({}) })));
    const writer = new SpanWriter(scope);
    for (const { span, end } of ours) writer.add(span, end);
    const batch = writer.takeBatch();
    const before = Buffer.from(batch?.bytes ?? []);
    for (const { span, end } of ours) writer.add(span, end);
    writer.takeBatch();
    expect(before.equals(batch?.bytes ?? Buffer.of())).toBe(true);
  });

  it('leaves out what is undefined', () => {
    const ours = spansOf([{ end: endWith({ a: undefined, b: 1 }, { attributes: { c: undefined } }) }]);
    expect(exported(ours)[0]?.attributes).toEqual({ b: 1 });
  });

  it('writes what many spans have in common for each of them, also where the buffer ends within it', () => {
    const attributes = { system: 'posthorn', port: 443, url: 'u'.repeat(10_000) };
    const shape: SpanShape = { kind: 'client', name: 'deliver', attributes, varying: ['i'] };
    const ours = spansOf(Array.from({ length: 50 }, (_, i) => ({ end: { shape, values: [i] } })));
    const expected = ours.map((_, i) => ({ system: 'posthorn', port: 443, url: 'u'.repeat(10_000), i }));
    expect(exported(ours).map(({ attributes }) => attributes)).toEqual(expected);
  });

  it('writes a batch into the bytes of one that was given back, if it is large enough', () => {
    const writer = new SpanWriter(scope);
    const batchOf = (spans: readonly Ended[]) => {
      for (const { span, end } of spans) writer.add(span, end);
      const batch = writer.takeBatch();
      if (!batch) throw new Error('There is no batch.');
      return batch;
    };
    const [large, small] = [
      spansOf(Array.from({ length: 50 }, (_, i) => ({ end: endWith({ i }) }))),
      spansOf([{ end: endWith({}) }]),
    ];
    const first = batchOf(large);
    writer.giveBack(first);
    // The buffer of this one was taken before.
    batchOf(large);
    const third = batchOf(small);
    expect(third.bytes.buffer).toBe(first.bytes.buffer);
    expect(decode(third.bytes).map(({ spanId }) => spanId)).toEqual(small.map(({ span }) => span.spanId));
    writer.giveBack({ bytes: new Uint8Array(8), length: 1 });
    batchOf(large);
    expect(decode(batchOf(large).bytes)).toHaveLength(50);
  });

  it('has no batch without spans', () => {
    expect(new SpanWriter(scope).takeBatch()).toBeUndefined();
  });
});
