/**
 * The limits of the specification (section 8) and the defaults of the interface (section 2), if no setting changes
 * them.
 */
import { describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type ReceivedRequest } from '@posthorn/testing';
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

/**
 * The defaults that the interface fixes: the setting, its default as an operator would write it, the apps that read it.
 */
const FIXED: [name: string, written: string, apps: App[]][] = [
  ['REDIS_URL', 'redis://127.0.0.1:6379', ALL],
  ['REDIS_CLUSTER_NODES', 'none', ALL],
  ['KEY_PREFIX', 'posthorn', ALL],
  ['PARTITIONS', '1', ALL],
  ['HOST', '127.0.0.1', ALL],
  ['PORT', '3000', ['ingest']],
  ['PORT', '3002', ['worker']],
  ['PORT', '3001', ['console']],
  ['RETENTION', '30d', ALL],
  ['SHUTDOWN_GRACE', '20s', ALL],
  ['LOG_LEVEL', 'info', ALL],
  ['MAX_EVENT_BYTES', '262144', ['ingest']],
  ['RETRY_DELAYS', '1m,5m,30m,2h,12h', ['worker']],
  ['ATTEMPT_TIMEOUT', '8s', ['worker', 'console']],
  ['PAUSE_AFTER', '20', ['worker']],
  ['ALLOWED_PRIVATE_NETWORKS', 'none', ['worker', 'console']],
  ['REQUIRE_HTTPS', 'production', ['console']],
];

describe('defaults', () => {
  it.each(FIXED)('set %s to %s (%j)', (name, written, readers) => {
    for (const app of readers) {
      const value = settingsOf(app)[name];
      if (written === 'none') expect(value ?? []).toEqual([]);
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
  it.each(ALL)('%s takes a Cluster or sentinels, not both', (app) => {
    const nodes = { REDIS_CLUSTER_NODES: 'a:1' };
    expect(() => settingsOf(app, { ...nodes, REDIS_SENTINELS: 'b:2' })).toThrow(
      'REDIS_SENTINELS: must not be set together with REDIS_CLUSTER_NODES',
    );
    expect(settingsOf(app, nodes).REDIS_CLUSTER_NODES).toEqual([{ host: 'a', port: 1 }]);
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
    expect(load('6d', '5d')).toThrow('RETENTION_SUCCEEDED: must be at most RETENTION');
    // Beside another bad setting too.
    const bad = { PORT: 'x', RETENTION_SUCCEEDED: '31d', NOTICE_URL: 'https://notices.example' };
    expect(() => settingsOf(app, bad)).toThrow(/PORT: .*RETENTION_SUCCEEDED: must be at most/s);
    if (app === 'worker')
      expect(() => settingsOf(app, { ...bad, RETENTION: 'x' })).toThrow(
        /RETENTION: .*NOTICE_SECRET: is required if NOTICE_URL is set/s,
      );
    // The default need not be changed for a shorter RETENTION.
    expect(load('', '1h')).not.toThrow();
  });
});

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
});

/**
 * The receiver responds `LATE_MS` after the limit. Its timer and the sender's are in the same process, so they fire in
 * the order in which they are due, however slow the machine is: only a sender whose limit is `LATE_MS` late gets the
 * response.
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

  it('makes a validation find the address unreachable', async () => {
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
