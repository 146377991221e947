import { describe, expect, it } from '@jest/globals';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { decodeTraces } from '@posthorn/testing';
import { SpanRecord } from './span-record.ts';
import { SpanSerializer } from './span-serializer.ts';

const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };
const scope = {
  resource: resourceFromAttributes({ 'service.name': 'posthorn-wörker' }),
  instrumentationScope: { name: 'posthorn', version: '1.2.3' },
};

/** Ended spans that no serializer has, two for each of these values of an attribute. */
function spansWith(values: readonly (string | number | boolean)[]): SpanRecord[] {
  const spans: SpanRecord[] = [];
  const origin = { ...scope, limits: undefined, take: (span: SpanRecord) => spans.push(span) };
  for (const [i, value] of values.entries()) {
    const context = { ...remote, spanId: (i + 1).toString(16).padStart(16, '0') };
    const link = { ...remote, traceId: 'f'.repeat(32) };
    const attributes = { text: 'one', value };
    new SpanRecord(origin, 'client', 'deliver', context, remote).end({ attributes, error: 'timeout', link });
    new SpanRecord(origin, 'producer', 'publish', context, undefined).end({ attributes: {} });
  }
  return spans;
}

const decode = (bytes: Uint8Array | undefined) => decodeTraces(Buffer.from(bytes ?? []), 'application/x-protobuf');

/** What the collector gets of these spans. */
function exported(spans: readonly SpanRecord[]) {
  const serializer = new SpanSerializer(scope);
  return decode(serializer.serializeRequest(spans.map((span) => serializer.add(span))));
}

describe('the serializer of spans', () => {
  it.each([
    ['texts', ['', 'a', 'ÿ€😀', 'x'.repeat(127), 'x'.repeat(128), 'é'.repeat(10_000), 'y'.repeat(200_000)]],
    ['numbers', [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]],
    ['fractions', [0.5, 1e300, 1e-9]],
    ['booleans', [true, false]],
  ])('writes what the one of the SDK writes: %s', (_, values) => {
    const spans = spansWith(values);
    const ofSdk = decode(ProtobufTraceSerializer.serializeRequest(spans));
    expect(exported(spans)).toEqual(ofSdk);
    expect(ofSdk).toHaveLength(2 * values.length);
    expect(ofSdk[0]).toMatchObject({
      traceId: remote.traceId,
      parentSpanId: remote.spanId,
      attributes: { text: 'one', value: values[0], 'error.type': 'timeout' },
      links: [{ traceId: 'f'.repeat(32) }],
      resource: { 'service.name': 'posthorn-wörker' },
    });
  });

  it('writes times to the nanosecond, as the SDK does', () => {
    const [span] = spansWith([1]);
    if (!span) throw new Error('There is no span.');
    for (const ms of [1, 65_535_999.999, 65_536_000, 1_700_000_000_123.25, 2 ** 42 + 0.5, 1.8e13]) {
      span.endMs = ms;
      expect(exported([span])[0]?.endNs).toBe(decode(ProtobufTraceSerializer.serializeRequest([span]))[0]?.endNs);
    }
  });

  it('writes more spans than a batch has, and any part of what it has written', () => {
    const spans = spansWith(Array.from({ length: 5_000 }, (_, i) => i));
    expect(exported(spans)).toHaveLength(10_000);
    const serializer = new SpanSerializer(scope);
    const queued = spans.map((span) => serializer.add(span));
    const isWanted = (_: unknown, i: number) => i % 7 < 3;
    expect(decode(serializer.serializeRequest(queued.filter(isWanted))).map(({ spanId }) => spanId)).toEqual(
      spans.filter(isWanted).map(({ context }) => context.spanId),
    );
  });

  it('leaves out what is undefined', () => {
    const spans: SpanRecord[] = [];
    const origin = { ...scope, limits: undefined, take: (span: SpanRecord) => spans.push(span) };
    new SpanRecord(origin, 'internal', 'replay', remote, undefined).end({ attributes: { a: undefined, b: 1 } });
    expect(exported(spans)[0]?.attributes).toEqual({ b: 1 });
  });

  it('writes common attributes of many spans, also where a buffer ends within them', () => {
    const spans: SpanRecord[] = [];
    const origin = { ...scope, limits: undefined, take: (span: SpanRecord) => spans.push(span) };
    const common = [{ attributes: { system: 'posthorn', port: 443 } }, { attributes: { url: 'u'.repeat(10_000) } }];
    for (let i = 0; i < 50; i++) {
      const span = new SpanRecord(origin, 'client', 'deliver', remote, undefined);
      span.end({ common, attributes: { i } });
    }
    const expected = spans.map((_, i) => ({ system: 'posthorn', port: 443, url: 'u'.repeat(10_000), i }));
    expect(exported(spans).map(({ attributes }) => attributes)).toEqual(expected);
  });

  it('has nothing to write without spans', () => {
    expect(new SpanSerializer(scope).serializeRequest([])).toBeUndefined();
  });
});
