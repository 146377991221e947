/** A span from its start to its end. The tracer then turns it into bytes, or into a record for the SDK. */
import { RANDOM_FLAG, SAMPLED_FLAG, type TraceContext } from '@posthorn/core';
import type { IdBlock, SpanIds } from './span-ids.ts';
import type { Span, SpanEnd } from './tracing.ts';

/** Takes a span that has ended, for export. */
export type TakeSpan = (span: StartedSpan, end: SpanEnd) => void;

/**
 * A span that is sampled, and the place in the trace of what happens within it. It ends once. It is small, and makes
 * the texts of its ids when asked: with many in flight, the collector of the young generation copies each twice.
 */
export class StartedSpan implements Span {
  readonly parent: TraceContext | undefined;
  /** Its own ids, at this index. The trace id there counts only if the span has no parent. */
  readonly block: IdBlock;
  readonly index: number;
  /** In milliseconds since 1970. The end has a fraction. */
  readonly startMs = Date.now();
  endMs = 0;
  readonly #startedAt = performance.now();
  readonly #take: TakeSpan;

  /** The span gets the current ids of `ids`. */
  constructor(take: TakeSpan, { block, index }: SpanIds, parent: TraceContext | undefined) {
    this.#take = take;
    this.block = block;
    this.index = index;
    this.parent = parent;
  }

  get traceId(): string {
    return this.parent ? this.parent.traceId : this.block.traceId(this.index);
  }
  get spanId(): string {
    return this.block.spanId(this.index);
  }
  /** The id of a trace that begins here is random (`SpanIds`). */
  get flags(): number {
    return SAMPLED_FLAG | (this.parent ? this.parent.flags & RANDOM_FLAG : RANDOM_FLAG);
  }
  get packedIds(): string | undefined {
    return this.parent ? undefined : this.block.packed(this.index);
  }

  end(end: SpanEnd): void {
    // By the monotonic clock: the system clock may be set meanwhile.
    this.endMs = this.startMs + (end.endedAt ?? performance.now()) - this.#startedAt;
    this.#take(this, end);
  }
}
