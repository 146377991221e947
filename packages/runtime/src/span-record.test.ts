/** What the SDK gets of a span: its parent, its attributes within the limits, and its times. */
import { describe, expect, it } from '@jest/globals';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { SpanIds } from './span-ids.ts';
import { type AttributeLimits, NO_LIMITS, spanRecord } from './span-record.ts';
import { StartedSpan } from './started-span.ts';
import type { SpanEnd } from './tracing.ts';

const origin = { resource: resourceFromAttributes({}), instrumentationScope: { name: 'posthorn' } };
const parent = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 3 };
const end: SpanEnd = {
  shape: { kind: 'client', name: 'deliver', attributes: { one: 'word' }, varying: ['none', 'two', 'three'] },
  values: [undefined, 22_222, true],
  error: 'timeout',
};

function nextIds(): SpanIds {
  const ids = new SpanIds();
  ids.next();
  return ids;
}

/** What callers read of a span. */
const contextOf = ({ traceId, spanId, flags, packedIds }: StartedSpan) => ({ traceId, spanId, flags, packedIds });

function recordWithin(limits: AttributeLimits) {
  const span = new StartedSpan(() => undefined, nextIds(), undefined);
  return spanRecord(origin, limits, span, end);
}

describe('a span', () => {
  const { count, length } = NO_LIMITS;
  it.each([
    [{ count, length }, { one: 'word', two: 22_222, three: true, 'error.type': 'timeout' }, 0],
    [{ count, length: 3 }, { one: 'wor', two: 22_222, three: true, 'error.type': 'tim' }, 0],
    [{ count: 2, length }, { one: 'word', two: 22_222 }, 2],
    [{ count: 0, length: 1 }, {}, 4],
  ])('has only defined attributes within the limits %j', (limits, attributes, droppedAttributesCount) => {
    const record = recordWithin(limits);
    expect(record).toMatchObject({ name: 'deliver', attributes, droppedAttributesCount });
    expect(Object.keys(record.attributes)).toEqual(Object.keys(attributes));
  });

  it('keeps the trace of its parent and whether the id is random, and begins one with a random id without', () => {
    const ids = nextIds();
    const { block, index } = ids;
    const spanId = block.spanId(index);
    const child = new StartedSpan(() => undefined, ids, parent);
    expect(contextOf(child)).toEqual({ traceId: parent.traceId, spanId, flags: 3, packedIds: undefined });
    for (const flags of [0, 1])
      expect(new StartedSpan(() => undefined, ids, { ...parent, flags })).toMatchObject({ flags: 1 });
    expect(spanRecord(origin, NO_LIMITS, child, end).spanContext()).toMatchObject({ traceId: parent.traceId, spanId });
    expect(spanRecord(origin, NO_LIMITS, child, end).parentSpanContext).toMatchObject({ spanId: parent.spanId });
    const root = new StartedSpan(() => undefined, ids, undefined);
    expect(contextOf(root)).toEqual({ traceId: ids.traceId, spanId, flags: 3, packedIds: block.packed(index) });
    expect(spanRecord(origin, NO_LIMITS, root, end).parentSpanContext).toBeUndefined();
  });

  it('ends when the caller says, whatever the clock of the system does', () => {
    const ended: StartedSpan[] = [];
    const span = new StartedSpan((one) => ended.push(one), nextIds(), undefined);
    span.end({ ...end, endedAt: performance.now() + 1_500 });
    expect(ended).toEqual([span]);
    expect(span.endMs - span.startMs).toBeGreaterThanOrEqual(1_500);
    expect(spanRecord(origin, NO_LIMITS, span, end).duration[0]).toBeGreaterThanOrEqual(1);
  });
});
