/** When batches of spans are exported, and what is dropped. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { diag } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode, setGlobalErrorHandler } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { HOUR_MS } from '@posthorn/core';
import { decodeTraces } from '@posthorn/testing';
import { type BatchLimits, batchLimitsFromEnv, SpanBatches } from './span-batches.ts';
import { SpanIds } from './span-ids.ts';
import { type SpanBatch, SpanWriter } from './span-writer.ts';
import { StartedSpan } from './started-span.ts';

const scope = { resource: resourceFromAttributes({}), instrumentationScope: { name: 'posthorn' } };

/** An exporter whose exports end when the test says so. */
function ownExporter() {
  const started: { names: string[]; length: number; bytes: Uint8Array; end(result: ExportResult): void }[] = [];
  let onStart = () => {};
  return {
    started,
    isShutDown: false,
    /** Resolves once so many exports have started. */
    async starts(count: number): Promise<void> {
      while (started.length < count) await new Promise<void>((resolve) => (onStart = resolve));
    },
    export(batch: SpanBatch, end: (result: ExportResult) => void) {
      const names = decodeTraces(Buffer.from(batch.bytes), 'application/x-protobuf').map(({ name }) => name);
      started.push({ names, length: batch.length, bytes: batch.bytes, end });
      onStart();
    },
    async shutdown() {
      this.isShutDown = true;
    },
  };
}

function ownBatches(limits: Partial<BatchLimits>) {
  const exporter = ownExporter();
  const batches = new SpanBatches(new SpanWriter(scope), exporter, {
    delayMs: HOUR_MS,
    exportTimeoutMs: HOUR_MS,
    maxQueue: 10,
    maxBatch: 3,
    ...limits,
  });
  const ids = new SpanIds();
  const end = (...names: string[]) => {
    for (const name of names) {
      ids.next();
      const span = new StartedSpan((one, end) => batches.add(one, end), ids, undefined);
      span.end({ shape: { kind: 'client', name, attributes: {}, varying: [] }, values: [] });
    }
  };
  return { batches, exporter, end };
}

const SUCCESS = { code: ExportResultCode.SUCCESS };

afterEach(() => diag.disable());

