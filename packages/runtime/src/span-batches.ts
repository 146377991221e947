/**
 * Collects spans in batches and exports one after the other, as the SDK's `BatchSpanProcessor` does and with its
 * settings (`OTEL_BSP_*`): after a time, or as soon as a batch is full. The SDK's processor keeps each span, with a
 * closure, until its export. Here, a span is written when it ends, and only its bytes wait.
 */
import { diag } from '@opentelemetry/api';
import { ExportResultCode, globalErrorHandler } from '@opentelemetry/core';
import { withTimeLimit } from '@posthorn/core';
import { MAX_TIMER_MS } from './settings.ts';
import type { SpanBatch, SpanWriter } from './span-writer.ts';
import type { StartedSpan } from './started-span.ts';
import type { SpanEnd } from './tracing.ts';

/** Where batches go: the SDK's exporter. */
interface BatchExporter {
  export(batch: SpanBatch, done: (result: { code: ExportResultCode; error?: Error }) => void): void;
  shutdown(): Promise<void>;
}

export interface BatchLimits {
  delayMs: number;
  exportTimeoutMs: number;
  /** Spans that may wait for their export; further ones are dropped. */
  maxQueue: number;
  /** Spans of a batch. */
  maxBatch: number;
}

/** Reads the limits from the environment. The specification has the defaults, also in place of what makes no sense. */
export function batchLimitsFromEnv(env: NodeJS.ProcessEnv = process.env): BatchLimits {
  const ignored: string[] = [];
  const setting = (name: string, otherwise: number) => {
    const text = env[name]?.trim();
    if (!text) return otherwise;
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= MAX_TIMER_MS) return value;
    ignored.push(name);
    return otherwise;
  };
  const maxQueue = setting('OTEL_BSP_MAX_QUEUE_SIZE', 2_048);
  const limits = {
    delayMs: setting('OTEL_BSP_SCHEDULE_DELAY', 5_000),
    exportTimeoutMs: setting('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
    maxQueue,
    maxBatch: Math.min(maxQueue, setting('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512)),
  };
  if (ignored.length > 0)
    diag.warn(`${ignored.join(', ')}: not a whole number from 1 to ${MAX_TIMER_MS}, so the default applies`);
  return limits;
}

/** The queue of a process. Errors of exports go to the global error handler. */
export class SpanBatches {
  readonly #writer: SpanWriter;
  readonly #exporter: BatchExporter;
  readonly #limits: BatchLimits;
  /** Those that wait, the oldest first, and how many spans they have. */
  #batches: SpanBatch[] = [];
  #queued = 0;
  #dropped = 0;
  #exporting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(writer: SpanWriter, exporter: BatchExporter, limits: BatchLimits) {
    this.#writer = writer;
    this.#exporter = exporter;
    this.#limits = limits;
  }

  /** Takes a span that has ended. It is dropped if too many wait. */
  add(span: StartedSpan, end: SpanEnd): void {
    const { maxQueue, maxBatch, delayMs } = this.#limits;
    if (this.#isClosed) return;
    if (this.#queued + this.#writer.length >= maxQueue) {
      this.#dropped += 1;
      return;
    }
    this.#writer.add(span, end);
    if (this.#writer.length >= maxBatch) this.#endBatch();
    else this.#timer ??= setTimeout(() => this.#endBatch(), delayMs).unref();
  }

  /** Exports what there is, all batches at once. It may take as long as the collector does. */
  async shutdown(): Promise<void> {
    this.#isClosed = true;
    this.#takeBatch();
    const batches = this.#batches;
    this.#batches = [];
    await Promise.all([this.#exporting, ...batches.map((batch) => this.#export(batch))]);
    await this.#exporter.shutdown();
  }

  #endBatch(): void {
    this.#takeBatch();
    if (this.#batches.length > 0) this.#exporting ??= this.#exportAll();
  }

  #takeBatch(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#dropped > 0) diag.warn(`Dropped ${this.#dropped} spans because maxQueueSize reached`);
    this.#dropped = 0;
    const batch = this.#writer.takeBatch();
    if (!batch) return;
    this.#batches.push(batch);
    this.#queued += batch.length;
  }

  async #exportAll(): Promise<void> {
    for (let batch = this.#batches.shift(); batch; batch = this.#batches.shift()) {
      this.#queued -= batch.length;
      await this.#export(batch);
    }
    this.#exporting = undefined;
  }

  async #export(batch: SpanBatch): Promise<void> {
    const exported = new Promise<void>((resolve, reject) => {
      this.#exporter.export(batch, ({ code, error }) => {
        if (code === ExportResultCode.SUCCESS) resolve();
        else reject(error ?? new Error('The export of spans failed.'));
      });
    });
    try {
      await withTimeLimit(this.#limits.exportTimeoutMs, exported);
    } catch (error) {
      globalErrorHandler(error as Error);
      return;
    }
    // Not after a failure: the bytes may still be on their way.
    this.#writer.giveBack(batch);
  }
}
