/** That spans are written as the SDK writes them. */
import { describe, expect, it } from '@jest/globals';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { TraceContext } from '@posthorn/core';
import { decodeTraces } from '@posthorn/testing';
import { SpanIds } from './span-ids.ts';
import { type AttributeLimits, SpanRecord } from './span-record.ts';
import { SpanWriter } from './span-writer.ts';
import type { SpanEnd } from './tracing.ts';

const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };
const scope = {
  // OTEL_RESOURCE_ATTRIBUTES may have names of up to 255 characters.
  resource: resourceFromAttributes({ 'service.name': 'posthorn-wörker', ['ö'.repeat(255)]: 'long' }),
  instrumentationScope: { name: 'posthorn', version: '1.2.3' },
};

/** The parts of a span, from which it is made. */
interface Parts {
  kind: 'client' | 'producer';
  parent?: TraceContext;
  end: SpanEnd;
}

/**
 * Ended spans that no writer has: twice the same ones with the same ids. The first ones have shapes, and all that they
 * have in common is merged in the second ones, as the SDK needs it.
 */
function spansOf(parts: readonly Parts[]): { ours: SpanRecord[]; sdk: SpanRecord[] } {
  const all = { ours: [] as SpanRecord[], sdk: [] as SpanRecord[] };
  const ids = new SpanIds();
  for (const { kind, parent, end } of parts) {
    ids.next();
    const spanTo = (taken: SpanRecord[], limits: AttributeLimits | undefined) =>
      new SpanRecord({ ...scope, limits, take: (span) => taken.push(span) }, kind, 'name', ids, parent);
    const ours = spanTo(all.ours, undefined);
    const sdk = spanTo(all.sdk, { count: Number.POSITIVE_INFINITY, length: Number.POSITIVE_INFINITY });
    ours.end(end);
    sdk.end(end);
    Object.assign(sdk, { startMs: ours.startMs, endMs: ours.endMs });
  }
  return all;
}

const decode = (bytes: Uint8Array | undefined) => decodeTraces(Buffer.from(bytes ?? []), 'application/x-protobuf');

/** What the collector gets of these spans. */
function exported(spans: readonly SpanRecord[]) {
  const writer = new SpanWriter(scope);
  for (const span of spans) writer.add(span);
  const batch = writer.takeBatch();
  expect(batch?.length).toBe(spans.length);
  return decode(batch?.bytes);
}

describe('the writer of spans', () => {
  it.each([
    ['texts', ['', 'a', 'ÿ€😀', 'x'.repeat(127), 'x'.repeat(128), 'é'.repeat(10_000), 'y'.repeat(200_000)]],
    ['numbers', [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]],
    ['fractions', [0.5, 1e300, 1e-9]],
    ['booleans', [true, false]],
  ])('writes what the serializer of the SDK writes: %s', (_, values) => {
    const link = { ...remote, traceId: 'f'.repeat(32) };
    const { ours, sdk } = spansOf(
      values.flatMap((value): Parts[] => [
        { kind: 'client', parent: remote, end: { attributes: { text: 'one', value }, error: 'timeout', link } },
        { kind: 'producer', end: { attributes: {} } },
        { kind: 'producer', end: { shape: { name: `with ${value}`, attributes: { value } }, attributes: { a: 1 } } },
      ]),
    );
    const ofSdk = decode(ProtobufTraceSerializer.serializeRequest(sdk));
    expect(exported(ours)).toEqual(ofSdk);
    expect(ofSdk).toHaveLength(3 * values.length);
    expect(ofSdk[0]).toMatchObject({
      traceId: remote.traceId,
      spanId: ours[0]?.context.spanId,
      parentSpanId: remote.spanId,
      attributes: { text: 'one', value: values[0], 'error.type': 'timeout' },
      links: [{ traceId: 'f'.repeat(32) }],
      resource: { 'service.name': 'posthorn-wörker' },
    });
    expect(ofSdk[1]).toMatchObject({ traceId: ours[1]?.context.traceId, parentSpanId: '' });
    expect(ofSdk[2]).toMatchObject({ name: `with ${values[0]}`, attributes: { value: values[0], a: 1 } });
  });

  it('writes times to the nanosecond, as the SDK does', () => {
    const [span] = spansOf([{ kind: 'client', end: { attributes: {} } }]).ours;
    if (!span) throw new Error('There is no span.');
    for (const ms of [1, 65_535_999.999, 65_536_000, 1_700_000_000_123.25, 2 ** 42 + 0.5, 1.8e13]) {
      span.endMs = ms;
      expect(exported([span])[0]?.endNs).toBe(decode(ProtobufTraceSerializer.serializeRequest([span]))[0]?.endNs);
    }
  });

  it('writes batches of any size, each span into one', () => {
    const { ours } = spansOf(Array.from({ length: 5_000 }, (_, i) => ({ kind: 'client', end: { attributes: { i } } })));
    const writer = new SpanWriter(scope);
    const sizes = [1, 31, 32, 33, 512, 2_000, 1];
    let next = 0;
    for (const size of sizes) {
      const spans = ours.slice(next, next + size);
      next += size;
      for (const span of spans) writer.add(span);
      expect(writer.length).toBe(size);
      const batch = writer.takeBatch();
      expect(batch?.length).toBe(size);
      expect(decode(batch?.bytes).map(({ spanId }) => spanId)).toEqual(spans.map(({ context }) => context.spanId));
    }
  });

  it('leaves what is in a batch alone when it goes on', () => {
    const { ours } = spansOf(Array.from({ length: 100 }, () => ({ kind: 'client', end: { attributes: {} } })));
    const writer = new SpanWriter(scope);
    for (const span of ours) writer.add(span);
    const batch = writer.takeBatch();
    const before = Buffer.from(batch?.bytes ?? []);
    for (const span of ours) writer.add(span);
    writer.takeBatch();
    expect(before.equals(batch?.bytes ?? Buffer.of())).toBe(true);
  });

  it('leaves out what is undefined', () => {
    const { ours } = spansOf([{ kind: 'client', end: { attributes: { a: undefined, b: 1 } } }]);
    expect(exported(ours)[0]?.attributes).toEqual({ b: 1 });
  });

  it('writes what many spans have in common for each of them, also where the buffer ends within it', () => {
    const shape = { name: 'deliver', attributes: { system: 'posthorn', port: 443, url: 'u'.repeat(10_000) } };
    const { ours } = spansOf(
      Array.from({ length: 50 }, (_, i) => ({ kind: 'client', end: { shape, attributes: { i } } })),
    );
    const expected = ours.map((_, i) => ({ system: 'posthorn', port: 443, url: 'u'.repeat(10_000), i }));
    expect(exported(ours).map(({ attributes }) => attributes)).toEqual(expected);
  });

  it('has no batch without spans', () => {
    expect(new SpanWriter(scope).takeBatch()).toBeUndefined();
  });
});
