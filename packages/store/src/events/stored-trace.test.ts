/** That a trace is read as it was written, however many are read. */
import { describe, expect, it } from '@jest/globals';
import type { TraceContext } from '@posthorn/core';
import fc from 'fast-check';
import { packTrace, StoredTrace } from './stored-trace.ts';

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((ids) => Buffer.from(ids).toString('hex'));
const trace = fc.record({ traceId: hex(16), spanId: hex(8), flags: fc.nat(255) });
const plain = ({ traceId, spanId, flags }: TraceContext) => ({ traceId, spanId, flags });

describe('the trace of an event', () => {
  it('is read as it was written, while many others are read', () => {
    fc.assert(
      fc.property(fc.array(trace, { minLength: 1, maxLength: 500 }), (traces) => {
        const read = traces.map((one) => StoredTrace.read(packTrace(one)));
        expect(read.map(plain)).toEqual(traces);
        expect(traces.map((one) => plain(StoredTrace.readToKeep(packTrace(one))))).toEqual(traces);
      }),
      { numRuns: 20 },
    );
  });

  it('has its ids as bytes too', () => {
    const ids = '0af7651916cd43dd8448eb211c80319cb7ad6b7169203331';
    const packed = packTrace({ traceId: ids.slice(0, 32), spanId: ids.slice(32), flags: 1 });
    for (const { bytes, at } of [StoredTrace.read(packed), StoredTrace.readToKeep(packed)])
      expect(bytes.toString('hex', at, at + 24)).toBe(ids);
  });

  it('takes 34 characters, with ids that are packed already too', () => {
    const given = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), flags: 1 };
    const packed = packTrace(given);
    expect(packed).toHaveLength(34);
    const packedIds = Buffer.from(given.traceId + given.spanId, 'hex').toString('base64url');
    expect(packTrace({ ...given, packedIds })).toBe(packed);
  });
});