describe('batches of spans', () => {
  it('are exported when they are full, one after the other', async () => {
    const { exporter, end } = ownBatches({});
    end('1', '2');
    expect(exporter.started).toEqual([]);
    end('3', '4', '5', '6', '7');
    expect(exporter.started.map(({ names }) => names)).toEqual([['1', '2', '3']]);
    exporter.started[0]?.end(SUCCESS);
    await exporter.starts(2);
    expect(exporter.started[1]).toMatchObject({ names: ['4', '5', '6'], length: 3 });
    exporter.started[1]?.end(SUCCESS);
  });

  it('are exported after a time', async () => {
    const { exporter, end } = ownBatches({ delayMs: 1 });
    end('1', '2');
    await exporter.starts(1);
    expect(exporter.started[0]?.names).toEqual(['1', '2']);
    exporter.started[0]?.end(SUCCESS);
    end('3');
    await exporter.starts(2);
    expect(exporter.started[1]?.names).toEqual(['3']);
    exporter.started[1]?.end(SUCCESS);
  });

  it('are exported at the end, all at once', async () => {
    const { batches, exporter, end } = ownBatches({});
    end('1', '2', '3', '4', '5', '6', '7');
    const stopped = batches.shutdown();
    expect(exporter.started.map(({ names }) => names)).toEqual([['1', '2', '3'], ['4', '5', '6'], ['7']]);
    end('8');
    for (const one of exporter.started) one.end(SUCCESS);
    await stopped;
    expect(exporter).toMatchObject({ isShutDown: true, started: { length: 3 } });
  });

  it('use the bytes of a batch again once it was accepted, and not before', async () => {
    const { exporter, end } = ownBatches({});
    const bytesOf = (i: number) => exporter.started[i]?.bytes.buffer;
    const failed = { code: ExportResultCode.FAILED, error: new Error('refused') };
    setGlobalErrorHandler(() => undefined);
    end('1', '2', '3', '4', '5', '6');
    exporter.started[0]?.end(failed);
    await exporter.starts(2);
    end('7', '8', '9');
    exporter.started[1]?.end(SUCCESS);
    await exporter.starts(3);
    end('10', '11', '12', '13', '14', '15');
    exporter.started[2]?.end(SUCCESS);
    await exporter.starts(4);
    exporter.started[3]?.end(SUCCESS);
    await exporter.starts(5);
    const ofRefused = [1, 2, 3, 4].filter((i) => bytesOf(i) === bytesOf(0));
    expect(ofRefused).toEqual([]);
    expect(bytesOf(4)).toBe(bytesOf(1));
    expect(exporter.started[4]?.names).toEqual(['13', '14', '15']);
    exporter.started[4]?.end(SUCCESS);
  });

  it('drop spans while too many wait, and say how many', async () => {
    const warnings: string[] = [];
    const ignore = () => undefined;
    diag.setLogger({
      warn: (message) => warnings.push(message),
      error: ignore,
      info: ignore,
      debug: ignore,
      verbose: ignore,
    });
    const { batches, exporter, end } = ownBatches({ maxQueue: 4 });
    end('1', '2', '3');
    end('4', '5', '6', '7', '8', '9');
    exporter.started[0]?.end(SUCCESS);
    await exporter.starts(2);
    const stopped = batches.shutdown();
    expect(exporter.started.map(({ names }) => names)).toEqual([['1', '2', '3'], ['4', '5', '6'], ['7']]);
    for (const one of exporter.started) one.end(SUCCESS);
    await stopped;
    expect(warnings).toEqual(['Dropped 2 spans because maxQueueSize reached']);
  });

  it.each([
    ['fails', HOUR_MS, 'the collector is away'],
    ['takes too long', 1, 'No result within 1 ms'],
  ])('are given up, with an error, if their export %s', async (how, exportTimeoutMs, message) => {
    const errors: unknown[] = [];
    setGlobalErrorHandler((error) => errors.push(error));
    const { exporter, end } = ownBatches({ exportTimeoutMs });
    end('1', '2', '3', '4', '5', '6');
    if (how === 'fails')
      exporter.started[0]?.end({ code: ExportResultCode.FAILED, error: new Error('the collector is away') });
    await exporter.starts(2);
    expect(exporter.started[1]?.names).toEqual(['4', '5', '6']);
    exporter.started[1]?.end(SUCCESS);
    expect(errors).toMatchObject([{ message }]);
  });
});

describe('the limits of batches', () => {
  const ofSpecification = { delayMs: 5_000, exportTimeoutMs: 30_000, maxQueue: 2_048, maxBatch: 512 };
  const limits = (maxQueue: string, maxBatch: string, delayMs: string, exportTimeoutMs: string) =>
    batchLimitsFromEnv({
      OTEL_BSP_MAX_QUEUE_SIZE: maxQueue,
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: maxBatch,
      OTEL_BSP_SCHEDULE_DELAY: delayMs,
      OTEL_BSP_EXPORT_TIMEOUT: exportTimeoutMs,
    });
  it('are those of the specification by default', () => {
    expect(batchLimitsFromEnv()).toEqual(ofSpecification);
    expect(limits('', ' ', '', '')).toEqual(ofSpecification);
  });
  it('are those of the environment that make sense', () => {
    const given = { delayMs: 1, exportTimeoutMs: 2_147_483_647, maxQueue: 10, maxBatch: 1 };
    expect(limits('10', ' 1 ', '1', '2147483647')).toEqual(given);
    expect(limits('10', '', '1', '2147483647')).toEqual({ ...given, maxBatch: 10 });
    for (const bad of ['0', '-1', '0.5', '2147483648', 'Infinity', 'many'])
      expect(limits(bad, bad, bad, bad)).toEqual(ofSpecification);
  });
});
