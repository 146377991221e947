import { describe, expect, it } from '@jest/globals';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type AttributeLimits, SpanRecord } from './span-record.ts';
import { type QueuedSpan, SpanSerializer } from './span-serializer.ts';

const scope = { resource: resourceFromAttributes({}), instrumentationScope: { name: 'posthorn' } };
const context = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 };

function spanWithin(limits: AttributeLimits | undefined): SpanRecord {
  const taken: SpanRecord[] = [];
  const span = new SpanRecord(
    { ...scope, limits, take: (one) => taken.push(one) },
    'client',
    'deliver',
    context,
    undefined,
  );
  span.end({
    common: [{ attributes: { one: 'word' } }],
    attributes: { none: undefined, two: 22_222, three: true },
    error: 'timeout',
  });
  expect(taken).toEqual([span]);
  return span;
}

const NO_LIMIT = Number.POSITIVE_INFINITY;

describe('a span', () => {
  it.each([
    [{ count: NO_LIMIT, length: NO_LIMIT }, { one: 'word', two: 22_222, three: true, 'error.type': 'timeout' }, 0],
    [{ count: NO_LIMIT, length: 3 }, { one: 'wor', two: 22_222, three: true, 'error.type': 'tim' }, 0],
    [{ count: 2, length: NO_LIMIT }, { one: 'word', two: 22_222 }, 2],
    [{ count: 0, length: 1 }, {}, 4],
  ])('has only defined attributes within the limits %j', (limits, attributes, droppedAttributesCount) => {
    expect(spanWithin(limits)).toMatchObject({ attributes, droppedAttributesCount });
    expect(Object.keys(spanWithin(limits).attributes)).toEqual(Object.keys(attributes));
  });

  it('is not kept once it is written', () => {
    const serializer = new SpanSerializer(scope);
    const queued: QueuedSpan[] = [];
    const take = (span: SpanRecord) => void queued.push(serializer.add(span));
    const span = new SpanRecord({ ...scope, limits: undefined, take }, 'client', 'deliver', context, undefined);
    span.end({ common: [{ attributes: { two: 'words' } }], attributes: { one: 'word' } });
    expect(queued[0]?.span).toBe(span);
    const written = Buffer.from(serializer.serializeRequest(queued) ?? []).toString('latin1');
    for (const text of ['one', 'word', 'two', 'words']) expect(written).toContain(text);
    expect(queued[0]?.span).toBeUndefined();
  });

  it('ends when the caller says, whatever the clock of the system does', () => {
    const span = new SpanRecord(
      { ...scope, limits: undefined, take: () => undefined },
      'internal',
      'replay',
      context,
      undefined,
    );
    const endedAt = performance.now() + 1_500;
    span.end({ attributes: {}, endedAt });
    expect(span.endMs - span.startMs).toBeGreaterThanOrEqual(1_500);
    expect(span.duration[0]).toBeGreaterThanOrEqual(1);
    expect(span.ended).toBe(true);
  });
});
