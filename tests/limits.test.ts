/** The limits of the specification (section 8) and the defaults of the interface (section 2), if no setting changes them. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { eventually, fakeClock, isDelivery, type ReceivedRequest } from '@posthorn/testing';
import { loadConsoleSettings } from '../apps/console/src/config.ts';
import { loadIngestSettings } from '../apps/ingest/src/config.ts';
import { loadWorkerSettings } from '../apps/worker/src/config.ts';
import { overwriteSubscription, ownReceiver, ownWorld } from './own.ts';
import { sampleEvent, type World } from './world.ts';

const apps = {
  ingest: { load: loadIngestSettings, required: { PUBLISHER_KEYS: `a:both:${'k'.repeat(24)}` } },
  worker: { load: loadWorkerSettings, required: { SECRET_ENCRYPTION_KEY: 'A'.repeat(43) } },
  console: {
    load: loadConsoleSettings,
    required: { SECRET_ENCRYPTION_KEY: 'A'.repeat(43), OPERATOR_TOKENS: `a:${'t'.repeat(24)}` },
  },
};
type App = keyof typeof apps;
const ALL: App[] = ['ingest', 'worker', 'console'];

function settingsOf(app: App, env: Record<string, string> = {}): Record<string, unknown> {
  return apps[app].load({ ...apps[app].required, ...env });
}

/** Each documented setting: its name, the default as an operator would write it, the apps that read it. */
const DOCUMENTED: [name: string, written: string, apps: App[]][] = [
  ['REDIS_URL', 'redis://127.0.0.1:6379', ALL],
  ['REDIS_CLUSTER_NODES', 'none', ALL],
  ['REDIS_SENTINELS', 'none', ALL],
  ['REDIS_SENTINEL_NAME', 'mymaster', ALL],
  ['REDIS_SENTINEL_PASSWORD', 'none', ALL],
  ['KEY_PREFIX', 'posthorn', ALL],
  ['PARTITIONS', '1', ALL],
  ['HOST', '127.0.0.1', ALL],
  ['PORT', '3000', ['ingest']],
  ['PORT', '3002', ['worker']],
  ['PORT', '3001', ['console']],
  ['RETENTION', '30d', ALL],
  ['RETENTION_SUCCEEDED', '7d', ALL],
  ['SHUTDOWN_GRACE', '20s', ALL],
  ['LOG_LEVEL', 'info', ALL],
  ['PUBLISHER_RATE_LIMIT', '0', ['ingest']],
  ['PUBLISHER_QUOTA', '50%', ['ingest']],
  ['EVENT_SEARCH', 'on', ['ingest']],
  ['ACK_REPLICAS', '0', ['ingest']],
  ['MAX_EVENT_BYTES', '262144', ['ingest']],
  ['RETRY_DELAYS', '1m,5m,30m,2h,12h', ['worker']],
  ['ATTEMPT_TIMEOUT', '8s', ['worker', 'console']],
  ['PAUSE_AFTER', '20', ['worker']],
  ['RESPONSE_EXCERPT_BYTES', '1024', ['worker', 'console']],
  ['WORKER_CONCURRENCY', '100', ['worker']],
  ['ADDRESS_CONCURRENCY', '10', ['worker']],
  ['RELEASE_RATE', '50', ['worker']],
  ['SEND_TRACEPARENT', 'off', ['worker']],
  ['ROLLBACK_WINDOW', '1d', ['worker']],
  ['NOTICE_URL', 'none', ['worker']],
  ['NOTICE_SECRET', 'none', ['worker']],
  ['ALLOWED_PRIVATE_NETWORKS', 'none', ['worker', 'console']],
  ['DNS_SERVERS', 'those of the system', ['worker', 'console']],
  ['OPERATOR_RATE_LIMIT', '5000', ['console']],
  ['SESSION_LIFETIME', '12h', ['console']],
  ['OPERATIONS_PORT', 'none', ALL],
  ['MAX_CLIENT_CONNECTIONS', '5000', ALL],
  ['TRUSTED_PROXIES', 'none', ALL],
  ['REQUIRE_HTTPS', 'production', ['console']],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'none', ALL],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'none', ALL],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf', ALL],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'none', ALL],
  ['OTEL_TRACES_EXPORTER', 'none', ALL],
  ['OTEL_TRACES_SAMPLER', 'parentbased_always_on', ALL],
  ['OTEL_TRACES_SAMPLER_ARG', '1', ALL],
  ['OTEL_RESOURCE_ATTRIBUTES', 'none', ALL],
  ['OTEL_SDK_DISABLED', 'false', ALL],
];

