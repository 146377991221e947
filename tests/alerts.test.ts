/**
 * Alerts, their runbooks and the dashboard: checked by promtool, against the metrics of running apps, and against
 * recorded runs.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { eventually, isDelivery, type Receiver } from '@posthorn/testing';
import { parse } from 'yaml';
import { root } from '../scripts/folder.ts';
import { promtool } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import { ownDir, ownWorld } from './own.ts';
import { redisServer, system } from './redis-servers.ts';
import { createRecorder, type Recorder } from './scrapes.ts';
import { sampleEvent } from './world.ts';

const RULES = join(root, 'deploy/prometheus/alerts.yaml');
const read = (file: string) => readFileSync(join(root, file), 'utf8');

interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels?: { severity: string };
  annotations?: { runbook: string };
}
const rules: Rule[] = parse(readFileSync(RULES, 'utf8')).groups.flatMap((group: { rules: Rule[] }) => group.rules);
const alerts = rules.filter((rule) => rule.alert !== undefined);

let command: string;
beforeAll(async () => {
  command = (await providePrograms([promtool], { say: () => undefined }))[promtool.name]!;
});
const check = (...args: string[]) => execFileSync(command, args, { encoding: 'utf8' });

describe('the alert rules', () => {
  it('are valid, and each fires where it should and is silent just before', () => {
    expect(check('check', 'rules', RULES)).toContain('SUCCESS');
    const tested = ['alerts.test.yaml', 'alerts-over-hours.test.yaml'].flatMap((name) => {
      const file = join(root, 'deploy/prometheus', name);
      expect(check('test', 'rules', file)).toContain('SUCCESS');
      return parse(readFileSync(file, 'utf8')).tests.map((test: { name: string }) => test.name);
    });
    for (const { alert } of alerts) expect(tested).toContain(alert);
  });
  it('have a section each in the runbooks, which begins with their severity', () => {
    const sections = Array.from(
      read('docs/runbooks.md').matchAll(/^## (.+)\n\n(\w*)/gm),
      ([, title, severity]) => `${title}: ${severity}`,
    );
    expect(sections.sort()).toEqual(alerts.map(({ alert, labels }) => `${alert}: ${labels?.severity}`).sort());
    for (const { alert, annotations } of alerts) {
      expect(annotations?.runbook).toBe(`docs/runbooks.md#${alert?.toLowerCase()}`);
    }
  });
});

describe('the alerts and the dashboard', () => {
  it('name only metrics that the apps have', async () => {
    const world = await ownWorld();
    const urls = [world.ingestUrls[0], world.workerUrls[0], world.consoleUrl];
    const texts = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).text()));
    const existing = new Set(Array.from(texts.join('\n').matchAll(/^# TYPE (\S+)/gm), ([, name]) => name));
    const dashboard = read('deploy/grafana/posthorn.json');
    for (const text of [rules.map(({ expr }) => expr).join('\n'), dashboard]) {
      // Values of labels are no names.
      const named = Array.from(text.matchAll(/(?<!=\\?")\b(posthorn|process|nodejs)_\w+/g), ([name]) => name);
      expect(named.length).toBeGreaterThan(10);
      for (const name of named) expect(existing).toContain(name.replace(/_(bucket|count|sum)$/, ''));
    }
    const expressions = JSON.parse(dashboard).panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
      targets.map(({ expr }) => expr),
    );
    // promtool parses them as rules, with Grafana's variables filled in.
    const filled = expressions.map((expr: string) =>
      expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.*'),
    );
    const file = join(ownDir(), 'dashboard.yaml');
    const rule = (expr: string, i: number) => ({ record: `panel:${i}`, expr });
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: filled.map(rule) }] }));
    expect(check('check', 'rules', file)).toContain(`${expressions.length} rules found`);
  });
});

const PAUSE_AFTER = 20;

/** Posthorn on a Redis of its own, with three addresses of one receiver that fail when told to. */
async function recordedSystem() {
  const redis = await redisServer();
  const env = { REDIS_URL: redis.url, RETRY_DELAYS: '1ms', PAUSE_AFTER: String(PAUSE_AFTER) };
  const { publish, subscribe, to, ingest, worker, operator } = await system(env);
  for (const path of ['b', 'c']) await subscribe(`${to.url}/${path}`);
  const targets = { ingest, worker, console: operator };
  const urls = await Promise.all(
    Object.entries(targets).map(async ([app, process]) => [app, (await process.ready).url] as const),
  );
  const recorder = createRecorder(Object.fromEntries(urls), RULES);
  /** Scrapes `count` times, and publishes before each of them. */
  const scrapes = async (count: number, before: () => Promise<unknown> = async () => undefined) => {
    for (let scrape = 0; scrape < count; scrape++) {
      await before();
      await recorder.scrape();
    }
  };
  const deliver = (to: Receiver, each: number) => async () => {
    const sofar = to.requests.filter(isDelivery).length;
    await publish(sampleEvent());
    await to.received(sofar + each, isDelivery);
  };
  await deliver(to, 3)();
  const metrics = `${(await worker.ready).url}/metrics`;
  await eventually('maintenance to have run', async () =>
    (await (await fetch(metrics)).text()).includes('posthorn_maintenance_last_success_timestamp_seconds{'),
  );
  return { redis, publish, to, worker, ingest, recorder, scrapes, deliver };
}

/** The alerts that fire at any time in a recorded run. */
function firing(recorder: Recorder): string[] {
  const file = join(ownDir(), 'recorded.yaml');
  writeFileSync(file, JSON.stringify(recorder.asTest()));
  const { status, stdout, stderr } = spawnSync(command, ['test', 'rules', file], { encoding: 'utf8' });
  const fired = recorder.alertsIn(stderr);
  // It fails if and only if an alert has fired.
  if (status !== Math.min(fired.length, 1)) throw new Error(`promtool: ${stdout}${stderr}`);
  return fired;
}

describe('a recorded run', () => {
  it('in which all is well fires nothing', async () => {
    const { recorder, scrapes, deliver, to } = await recordedSystem();
    await scrapes(12, deliver(to, 3));
    // How soon first attempts start depends on the speed of this machine.
    expect(firing(recorder).filter((alert) => !alert.includes('LatencyBudget'))).toEqual([]);
  });
  it('with a failing receiver, without Redis, and without processes fires the alerts about them', async () => {
    const { redis, publish, to, recorder, scrapes, deliver, worker, ingest } = await recordedSystem();
    const untilWorkerSays = (name: string, wanted: number) =>
      eventually(name, async () => {
        await recorder.scrape();
        return recorder.latest('worker', name) === wanted;
      });
    to.answerWith(503);
    const failing = deliver(to, 6);
    await scrapes(8, async () => {
      await failing();
      await failing();
    });
    await untilWorkerSays('posthorn_newly_failing_addresses', 3);
    await scrapes(6);
    for (let event = 17; event <= PAUSE_AFTER; event++) await failing();
    await untilWorkerSays('posthorn_addresses_paused_total', 3);
    await redis.stop();
    await scrapes(6, () => publish(sampleEvent()));
    for (const { child, ended } of [worker, ingest]) {
      child.kill('SIGKILL');
      await ended;
    }
    await scrapes(7);
    expect(firing(recorder)).toEqual([
      'PosthornAddressPaused',
      'PosthornAddressesFailing',
      'PosthornAttemptsFailing',
      'PosthornIngestMissing',
      'PosthornIngestRefusing',
      'PosthornMaintenanceStuck',
      'PosthornRedisUnreachable',
      'PosthornWorkerMissing',
    ]);
  });
});
