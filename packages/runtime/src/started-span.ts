/** A span from its start to its end. The tracer then turns it into bytes, or into a record for the SDK. */
import { TraceFlags } from '@opentelemetry/api';
import type { TraceContext } from '@posthorn/core';
import type { SpanIds } from './span-ids.ts';
import type { Span, SpanEnd } from './tracing.ts';

/** Takes a span that has ended, for export. */
export type TakeSpan = (span: StartedSpan, end: SpanEnd) => void;

/** A span that is sampled. It ends once. */
export class StartedSpan implements Span {
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  /** The bytes of its own ids begin at `idsAt`. The trace id there counts only if the span has no parent. */
  readonly ids: Buffer;
  readonly idsAt: number;
  /** In milliseconds since 1970. The end has a fraction. */
  readonly startMs = Date.now();
  endMs = 0;
  readonly #startedAt = performance.now();
  readonly #take: TakeSpan;

  /** The span gets the current ids of `ids`. */
  constructor(take: TakeSpan, ids: SpanIds, parent: TraceContext | undefined) {
    this.#take = take;
    this.ids = ids.bytes;
    this.idsAt = ids.at;
    this.parent = parent;
    this.context = parent
      ? { traceId: parent.traceId, spanId: ids.spanId, flags: TraceFlags.SAMPLED }
      : { traceId: ids.traceId, spanId: ids.spanId, flags: TraceFlags.SAMPLED, packedIds: ids.packed };
  }

  end(end: SpanEnd): void {
    // By the monotonic clock: the system clock may be set meanwhile.
    this.endMs = this.startMs + (end.endedAt ?? performance.now()) - this.#startedAt;
    this.#take(this, end);
  }
}
