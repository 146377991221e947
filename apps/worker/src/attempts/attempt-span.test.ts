/** What is kept for the spans of attempts. */
import { expect, it } from '@jest/globals';
import { EVENT_TYPES } from '@posthorn/core';
import type { Span, SpanShape } from '@posthorn/runtime';
import { endAttemptSpan } from './attempt-span.ts';

/** The shape of the span of an attempt to a subscription. */
function shapeOf(subscriptionId: string, eventType: string, url = 'https://example.com/'): SpanShape {
  let shape: SpanShape | undefined;
  const span: Pick<Span, 'end'> = { end: (end) => (shape = end.shape) };
  const begun = { subscriptionId, eventType, url, environment: 'sandbox', attemptNumber: 1 };
  const attempt = { span, job: { deliveryId: 'dlv_1' }, event: { id: 'evt_1' }, begun };
  endAttemptSpan(attempt as never, { kind: 'timed_out' } as never, 'timeout');
  return shape!;
}

it('keeps the shapes of spans, and a few thousand in all, however many types each subscription gets', () => {
  const [type] = EVENT_TYPES;
  const first = shapeOf('sub_0', type);
  expect(shapeOf('sub_0', type)).toBe(first);
  for (let i = 1; i < 600; i++) for (const other of EVENT_TYPES) shapeOf(`sub_${i}`, other);
  expect(shapeOf('sub_0', type)).not.toBe(first);
  expect(shapeOf('sub_0', type)).toEqual(first);
});

it('says where an attempt went without the path and the query, which may hold a token', () => {
  const [type] = EVENT_TYPES;
  expect(
    shapeOf('sub_token', type, 'https://example.com:8443/hooks/word-in-the-path?token=word').attributes,
  ).toMatchObject({
    'url.full': 'https://example.com:8443/',
    'server.address': 'example.com',
    'server.port': 8443,
  });
});
