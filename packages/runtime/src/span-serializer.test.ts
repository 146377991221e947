import { describe, expect, it } from '@jest/globals';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { decodeTraces } from '@posthorn/testing';
import { spanSerializer } from './span-serializer.ts';

const remote = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  traceFlags: 1,
  isRemote: true,
};

/** Spans of the SDK, with these values of an attribute. */
function spansWith(values: readonly (string | number | boolean)[]) {
  const exporter = new InMemorySpanExporter();
  const resource = resourceFromAttributes({ 'service.name': 'posthorn-wörker' });
  const provider = new BasicTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tracer = provider.getTracer('posthorn', '1.2.3');
  for (const value of values) {
    const context = trace.setSpanContext(ROOT_CONTEXT, remote);
    const span = tracer.startSpan('deliver', { kind: SpanKind.CLIENT }, context);
    span.setAttribute('text', 'one').setAttribute('value', value);
    span.setStatus({ code: SpanStatusCode.ERROR }).addLink({ context: { ...remote, traceId: 'f'.repeat(32) } });
    span.end();
    tracer.startSpan('publish', { kind: SpanKind.PRODUCER }, ROOT_CONTEXT).end();
  }
  return exporter.getFinishedSpans();
}

const decode = (bytes: Uint8Array | undefined) => decodeTraces(Buffer.from(bytes ?? []), 'application/x-protobuf');

describe('the serializer of spans', () => {
  it.each([
    ['texts', ['', 'a', 'ÿ€😀', 'x'.repeat(127), 'x'.repeat(128), 'é'.repeat(10_000), 'y'.repeat(200_000)]],
    ['numbers', [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]],
    ['booleans', [true, false]],
  ])('writes what the one of the SDK writes: %s', (_, values) => {
    const spans = spansWith(values);
    const decoded = decode(spanSerializer.serializeRequest(spans));
    expect(decoded).toEqual(decode(ProtobufTraceSerializer.serializeRequest(spans)));
    expect(decoded).toHaveLength(2 * values.length);
    expect(decoded[0]).toMatchObject({
      traceId: remote.traceId,
      parentSpanId: remote.spanId,
      attributes: { text: 'one', value: values[0] },
      resource: { 'service.name': 'posthorn-wörker' },
    });
  });

  it('writes more spans than a batch has', () => {
    const spans = spansWith(Array.from({ length: 5_000 }, (_, i) => i));
    expect(decode(spanSerializer.serializeRequest(spans))).toHaveLength(10_000);
  });

  it('has nothing to write without spans', () => {
    expect(spanSerializer.serializeRequest([])).toBeUndefined();
  });
});