describe('defaults', () => {
  it.each(DOCUMENTED)('set %s to %s (%j)', (name, written, readers) => {
    for (const app of readers) {
      const value = settingsOf(app)[name];
      if (['none', 'those of the system'].includes(written)) expect(value ?? []).toEqual([]);
      else expect(value).toEqual(settingsOf(app, { [name]: written })[name]);
    }
  });
  it('are those of the specification in milliseconds and numbers', () => {
    const MINUTE = 60_000;
    expect(settingsOf('worker')).toMatchObject({
      RETRY_DELAYS: [MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * 60 * MINUTE, 12 * 60 * MINUTE],
      ATTEMPT_TIMEOUT: 8_000,
      PAUSE_AFTER: 20,
      RETENTION: 30 * 24 * 60 * MINUTE,
    });
  });
  it.each(ALL)('%s keeps what has succeeded for at least a day and at most RETENTION', (app) => {
    const load =
      (RETENTION_SUCCEEDED: string, RETENTION = '30d') =>
      () =>
        settingsOf(app, { RETENTION, RETENTION_SUCCEEDED }).RETENTION_SUCCEEDED;
    expect(load('24h')()).toBe(86_400_000);
    expect(load('30d')()).toBe(30 * 86_400_000);
    expect(load('23h')).toThrow('RETENTION_SUCCEEDED: must be at least 1d');
    expect(load('721h')).toThrow('RETENTION_SUCCEEDED: must be at most RETENTION');
    expect(load('8d', '5d')).toThrow('RETENTION_SUCCEEDED: must be at most RETENTION');
    // The default need not be changed for a shorter RETENTION.
    expect(load('', '1h')).not.toThrow();
  });
  it.each(ALL)('are listed above for each setting of %s', (app) => {
    const listed = DOCUMENTED.filter(([, , readers]) => readers.includes(app)).map(([name]) => name);
    const withDefault = Object.keys(settingsOf(app)).filter((name) => !(name in apps[app].required));
    expect(listed).toEqual(expect.arrayContaining(withDefault));
  });
  it('are the same in docs/settings.md', () => {
    const shown = shownDefaults();
    for (const [name, written] of DOCUMENTED) {
      if (name === 'PORT') expect(shown.get('PORT')).toBe('`3000` ingest, `3001` console, `3002` worker');
      else expect(shown.get(name)?.replaceAll('`', '').split(';')[0]).toBe(written);
    }
  });
});

/** The defaults in docs/settings.md, by setting. */
function shownDefaults(): Map<string, string> {
  const text = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8');
  return new Map(
    Array.from(text.matchAll(/^\| `([A-Z_]+)`[ *]*\| ([^|]*?) *\|/gm), ([, name = '', shown = '']) => [name, shown]),
  );
}

const failing = (request: ReceivedRequest) => (isDelivery(request) ? 503 : 200);

async function firstAttempt(on: World, eventId: string) {
  return await eventually('the first attempt', async () => {
    const [delivery] = await on.deliveries(`event_id=${eventId}`);
    return delivery?.attempt_count === 1 && (await on.delivery(delivery.id));
  });
}

describe('with default settings', () => {
  it('an address is paused at the 20th consecutive failed delivery, and not at the 19th', async () => {
    const on = await ownWorld({ env: { RETRY_DELAYS: '1ms' } });
    const to = await ownReceiver((request, response) => response.writeHead(failing(request)).end());
    const { id } = await on.subscribe(to.url);
    const failuresReach = (count: number) =>
      eventually(`${count} failed deliveries`, async () => {
        const subscription = await on.subscription(id);
        return subscription.consecutive_failures === count && subscription;
      });
    await on.publishBatch(Array.from({ length: 19 }, () => sampleEvent()));
    expect(await failuresReach(19)).toMatchObject({ status: 'active', status_reason: null });
    await on.publish(sampleEvent());
    expect(await failuresReach(20)).toMatchObject({ status: 'paused', status_reason: 'consecutive_failures' });
  });

  it("the first retry is due one minute after the failed attempt's end", async () => {
    const clock = fakeClock(Date.now());
    const on = await ownWorld({ clock });
    const to = await ownReceiver((request, response) => {
      if (isDelivery(request)) clock.advance(5_000);
      response.writeHead(failing(request)).end();
    });
    await on.subscribe(to.url);
    const startedAtMs = clock.now();
    const { body } = await on.publish(sampleEvent());
    const delivery = await firstAttempt(on, body.id);
    expect(delivery.attempts).toMatchObject([
      { started_at: new Date(startedAtMs).toISOString(), duration_ms: 5_000, status_code: 503 },
    ]);
    expect(Date.parse(delivery.next_attempt_at)).toBe(startedAtMs + 5_000 + 60_000);
  });
});

/**
 * The receiver responds `LATE_MS` after the limit. Its timer and the sender's are in the same process and fire in the order in which they
 * are due, however slow the machine is: only a sender whose limit is late by that much gets the response.
 */
describe('a response after the time limit', () => {
  const LIMIT_MS = 300;
  const LATE_MS = 500;
  const lateReceiver = () =>
    ownReceiver((_request, response) => {
      const timer = setTimeout(() => response.writeHead(200).end(), LIMIT_MS + LATE_MS);
      // The sender has given up by then: the timer must not keep the process.
      response.once('close', () => clearTimeout(timer));
    });

  it('makes the attempt fail as a timeout', async () => {
    const on = await ownWorld({ workerEnv: { ATTEMPT_TIMEOUT: `${LIMIT_MS}ms` } });
    const quick = await ownReceiver();
    const late = await lateReceiver();
    const { id } = await on.subscribe(quick.url);
    await overwriteSubscription(on, id, { url: late.url });
    const { body } = await on.publish(sampleEvent());
    const delivery = await firstAttempt(on, body.id);
    expect(delivery.attempts).toMatchObject([{ outcome: 'failed', status_code: null, error: 'timeout' }]);
  });

  it('leaves an address that is being validated unreachable', async () => {
    const on = await ownWorld({ env: { ATTEMPT_TIMEOUT: `${LIMIT_MS}ms` } });
    const late = await lateReceiver();
    const created = await on.operate('POST', '/v1/subscriptions', {
      url: late.url,
      event_types: 'all',
      environment: 'both',
    });
    const validated = await on.operate('POST', `/v1/subscriptions/${created.body.id}/validate`);
    expect(validated.body).toMatchObject({ status: 'awaiting_validation', status_reason: 'unreachable' });
  });
});
