/** Which headers `traceparent` are read, and how one is written. */
import { describe, expect, it } from '@jest/globals';
import { formatTraceparent, parseTraceparent } from './trace-context.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';

describe('traceparent', () => {
  it.each([
    ['00', '00'],
    ['01', '01'],
    ['02', '02'],
    ['03', '03'],
    ['fc', '00'],
    ['ff', '03'],
  ])('is read and written without the flags that nobody knows: %s as %s', (given, known) => {
    const context = parseTraceparent(`00-${TRACE_ID}-${SPAN_ID}-${given}`);
    expect(context).toEqual({ traceId: TRACE_ID, spanId: SPAN_ID, flags: Number.parseInt(known, 16) });
    expect(context && formatTraceparent(context)).toBe(`00-${TRACE_ID}-${SPAN_ID}-${known}`);
  });

  it('of a later version is read as far as it is known', () => {
    const context = { traceId: TRACE_ID, spanId: SPAN_ID, flags: 1 };
    expect(parseTraceparent(`cc-${TRACE_ID}-${SPAN_ID}-01`)).toEqual(context);
    expect(parseTraceparent(`cc-${TRACE_ID}-${SPAN_ID}-ff`)).toEqual(context);
    expect(parseTraceparent(`cc-${TRACE_ID}-${SPAN_ID}-01-what-the-future-will-be-like`)).toEqual(context);
  });

  it.each([
    ['none', undefined],
    ['several', [`00-${TRACE_ID}-${SPAN_ID}-01`]],
    ['several, joined as Node does', `00-${TRACE_ID}-${SPAN_ID}-01, 00-${TRACE_ID}-${SPAN_ID}-01`],
    ['empty', ''],
    ['the forbidden version', `ff-${TRACE_ID}-${SPAN_ID}-01`],
    ['version 00 with more fields', `00-${TRACE_ID}-${SPAN_ID}-01-more`],
    ['a later version with something else appended', `cc-${TRACE_ID}-${SPAN_ID}-01.more`],
    ['a later version that is too long', `cc-${TRACE_ID}-${SPAN_ID}-01-${'x'.repeat(201)}`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
    ['a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['uppercase', `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`],
    ['a short trace id', `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`],
    ['a character that is no digit', `00-${TRACE_ID.slice(1)}g-${SPAN_ID}-01`],
    ['a line break at the end', `00-${TRACE_ID}-${SPAN_ID}-01\n`],
    ['a space at the beginning', ` 00-${TRACE_ID}-${SPAN_ID}-01`],
  ])('is ignored: %s', (_, header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });
});
