/** What the settings of OpenTelemetry mean for the spans that a collector gets, and what the log says. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { diag } from '@opentelemetry/api';
import { eventually, HUNG_MS, startCollector } from '@posthorn/testing';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createLogger } from './logger.ts';
import { openTracer } from './open-telemetry.ts';
import { loadSettings } from './settings.ts';
import { tracingSettings } from './tracing-settings.ts';

const atEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of atEnd.splice(0).reverse()) await end();
});

/** A collector, and a tracer with these settings; the SDK reads some of them from the environment. */
async function ownTracer(settingsFor: Record<string, string> | ((url: string) => Record<string, string>)) {
  const collector = await startCollector();
  atEnd.push(() => collector.close());
  const env: Record<string, string> = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: String(HUNG_MS),
    OTEL_BSP_EXPORT_TIMEOUT: String(HUNG_MS),
    ...(typeof settingsFor === 'function' ? settingsFor(collector.url) : settingsFor),
  };
  const before = process.env;
  process.env = { ...before, ...env };
  atEnd.push(() => {
    process.env = before;
    diag.disable();
  });
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ app: 'test', level: 'info', destination });
  const registry = new Registry();
  const settings = loadSettings(z.object(tracingSettings()), env);
  const tracer = openTracer({ app: 'test', settings, logger, registry, exporter: 'otlp' });
  const end = (...names: string[]) => {
    const shape = { kind: 'internal', attributes: { text: 'word' }, varying: [] } as const;
    for (const name of names) tracer.startSpan(undefined)?.end({ shape: { ...shape, name }, values: [] });
  };
  const exported = () => collector.spans.map(({ name }) => name).sort();
  /** The counter of lost spans. */
  const dropped = async () => (await registry.getSingleMetric('posthorn_spans_dropped_total')?.get())?.values[0]?.value;
  return { collector, lines, end, exported, dropped, stop: tracer.shutdown };
}

const PROTOCOLS = ['http/protobuf', 'http/json'];

describe('sizes and times', () => {
  it.each(PROTOCOLS)('that make no sense are ignored, and the log says so: %s', async (protocol) => {
    const { lines, end, exported, stop } = await ownTracer({
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_BSP_MAX_QUEUE_SIZE: '0',
      OTEL_BSP_SCHEDULE_DELAY: '-1',
    });
    end('1', '2');
    await stop();
    expect(exported()).toEqual(['1', '2']);
    const reason = 'OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_SCHEDULE_DELAY: not a whole number from 1 to 2147483647';
    expect(lines).toMatchObject([{ msg: 'tracing.failed', reason: expect.stringContaining(reason) }]);
  });

  it.each(PROTOCOLS)('of an export may be longer than a timer of Node: %s', async (protocol) => {
    const { lines, end, exported, stop } = await ownTracer({
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_TIMEOUT: '3000000000',
    });
    end('1');
    await stop();
    expect(exported()).toEqual(['1']);
    expect(lines).toEqual([]);
  });
});

describe('limits of attributes', () => {
  it.each([
    ['0', { text: '' }],
    ['2', { text: 'wo' }],
    ['-1', { text: 'word' }],
  ])('may be 0, but not negative: %s characters', async (limit, attributes) => {
    const { collector, end, stop } = await ownTracer({
      OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: limit,
      OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '-1',
    });
    end('1');
    await stop();
    expect(collector.spans).toMatchObject([{ attributes }]);
  });
});

