/** The trace that an event belongs to: W3C Trace Context, level 2, as far as Posthorn needs it. */

/** The ids as bytes: that of the trace, then that of the span. */
export const TRACE_ID_BYTES = 16;
export const SPAN_ID_BYTES = 8;

/** The trace is recorded. */
export const SAMPLED_FLAG = 1;
/** The last 7 bytes of its id are random. Whoever makes the id says so, and all who continue the trace pass it on. */
export const RANDOM_FLAG = 2;

/** The place of a span in a trace. Every part is valid: it came from `parseTraceparent` or from the tracer. */
export interface TraceContext {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** `SAMPLED_FLAG` and `RANDOM_FLAG`, each set or not. */
  readonly flags: number;
  /** Both ids as base64url, if whoever made them knows it: saves the conversion. */
  readonly packedIds?: string | undefined;
  /** Both ids as bytes, from this offset on, if whoever made them knows it. They never change. */
  readonly bytes?: Uint8Array | undefined;
  readonly at?: number | undefined;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.{0,200})?$/;
/** The version that this code knows. A later one may append fields. */
const VERSION = '00';
const FORBIDDEN_VERSION = 'ff';
const ZEROS = /^0+$/;

/**
 * Reads the header `traceparent`, without the flags that this version does not know. Of a later version, only
 * `SAMPLED_FLAG` is sure to mean the same. Returns undefined if there is none or if it is invalid: then the caller's
 * trace is not continued.
 */
export function parseTraceparent(header: unknown): TraceContext | undefined {
  if (typeof header !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(header) ?? [];
  if (version === undefined || version === FORBIDDEN_VERSION || (version === VERSION && more !== undefined))
    return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  const known = version === VERSION ? SAMPLED_FLAG | RANDOM_FLAG : SAMPLED_FLAG;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & known };
}

/** The value of the header `traceparent`. */
export function formatTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `${VERSION}-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}
