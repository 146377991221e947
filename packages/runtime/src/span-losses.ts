/** Counts the spans that no collector has got, for a metric and the log. */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { IOtlpExportDelegate } from '@opentelemetry/otlp-exporter-base';
import type { IExportTraceServiceResponse, ISerializer } from '@opentelemetry/otlp-transformer';
import { Counter, type Registry } from 'prom-client';

export class SpanLosses {
  /** Since the start of the process. */
  total = 0;
  readonly #metric: Counter;

  constructor(registry: Registry) {
    this.#metric = new Counter({
      name: 'posthorn_spans_dropped_total',
      help: 'Spans that were not exported: too many waited, an export failed, or the collector rejected them',
      registers: [registry],
    });
  }

  add(spans: number): void {
    // The number may come from a collector.
    if (!(spans > 0)) return;
    this.total += spans;
    this.#metric.inc(spans);
  }

  /** Counts what the collector rejects of a batch that it accepts. */
  ofResponses<Spans>(serializer: ISerializer<Spans, IExportTraceServiceResponse>): typeof serializer {
    return {
      serializeRequest: (spans) => serializer.serializeRequest(spans),
      deserializeResponse: (data) => {
        const response = serializer.deserializeResponse(data);
        // In JSON a text.
        this.add(Number(response.partialSuccess?.rejectedSpans));
        return response;
      },
    };
  }

  /** Counts the spans of exports that fail. */
  ofExports<Spans extends { length: number }>(exporter: IOtlpExportDelegate<Spans>): typeof exporter {
    return {
      export: (spans, done: (result: ExportResult) => void) =>
        exporter.export(spans, (result) => {
          if (result.code !== ExportResultCode.SUCCESS) this.add(spans.length);
          done(result);
        }),
      forceFlush: () => exporter.forceFlush(),
      shutdown: () => exporter.shutdown(),
      setMetrics: (metrics) => exporter.setMetrics(metrics),
    };
  }
}