describe('the collector', () => {
  const ownEndpoint = (change: (url: string) => string) => (url: string) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: change(url),
    OTEL_SERVICE_NAME: ' other ',
    OTEL_RESOURCE_ATTRIBUTES: ' team=a ',
  });
  it.each([
    ['blanks', (url: string) => ` ${url}/ `, '/v1/traces'],
    ['a path', (url: string) => `${url}/base`, '/base/v1/traces'],
    ['a query', (url: string) => `${url}/base/?k=v`, '/base/v1/traces?k=v'],
    ['a user', (url: string) => `${url.replace('//', '//user:hunter2@')} `, '/v1/traces'],
  ])('gets spans at its endpoint with %s', async (_, change, path) => {
    const { collector, lines, end, stop } = await ownTracer(ownEndpoint(change));
    end('1');
    await stop();
    expect(collector.requests.map((request) => request.path)).toEqual([path]);
    expect(collector.spans).toMatchObject([{ resource: { 'service.name': 'other', team: 'a' } }]);
    expect(lines).toEqual([]);
  });

  it('gets them at the endpoint for traces as it is', async () => {
    const { collector, end, stop } = await ownTracer((url) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ` ${url}/own?k=v `,
    }));
    end('1');
    await stop();
    expect(collector.requests.map(({ path }) => path)).toEqual(['/own?k=v']);
  });

  it('gets what is set for traces alone: the protocol, and headers in place of those with the same name', async () => {
    const { collector, end, stop } = await ownTracer({
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-a=general,X-B=general',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-b=traces,x-c=traces',
    });
    end('1');
    await stop();
    expect(collector.requests).toMatchObject([
      { headers: { 'content-type': 'application/json', 'x-a': 'general', 'x-b': 'traces', 'x-c': 'traces' } },
    ]);
  });
});

describe('spans that the collector does not get', () => {
  /** A response of OTLP that accepts a batch but for three spans. */
  const partial = (message: string) => ({
    'http/protobuf': Buffer.from(
      `\x0a${String.fromCharCode(message.length + 4)}\x08\x03\x12${String.fromCharCode(message.length)}${message}`,
    ),
    'http/json': Buffer.from(JSON.stringify({ partialSuccess: { rejectedSpans: '3', errorMessage: message } })),
  });
  it.each(['http/protobuf', 'http/json'] as const)(
    'are counted if it rejects them, and the log says why: %s',
    async (protocol) => {
      const { collector, lines, end, dropped, stop } = await ownTracer({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol });
      collector.answerWith((response) => response.end(partial('too old')[protocol]));
      end('1', '2', '3', '4');
      await stop();
      expect(await dropped()).toBe(3);
      expect(lines).toMatchObject([{ msg: 'tracing.failed', spans_dropped: 3 }]);
      expect(lines[0]?.reason).toMatch(/^Received Partial Success response: .*3.*too old/);
    },
  );

  it.each(PROTOCOLS)('are counted if exports fail, also where the log keeps silent: %s', async (protocol) => {
    const { collector, lines, end, dropped, stop } = await ownTracer({
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
    });
    collector.answerWith((response) => response.writeHead(400).end());
    end('1', '2', '3', '4', '5');
    await stop().catch(() => undefined);
    await eventually('all batches to fail', async () => (await dropped()) === 5);
    expect(lines[0]).toMatchObject({ reason: 'The collector answered with status 400.', spans_dropped: 2 });
  });

  it('are counted if too many wait, also where the log keeps silent', async () => {
    const { collector, end, dropped, stop } = await ownTracer({
      OTEL_BSP_MAX_QUEUE_SIZE: '2',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
      // Takes the one line that is logged in ten seconds.
      OTEL_BSP_SCHEDULE_DELAY: '0',
    });
    // The first batch is on its way, the second waits.
    end('1', '2', '3', '4', '5', '6', '7');
    await stop();
    expect(collector.spans).toHaveLength(4);
    expect(await dropped()).toBe(3);
  });

  it('have their reason in the log as the SDK says it, but no more of what a collector answers', async () => {
    const { collector, lines, end, stop } = await ownTracer({});
    collector.answerWith((response) => response.end('hunter2 is no protobuf'));
    end('1');
    await stop();
    expect(lines).toMatchObject([
      {
        msg: 'tracing.failed',
        reason: expect.stringMatching(/^OTLPExportDelegate Export succeeded but could not .* .+/),
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
  });
});
