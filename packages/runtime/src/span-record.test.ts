/** What a span keeps of its parent, its attributes and its times. */
import { describe, expect, it } from '@jest/globals';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { SpanIds } from './span-ids.ts';
import { type AttributeLimits, SpanRecord } from './span-record.ts';

const scope = { resource: resourceFromAttributes({}), instrumentationScope: { name: 'posthorn' } };
const parent = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 3 };

function nextIds(): SpanIds {
  const ids = new SpanIds();
  ids.next();
  return ids;
}

function spanWithin(limits: AttributeLimits | undefined): SpanRecord {
  const taken: SpanRecord[] = [];
  const span = new SpanRecord(
    { ...scope, limits, take: (one) => taken.push(one) },
    'client',
    'deliver',
    nextIds(),
    undefined,
  );
  span.end({
    shape: { name: 'deliver session.approved', attributes: { one: 'word' } },
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
    const span = spanWithin(limits);
    expect(span).toMatchObject({ name: 'deliver session.approved', attributes, droppedAttributesCount });
    expect(Object.keys(span.attributes)).toEqual(Object.keys(attributes));
    expect(span.shape.attributes).toEqual({});
  });

  it('keeps the trace of its parent, and begins one without', () => {
    const origin = { ...scope, limits: undefined, take: () => undefined };
    const ids = nextIds();
    const child = new SpanRecord(origin, 'client', 'deliver', ids, parent);
    expect(child.context).toEqual({ traceId: parent.traceId, spanId: ids.spanId, flags: 1 });
    const root = new SpanRecord(origin, 'producer', 'publish', ids, undefined);
    expect(root.context).toEqual({ traceId: ids.traceId, spanId: ids.spanId, flags: 1, packedIds: ids.packed });
  });

  it('ends when the caller says, whatever the clock of the system does', () => {
    const span = new SpanRecord(
      { ...scope, limits: undefined, take: () => undefined },
      'internal',
      'replay',
      nextIds(),
      undefined,
    );
    const endedAt = performance.now() + 1_500;
    span.end({ attributes: {}, endedAt });
    expect(span.endMs - span.startMs).toBeGreaterThanOrEqual(1_500);
    expect(span.duration[0]).toBeGreaterThanOrEqual(1);
    expect(span.ended).toBe(true);
  });
});
