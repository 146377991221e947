/**
 * The trace of an event: from the publisher's call through every attempt, in logs, in the operator API and, if
 * configured, at receivers.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { createPublisher } from '@posthorn/client';
import { type CollectedSpan, eventually, HUNG_MS, isDelivery, startCollector } from '@posthorn/testing';
import { callApi } from '../scripts/api-client.ts';
import { root } from '../scripts/folder.ts';
import { atEnd, ownApps, ownDir, ownEnv, ownProcess, ownReceiver } from './own.ts';
import type { Process } from './processes.ts';
import { ENCRYPTION_KEY, OPERATOR_TOKEN, PUBLISHER_KEY, sampleEvent } from './world.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

/** The lines of a process's log with this message. */
function linesOf({ output }: Process, message: string): Record<string, unknown>[] {
  return output.flatMap((line) => (line.includes(`"msg":"${message}"`) ? [JSON.parse(line)] : []));
}

/** Publishes as a traced publisher does. */
async function publishWithin(
  ingestUrl: string,
  traceparent: string,
  path = '/v1/events',
  body: unknown = sampleEvent(),
) {
  return await callApi('POST', `${ingestUrl}${path}`, { token: PUBLISHER_KEY, body, headers: { traceparent } });
}

describe('the trace of a publisher, without a tracer in Posthorn', () => {
  it('is in the log lines of its event and every attempt, and in the operator API, but not at receivers', async () => {
    const apps = await ownApps(ownEnv({ RETRY_DELAYS: '1ms' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    to.answerWith((_request, response) =>
      response.writeHead(to.requests.filter(isDelivery).length > 1 ? 200 : 500).end(),
    );
    const { body } = await publishWithin(apps.ingestUrl, TRACEPARENT);
    const requests = await to.received(2, isDelivery);
    await eventually('two attempts in the log', () => linesOf(apps.worker, 'delivery.attempted').length === 2);
    for (const line of [...linesOf(apps.ingest, 'event.ingested'), ...linesOf(apps.worker, 'delivery.attempted')]) {
      expect(line).toMatchObject({ event_id: body.id, trace_id: TRACE_ID });
    }
    expect((await apps.operate('GET', `/v1/events/${body.id}`)).body).toMatchObject({ trace_id: TRACE_ID });
    for (const { headers } of requests) expect(headers.traceparent).toBeUndefined();
  });
  it('is sent to receivers with SEND_TRACEPARENT=on, without flags that nobody knows', async () => {
    const apps = await ownApps(ownEnv({ SEND_TRACEPARENT: 'on' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    const batch = { events: [sampleEvent(), sampleEvent()] };
    await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events/batch', batch);
    await publishWithin(apps.ingestUrl, TRACEPARENT.replace(/01$/, 'ff'));
    await apps.publish(sampleEvent());
    const headers = (await to.received(4, isDelivery)).map((request) => request.headers.traceparent);
    expect(headers.sort()).toEqual([TRACEPARENT, TRACEPARENT, TRACEPARENT.replace(/01$/, '03'), undefined]);
  });
  it('is ignored if it is invalid, and the event is accepted', async () => {
    const invalid = {
      'too short': '00-0-0-01',
      'there are two': `${TRACEPARENT}, ${TRACEPARENT}`,
      'very long': `${TRACEPARENT}${'-a'.repeat(4_000)}`,
      'not ASCII': '\u00ff',
      'made to break JSON': '"}\\',
    };
    const apps = await ownApps(ownEnv({ SEND_TRACEPARENT: 'on' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    const results = [];
    for (const [why, traceparent] of Object.entries(invalid)) {
      const { status, body } = await publishWithin(apps.ingestUrl, traceparent);
      results.push([why, status, (await apps.operate('GET', `/v1/events/${body.id}`)).body.trace_id]);
    }
    expect(results).toEqual(Object.keys(invalid).map((why) => [why, 202, null]));
    const requests = await to.received(results.length, isDelivery);
    expect(requests.map(({ headers }) => headers.traceparent)).toEqual(results.map(() => undefined));
    const lines = linesOf(apps.ingest, 'event.ingested');
    expect(lines).toHaveLength(results.length);
    for (const line of lines) expect(line).not.toHaveProperty('trace_id');
  });
});

/** The kinds of a span in OTLP. */
const [INTERNAL, CLIENT, PRODUCER] = [1, 3, 4];
const ERROR = 2;

async function ownCollector() {
  const collector = await startCollector();
  atEnd(() => collector.close());
  return collector;
}

/** Settings that export each span soon, and once: what takes too long is sent again. */
const tracingTo = (collector: { url: string }) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_TIMEOUT: String(HUNG_MS),
  OTEL_BSP_EXPORT_TIMEOUT: String(HUNG_MS),
  OTEL_BSP_SCHEDULE_DELAY: '10',
});

type Apps = Awaited<ReturnType<typeof ownApps>>;

/** Stops all processes like a deployment: then every span that has ended is exported. */
async function stopAll({ ingest, worker, operator }: Apps): Promise<void> {
  for (const { child, ended } of [ingest, worker, operator]) {
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  }
}

const named = (spans: readonly CollectedSpan[], name: string) => spans.filter((span) => span.name === name);

describe('tracing', () => {
  it('makes one trace of the call of the publisher, every attempt and the replay', async () => {
    const collector = await ownCollector();
    const apps = await ownApps(ownEnv({ RETRY_DELAYS: '1ms', ...tracingTo(collector) }));
    const to = await ownReceiver((request, response) => response.writeHead(isDelivery(request) ? 500 : 200).end());
    const { id: subscriptionId, secret } = await apps.subscribe(`${to.url}/word-in-the-path?token=word-in-the-query`);
    const event = sampleEvent({ data: { id: 'word-in-the-payload', status: 'approved' } });
    const { body } = await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events', event);
    const [failed] = await eventually('the delivery to fail', async () => {
      const found = await apps.deliveries('status=failed');
      return found.length === 1 && found;
    });
    to.answerWith(200);
    const operatorTrace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const replayed = await callApi('POST', `${(await apps.operator.ready).url}/v1/deliveries/${failed.id}/replay`, {
      token: OPERATOR_TOKEN,
      headers: { traceparent: operatorTrace },
    });
    await eventually('the replay to arrive', async () => (await apps.deliveries('status=succeeded')).length === 1);
    await stopAll(apps);

    const { spans } = collector;
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE_ID]));
    const [published] = named(spans, 'publish session.approved');
    expect(published).toMatchObject({
      parentSpanId: 'b7ad6b7169203331',
      kind: PRODUCER,
      status: 0,
      attributes: {
        'messaging.system': 'posthorn',
        'messaging.operation.name': 'publish',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'session.approved',
        'messaging.message.id': body.id,
        'posthorn.publisher': 'tests',
        'posthorn.outcome': 'accepted',
        'posthorn.deliveries': 1,
      },
      resource: { 'service.name': 'posthorn-ingest' },
    });
    const attempts = named(spans, 'deliver session.approved').sort((a, b) => Number(a.startNs - b.startNs));
    expect(attempts).toHaveLength(3);
    for (const { parentSpanId, kind, resource, attributes, startNs, endNs } of attempts) {
      expect({ parentSpanId, kind }).toEqual({ parentSpanId: published?.spanId, kind: CLIENT });
      expect(resource).toMatchObject({ 'service.name': 'posthorn-worker' });
      expect(attributes).toMatchObject({
        'messaging.system': 'posthorn',
        'messaging.message.id': body.id,
        'http.request.method': 'POST',
        'url.full': new URL('/', to.url).href,
        'server.address': '127.0.0.1',
        'server.port': to.port,
        'posthorn.subscription.id': subscriptionId,
      });
      expect(endNs).toBeGreaterThanOrEqual(startNs);
    }
    const shown = attempts.map(({ status, attributes }) => [
      status,
      attributes['http.response.status_code'],
      attributes['error.type'],
      attributes['http.request.resend_count'],
      attributes['posthorn.delivery.id'],
      attributes['posthorn.replay'],
    ]);
    expect(shown).toEqual([
      [ERROR, 500, '500', undefined, failed.id, undefined],
      [ERROR, 500, '500', 1, failed.id, undefined],
      [0, 200, undefined, undefined, replayed.body.id, true],
    ]);
    const [replay] = named(spans, 'replay session.approved');
    expect(replay).toMatchObject({
      parentSpanId: published?.spanId,
      kind: PRODUCER,
      links: [{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }],
      resource: { 'service.name': 'posthorn-console' },
    });
    expect(spans).toHaveLength(5);

    const lines = [
      [linesOf(apps.ingest, 'event.ingested'), [published]],
      [linesOf(apps.worker, 'delivery.attempted'), attempts],
      [linesOf(apps.operator, 'delivery.replayed'), [replay]],
    ] as const;
    for (const [logged, made] of lines) {
      expect(logged.map(({ trace_id, span_id }) => [trace_id, span_id])).toEqual(
        made.map((span) => [TRACE_ID, span?.spanId]),
      );
    }
    const exported = Buffer.concat(collector.requests.map((request) => request.body)).toString('latin1');
    for (const text of [
      'word-in-the-path',
      'word-in-the-query',
      PUBLISHER_KEY,
      OPERATOR_TOKEN,
      ENCRYPTION_KEY,
      secret,
      'status=failed',
      'word-in-the-payload',
    ]) {
      expect(exported).not.toContain(text);
    }
  });

  it('begins a trace where the publisher has none; receivers get the span of the attempt with SEND_TRACEPARENT=on', async () => {
    const collector = await ownCollector();
    const apps = await ownApps(
      ownEnv({ ...tracingTo(collector), SEND_TRACEPARENT: 'on', OTEL_RESOURCE_ATTRIBUTES: 'team=a' }),
    );
    const to = await ownReceiver();
    const { id } = await apps.subscribe(to.url);
    const { body } = await apps.publish(sampleEvent());
    await to.received(1, isDelivery);
    await apps.operate('POST', `/v1/subscriptions/${id}/test`);
    const requests = await to.received(2, isDelivery);
    await eventually('two successes', async () => (await apps.deliveries('status=succeeded')).length === 2);
    const { trace_id: traceId } = (await apps.operate('GET', `/v1/events/${body.id}`)).body;
    await stopAll(apps);
    for (const [i, type] of ['session.approved', 'webhook.test'].entries()) {
      const [published] = named(collector.spans, `publish ${type}`);
      const [attempt] = named(collector.spans, `deliver ${type}`);
      expect(published).toMatchObject({ parentSpanId: '', kind: PRODUCER, resource: { team: 'a' } });
      expect(attempt).toMatchObject({ traceId: published?.traceId, parentSpanId: published?.spanId });
      expect(requests[i]?.headers.traceparent).toBe(`00-${attempt?.traceId}-${attempt?.spanId}-03`);
    }
    expect(named(collector.spans, 'publish session.approved')[0]?.traceId).toBe(traceId);
    expect(new Set(collector.spans.map((span) => span.traceId)).size).toBe(2);
  });

  it('has a span for each event of a batch, with its error if it is refused', async () => {
    const collector = await ownCollector();
    const apps = await ownApps(ownEnv(tracingTo(collector)));
    const taken = sampleEvent({ id: 'evt-taken' });
    const events = [taken, { ...taken, type: 'session.declined' }, sampleEvent({ type: 'nonsense' }), taken];
    await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events/batch', { events });
    await stopAll(apps);
    const shown = collector.spans.map(({ name, parentSpanId, status, attributes }) => [
      name,
      parentSpanId,
      status,
      attributes['error.type'] ?? attributes['posthorn.outcome'],
    ]);
    const parent = 'b7ad6b7169203331';
    expect(shown.map((span) => span.join(' ')).sort()).toEqual([
      `publish ${parent} ${ERROR} invalid_fields`,
      `publish session.approved ${parent} 0 accepted`,
      `publish session.approved ${parent} 0 duplicate`,
      `publish session.declined ${parent} ${ERROR} conflict`,
    ]);
  });

  it('gives each event of a batch the trace that the client of the publisher names', async () => {
    const apps = await ownApps(ownEnv({ SEND_TRACEPARENT: 'on' }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    const publisher = createPublisher({ url: apps.ingestUrl, key: PUBLISHER_KEY });
    const traceOf = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;
    const event = sampleEvent() as Parameters<typeof publisher.publish>[0];
    const digits = ['1', '2', '3'];
    await Promise.all(digits.map((digit) => publisher.publish(event, { traceparent: traceOf(digit) })));
    await publisher.close();
    const events = [event, event, event];
    await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events/batch', {
      events,
      traceparents: [traceOf('4'), 'nonsense'],
    });
    const { body } = await publishWithin(apps.ingestUrl, TRACEPARENT, '/v1/events/batch', {
      events,
      traceparents: [4],
    });
    expect(body).toMatchObject({ status: 422, errors: [{ path: 'traceparents.0' }] });
    const headers = (await to.received(6, isDelivery)).map((request) => request.headers.traceparent);
    expect(headers.sort()).toEqual([TRACEPARENT, TRACEPARENT, ...['1', '2', '3', '4'].map(traceOf)]);
  });

  it('has a span for an attempt without response, for trying it now, and for a bulk replay', async () => {
    const collector = await ownCollector();
    const apps = await ownApps(ownEnv({ ...tracingTo(collector), RETRY_DELAYS: '1h' }));
    const to = await ownReceiver((request, response) => {
      if (isDelivery(request)) response.destroy();
      else response.end();
    });
    const { id: subscriptionId } = await apps.subscribe(to.url);
    await publishWithin(apps.ingestUrl, TRACEPARENT);
    const [waiting] = await eventually('the first attempt', async () => {
      const found = await apps.deliveries('status=waiting_for_retry');
      return found.length === 1 && found;
    });
    expect((await apps.operate('POST', `/v1/deliveries/${waiting.id}/try-now`)).status).toBe(202);
    await eventually('the second attempt', async () => (await apps.deliveries('status=failed')).length === 1);
    expect((await apps.operate('POST', '/v1/replays', { subscription_id: subscriptionId })).status).toBe(202);
    await stopAll(apps);
    expect(named(collector.spans, 'deliver session.approved').length).toBeGreaterThanOrEqual(2);
    for (const span of named(collector.spans, 'deliver session.approved'))
      expect(span).toMatchObject({ traceId: TRACE_ID, status: ERROR, attributes: { 'error.type': 'connection' } });
    expect(named(collector.spans, 'try_now session.approved')).toMatchObject([{ traceId: TRACE_ID, kind: INTERNAL }]);
    const [bulk] = named(collector.spans, 'replay');
    expect(bulk).toMatchObject({ parentSpanId: '', kind: INTERNAL });
    expect(linesOf(apps.operator, 'replay.started')).toMatchObject([
      { trace_id: bulk?.traceId, span_id: bulk?.spanId },
    ]);
  });

  it('leaves to the publisher which of its traces are sampled, and takes a ratio of those that it begins', async () => {
    const collector = await ownCollector();
    const sampler = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' };
    const apps = await ownApps(ownEnv({ ...tracingTo(collector), ...sampler }));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    const unsampled = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-00`;
    const published = [await publishWithin(apps.ingestUrl, unsampled), await apps.publish(sampleEvent())];
    published.push(await publishWithin(apps.ingestUrl, TRACEPARENT));
    await eventually('three attempts in the log', () => linesOf(apps.worker, 'delivery.attempted').length === 3);
    const logged = new Map(linesOf(apps.worker, 'delivery.attempted').map((line) => [line.event_id, line]));
    const [traced, untraced, sampled] = published.map(({ body }) => logged.get(body.id));
    expect(traced).toMatchObject({ trace_id: 'c'.repeat(32) });
    expect(traced).not.toHaveProperty('span_id');
    expect(untraced).not.toHaveProperty('trace_id');
    expect(sampled).toMatchObject({ trace_id: TRACE_ID });
    const { body } = await apps.operate('GET', `/v1/events/${published[1]?.body.id}`);
    expect(body).toMatchObject({ trace_id: null });
    await stopAll(apps);
    // Each process exports its own.
    expect(collector.spans.map(({ traceId, name }) => `${traceId} ${name}`).sort()).toEqual([
      `${TRACE_ID} deliver session.approved`,
      `${TRACE_ID} publish session.approved`,
    ]);
  });

  it('sends JSON and headers from a file, if the settings say so', async () => {
    const collector = await ownCollector();
    const file = join(ownDir(), 'headers');
    writeFileSync(file, 'x-api-key=word-for-the-collector');
    const json = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_HEADERS_FILE: file };
    const ingest = ownProcess('ingest', ownEnv({ ...tracingTo(collector), ...json, OTEL_SERVICE_NAME: 'other' }));
    await publishWithin((await ingest.ready).url, TRACEPARENT);
    ingest.child.kill('SIGTERM');
    expect(await ingest.ended).toBe(0);
    expect(collector.spans).toMatchObject([{ traceId: TRACE_ID, resource: { 'service.name': 'other' } }]);
    expect(collector.requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: { 'x-api-key': 'word-for-the-collector', 'content-type': 'application/json' },
    });
    expect(ingest.output.join()).not.toContain('word-for-the-collector');
  });

  it.each([
    [
      'http/protobuf',
      { OTEL_ATTRIBUTE_COUNT_LIMIT: '2', OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '4' },
      ['post', 'publ'],
    ],
    ['http/json', { OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '2', OTEL_ATTRIBUTE_COUNT_LIMIT: '1' }, ['posthorn', 'publish']],
  ])('keeps the limits of attributes, as %s', async (protocol, limits, values) => {
    const collector = await ownCollector();
    const settings = { ...tracingTo(collector), OTEL_EXPORTER_OTLP_PROTOCOL: protocol, ...limits };
    const ingest = ownProcess('ingest', ownEnv(settings));
    await publishWithin((await ingest.ready).url, TRACEPARENT);
    ingest.child.kill('SIGTERM');
    expect(await ingest.ended).toBe(0);
    expect(collector.spans.map(({ attributes }) => Object.values(attributes))).toEqual([values]);
  });

  it('shows spans on stdout with the exporter `console`', async () => {
    const ingest = ownProcess('ingest', ownEnv({ OTEL_TRACES_EXPORTER: 'console', OTEL_BSP_SCHEDULE_DELAY: '10' }));
    await publishWithin((await ingest.ready).url, TRACEPARENT);
    ingest.child.kill('SIGTERM');
    expect(await ingest.ended).toBe(0);
    const shown = ingest.output.join('\n');
    for (const text of ["name: 'publish session.approved'", TRACE_ID, "'posthorn.outcome': 'accepted'"])
      expect(shown).toContain(text);
  });

  it('takes bounded memory and delays nothing while the collector hangs, nor the stop', async () => {
    const collector = await ownCollector();
    collector.answerWith(() => undefined);
    const [QUEUE, BATCH] = [10, 5];
    const apps = await ownApps(
      ownEnv({
        ...tracingTo(collector),
        OTEL_BSP_MAX_QUEUE_SIZE: String(QUEUE),
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: String(BATCH),
        OTEL_BSP_EXPORT_TIMEOUT: '3600000',
        OTEL_EXPORTER_OTLP_TIMEOUT: '3600000',
      }),
    );
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    await apps.publishBatch(Array.from({ length: 60 }, () => sampleEvent()));
    await to.received(60, isDelivery);
    await eventually('all successes', async () => (await apps.deliveries('status=succeeded&limit=100')).length === 60);
    await stopAll(apps);
    for (const service of ['posthorn-ingest', 'posthorn-worker']) {
      const received = collector.spans.filter(({ resource }) => resource['service.name'] === service).length;
      expect(received).toBeGreaterThanOrEqual(1);
      expect(received).toBeLessThanOrEqual(BATCH + QUEUE);
    }
    expect(linesOf(apps.worker, 'tracing.flush_failed')).toHaveLength(1);
  });

  it('says in the log that the collector fails, and goes on', async () => {
    const collector = await ownCollector();
    collector.answerWith((response) => response.writeHead(400).end('no'));
    const apps = await ownApps(ownEnv(tracingTo(collector)));
    const to = await ownReceiver();
    await apps.subscribe(to.url);
    await apps.publish(sampleEvent());
    await to.received(1, isDelivery);
    await eventually('a line in each log', () =>
      [apps.ingest, apps.worker].every((process) => linesOf(process, 'tracing.failed').length === 1),
    );
    await stopAll(apps);
  });
});

describe('a process', () => {
  const apps = ['ingest', 'worker', 'console'] as const;
  /** How many modules of OpenTelemetry are in the files that the process loads. */
  const loaded = async (app: (typeof apps)[number], change: Record<string, string>) => {
    const watcher = pathToFileURL(join(root, 'tests/watch-modules.ts')).href;
    const process = ownProcess(app, ownEnv({ NODE_OPTIONS: `--import=${watcher}`, ...change }));
    await process.ready;
    const files = new Set(linesOf(process, 'module.loaded').map(({ url }) => basename(String(url))));
    const modules = readFileSync(join(root, `apps/${app}/dist/modules.txt`), 'utf8').split('\n');
    const ofOpenTelemetry = modules.filter((line) => line.includes('/@opentelemetry/'));
    return ofOpenTelemetry.filter((line) => files.has(line.slice(0, line.indexOf(' ')))).length;
  };
  it.each(apps)('of %s loads nothing of OpenTelemetry unless tracing is on', async (app) => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
    expect(await loaded(app, {})).toBe(0);
    expect(await loaded(app, endpoint)).toBeGreaterThan(10);
  });
  it('refuses settings of OpenTelemetry that it does not support, by name and without their values', async () => {
    const process = ownProcess(
      'ingest',
      ownEnv({
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
        OTEL_EXPORTER_OTLP_HEADERS: 'hunter2',
        OTEL_TRACES_EXPORTER: 'zipkin',
        OTEL_TRACES_SAMPLER: 'xray',
        OTEL_TRACES_SAMPLER_ARG: '2',
      }),
    );
    expect(await process.ended).toBe(1);
    const said = process.output.join('\n');
    expect(said).toContain('OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf or http/json');
    expect(said).toContain('OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL');
    for (const name of ['OTLP_HEADERS', 'TRACES_EXPORTER', 'TRACES_SAMPLER', 'TRACES_SAMPLER_ARG'])
      expect(said).toContain(`${name}: must be`);
    expect(said).not.toContain('hunter2');
  });
});
