/**
 * The Helm chart: rendered for each topology, checked against the schemas of Kubernetes, and read by the apps
 * themselves.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { checkIp } from '@posthorn/sender';
import fc from 'fast-check';
import { CHART, chartFiles } from '../../scripts/chart-files.ts';
import { root } from '../../scripts/folder.ts';
import { findGo, provideHelm } from '../../scripts/programs/helm.ts';
import { SETTINGS } from '../../scripts/settings-document.ts';
import { ownDir } from '../own.ts';
import {
  APPS,
  type App,
  type Container,
  type Deployment,
  deploymentOf,
  helm,
  ofKind,
  render,
  settingsIn,
  topologies,
  type Values,
} from './chart.ts';
import { expectHardened, expectReferences } from './expectations.ts';
import { blocksOf, contains, edgeOf, type NetworkPolicy, networkOf, reachOf, textOf } from './network-policy.ts';
import { loadSchemas, type Manifest, type Schemas } from './schemas.ts';

const found =
  findGo() === undefined
    ? { why: 'There is no Go to download the schemas of Kubernetes with.' }
    : await provideHelm({ say: () => undefined });
const secrets = {
  REDIS_URL: 'rediss://user:password@redis.data.svc:6380',
  REDIS_SENTINEL_PASSWORD: 'of the sentinels',
  PUBLISHER_KEYS: `billing:both:${'k'.repeat(24)}\nshop:sandbox:${'s'.repeat(24)}`,
  OPERATOR_TOKENS: `ada:${'t'.repeat(24)}`,
  SECRET_ENCRYPTION_KEY: 'A'.repeat(43),
  NOTICE_SECRET: 'sixteen-characters',
};

const read = (file: string) => readFileSync(join(CHART, file), 'utf8');

describe('the files of the chart', () => {
  it('that follow from the settings are up to date: npm run generate-docs', () => {
    for (const [file, text] of Object.entries(chartFiles())) expect([file, read(file)]).toEqual([file, text]);
  });
  it('have the version of the apps', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(read('Chart.yaml')).toContain(`\nversion: ${version}\n`);
    expect(read('Chart.yaml')).toContain(`\nappVersion: "${version}"\n`);
  });
});

/** The one container of an app's pod. */
function containerOf(manifests: Manifest[], app: App): Container {
  const deployment = deploymentOf(manifests, app);
  if (deployment === undefined) throw new Error(`There is no Deployment of ${app}.`);
  return deployment.spec.template.spec.containers[0];
}

const envOf = (container: Container) => Object.fromEntries(container.env.map(({ name, value }) => [name, value]));

function describeChart(command: string): void {
  let validatorOf: Schemas;
  beforeAll(() => {
    validatorOf = loadSchemas();
  });
  const problemsOf = (manifest: Manifest) => {
    const validate = validatorOf(manifest);
    return validate(manifest)
      ? []
      : (validate.errors ?? []).map(({ instancePath, message }) => [instancePath, message]);
  };
  const rendered = (values: Values) => render(command, values);
  const policyOf = (manifests: Manifest[], app: App) =>
    ofKind<NetworkPolicy>(manifests, 'NetworkPolicy').find(({ metadata }) => metadata.name.endsWith(app))!;

  describe('a check against the schemas', () => {
    const deployment = () => deploymentOf(rendered({}), 'ingest')!;
    it.each<[string, (manifest: Deployment) => void]>([
      ['an unknown field', ({ spec }) => Object.assign(spec.template.spec.containers[0], { readynessProbe: {} })],
      ['an unknown field at the top', (manifest) => Object.assign(manifest, { specs: {} })],
      ['a missing field', ({ spec }) => Reflect.deleteProperty(spec, 'selector')],
      ['a wrong type', ({ spec }) => Object.assign(spec, { replicas: '2' })],
    ])('finds %s', (_what, spoil) => {
      const manifest = deployment();
      expect(problemsOf(manifest)).toEqual([]);
      spoil(manifest);
      expect(problemsOf(manifest)).not.toEqual([]);
    });
    it('finds an unknown field in each custom resource', () => {
      const custom = rendered(topologies.cluster!).filter(({ apiVersion }) => /keda|coreos|gateway/.test(apiVersion));
      expect(custom.map(({ kind }) => kind).sort()).toEqual([
        'HTTPRoute',
        'PodMonitor',
        'PrometheusRule',
        'ScaledObject',
      ]);
      for (const manifest of custom) {
        const { spec } = manifest as unknown as { spec: object };
        expect([manifest.kind, problemsOf(manifest)]).toEqual([manifest.kind, []]);
        expect(problemsOf({ ...manifest, spec: { ...spec, other: 1 } } as Manifest)).not.toEqual([]);
      }
    });
    it('refuses a kind that does not exist', () => {
      expect(() => problemsOf({ apiVersion: 'apps/v1', kind: 'Deploiment', metadata: { name: 'a' } })).toThrow(
        'no schema of apps/v1/Deploiment',
      );
    });
  });

  describe.each(Object.keys(topologies))('the topology "%s"', (topology) => {
    const values = topologies[topology]!;
    it('passes helm lint', () => {
      const { stdout, stderr, status } = helm(command, ['lint', '--strict'], values);
      expect([stdout + stderr, status]).toEqual([expect.stringContaining('0 chart(s) failed'), 0]);
    });
    it('agrees with the schemas of Kubernetes, and names each resource once', () => {
      const manifests = rendered(values);
      const kinds = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(kinds.length).toBeGreaterThan(2);
      expect(new Set(kinds).size).toBe(kinds.length);
      for (const manifest of manifests) {
        const { kind, metadata } = manifest;
        expect([kind, metadata.name, problemsOf(manifest)]).toEqual([kind, metadata.name, []]);
        expect(metadata.name).toMatch(/^[a-z0-9-]{1,63}$/);
        for (const label of Object.values(metadata.labels ?? {})) expect(label).toMatch(/^[A-Za-z0-9._-]{1,63}$/);
      }
    });
    it('refers only to what exists', () => expectReferences(rendered(values)));
    it('starts apps that accept their settings', () => {
      const manifests = rendered(values);
      const deployments = ofKind<Deployment>(manifests, 'Deployment');
      expect(deployments.length).toBe(topology === 'workers' ? 1 : 3);
      for (const app of APPS) {
        const deployment = deploymentOf(manifests, app);
        if (deployment === undefined) continue;
        const read = settingsIn(deployment, app, secrets);
        const written = (values.settings ?? {}) as Record<string, string | number>;
        const own = ((values[app] as Values | undefined)?.settings ?? {}) as Record<string, string>;
        for (const [name, value] of Object.entries({ ...written, ...own })) {
          const schema = SETTINGS[app]!.shape[name];
          if (schema !== undefined) expect([name, read[name]]).toEqual([name, schema.parse(String(value))]);
        }
        expect(read.REDIS_URL).toBe(written.REDIS_URL ?? secrets.REDIS_URL);
      }
    });
    it('runs every pod without privileges, and gives it time to stop', () => {
      for (const app of APPS) {
        const deployment = deploymentOf(rendered(values), app);
        if (deployment === undefined) continue;
        expectHardened(app, deployment, settingsIn(deployment, app, secrets));
        const [{ env }] = deployment.spec.template.spec.containers;
        for (const { value = '' } of env) expect(Object.values(secrets)).not.toContain(value);
      }
    });
  });

  describe('settings', () => {
    /** What the chart itself reads, and so must be valid. */
    const readByChart: Record<string, string> = {
      SHUTDOWN_GRACE: '1500ms',
      WORKER_CONCURRENCY: '7',
      DNS_SERVERS: '192.0.2.1',
      ALLOWED_PRIVATE_NETWORKS: '10.1.0.0/16',
      REDIS_CLUSTER_NODES: 'a:1',
      REDIS_SENTINELS: 'b:2',
    };
    const known: Record<string, { apps: string[]; secret?: true }> = JSON.parse(read('files/settings.json'));
    it('can all be given, and reach the apps that read them and no other', () => {
      const plain = Object.keys(known).filter((name) => !known[name]!.secret);
      const settings = Object.fromEntries(plain.map((name) => [name, readByChart[name] ?? `value of ${name}`]));
      const from = Object.fromEntries(Object.keys(known).flatMap((name) => (known[name]!.secret ? [[name, {}]] : [])));
      const manifests = rendered({ settings, secrets: { from } });
      for (const app of APPS) {
        const env = envOf(containerOf(manifests, app));
        const given = Object.keys(env).map((name) => name.replace(/_FILE$/, ''));
        const ofApp = Object.keys(SETTINGS[app]!.shape).filter(
          (name) => app !== 'worker' || name !== 'OPERATIONS_PORT',
        );
        expect(given.sort()).toEqual([...ofApp, 'NODE_OPTIONS'].sort());
        for (const [name, value] of Object.entries(settings)) {
          if (known[name]!.apps.includes(app)) expect([name, env[name]]).toEqual([name, value]);
        }
      }
    });
    it('leave out what extraEnv has, since Kubernetes refuses a name that a container has twice', () => {
      const own = ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'].map((name) => ({ name, value: `own ${name}` }));
      const manifests = rendered({ pod: { extraEnv: own }, redisCa: { configMap: 'ca' } });
      for (const app of APPS) {
        const env = containerOf(manifests, app).env as { name: string; value?: string }[];
        for (const { name, value } of own) expect(env.filter((one) => one.name === name)).toEqual([{ name, value }]);
      }
    });
    it('of an app override those of all', () => {
      const manifests = rendered({ settings: { LOG_LEVEL: 'warn' }, worker: { settings: { LOG_LEVEL: 'debug' } } });
      expect(APPS.map((app) => envOf(containerOf(manifests, app)).LOG_LEVEL)).toEqual(['warn', 'debug', 'warn']);
    });
    it.each<[string, Values, string]>([
      ['a setting that does not exist', { settings: { RETENTON: '3d' } }, 'RETENTON'],
      ['one of an app', { worker: { settings: { WORKER_CONCURENCY: 3 } } }, 'WORKER_CONCURENCY'],
      ['a secret among the settings', { settings: { OPERATOR_TOKENS: 'a:b' } }, 'OPERATOR_TOKENS'],
      ['a password among the settings', { settings: { REDIS_URL: 'redis://:secret@redis' } }, '/settings/REDIS_URL'],
      ['a secret that does not exist', { secrets: { from: { PUBLISHER_KEY: {} } } }, 'PUBLISHER_KEY'],
      ['what YAML makes of an unquoted off', { settings: { EVENT_SEARCH: false } }, '/settings/EVENT_SEARCH'],
      ['a value that does not exist', { ingest: { replica: 3 } }, 'replica'],
      [
        'a setting that extraEnv has too',
        { settings: { LOG_LEVEL: 'info' }, pod: { extraEnv: [{ name: 'LOG_LEVEL', value: 'warn' }] } },
        'LOG_LEVEL',
      ],
      ['a port in extraEnv', { pod: { extraEnv: [{ name: 'PORT', value: '80' }] } }, 'PORT is set by the chart'],
      [
        'a secret in extraEnv',
        { pod: { extraEnv: [{ name: 'OPERATOR_TOKENS_FILE', value: '/x' }] } },
        'OPERATOR_TOKENS_FILE is set by the chart',
      ],
      ['a tag beside a digest', { image: { tag: '1', digest: `sha256:${'0'.repeat(64)}` } }, 'image.digest'],
      ['a port that the chart sets', { settings: { PORT: 80 } }, 'PORT'],
      ['a missing secret', { secrets: { from: { OPERATOR_TOKENS: null } } }, 'secrets.from.OPERATOR_TOKENS'],
      ['a missing NOTICE_SECRET', { settings: { NOTICE_URL: 'https://a.example' } }, 'secrets.from.NOTICE_SECRET'],
      ['two values of one setting', { settings: { REDIS_URL: 'redis://redis' } }, 'secrets.from.REDIS_URL: null'],
      ['a grace without a unit', { settings: { SHUTDOWN_GRACE: 20 } }, 'SHUTDOWN_GRACE'],
      [
        'too little memory for large events',
        { settings: { MAX_EVENT_BYTES: 2_500_000 } },
        'worker.resources.limits.memory: must be at least 1103Mi',
      ],
      ['a limit of memory in another unit', { worker: { resources: { limits: { memory: '1e9' } } } }, 'limits.memory'],
      [
        'scaling by a CPU request that is not there',
        { worker: { autoscaling: { enabled: true }, resources: null } },
        'worker.resources.requests.cpu',
      ],
    ])('refuses %s', (_what, values, message) => {
      expect(() => rendered(values)).toThrow(message);
    });
  });

  describe('a network policy', () => {
    it('lets ingest reach Redis and the name servers only', () => {
      const { egress } = policyOf(rendered(topologies.cluster!), 'ingest').spec;
      expect(egress.map(({ ports }) => ports?.map(({ port }) => port))).toEqual([
        [53, 53],
        [6379, 6380],
      ]);
    });
    it.each(['worker', 'console'] as const)('lets a %s reach no address that the address guard refuses', (app) => {
      const policy = policyOf(rendered({}), app);
      const lets = reachOf(policy);
      const ips = fc.oneof(
        fc.ipV4(),
        // Around the edges of each network that is special, and anywhere in what is assigned for use.
        fc
          .tuple(fc.constantFrom(...blocksOf(policy)), fc.integer({ min: -1, max: 1 }), fc.boolean())
          .map(([cidr, step, atEnd]) => edgeOf(cidr, step, atEnd)),
        fc.ipV6(),
        fc.bigInt({ min: 0x2000n << 112n, max: (0x4000n << 112n) - 1n }).map((value) => textOf(value, 'ipv6')),
      );
      fc.assert(
        fc.property(ips, (ip) => {
          if (checkIp(ip, []) !== null) expect([ip, lets(ip)]).toEqual([ip, false]);
        }),
        { numRuns: 5_000 },
      );
      for (const ip of [
        '169.254.169.254',
        '168.63.129.16',
        '10.0.0.1',
        '192.168.1.1',
        '127.0.0.1',
        'fd00::1',
        '::1',
        '::ffff:10.0.0.1',
      ])
        expect([ip, lets(ip)]).toEqual([ip, false]);
      for (const ip of ['2001::1', '2001:db8::1', '2002:a00:1::', '3fff::1'])
        expect([ip, lets(ip)]).toEqual([ip, false]);
      for (const ip of ['1.1.1.1', '93.184.215.14', '172.32.0.1', '2606:4700::1111', '2a00::1'])
        expect([ip, lets(ip)]).toEqual([ip, true]);
    });
    it('excludes only parts of the networks that it allows, as Kubernetes demands', () => {
      for (const app of ['worker', 'console'] as const) {
        const { egress } = policyOf(rendered({}), app).spec;
        for (const { cidr, except = [] } of egress.flatMap(({ to = [] }) =>
          to.flatMap(({ ipBlock }) => ipBlock ?? []),
        )) {
          for (const excepted of except) {
            const { base, bits } = networkOf(excepted);
            expect([excepted, contains(cidr, base), bits > networkOf(cidr).bits]).toEqual([excepted, true, true]);
          }
        }
      }
    });
    it('lets through what ALLOWED_PRIVATE_NETWORKS allows, and the name servers in DNS_SERVERS', () => {
      const policy = policyOf(rendered(topologies.sentinel!), 'worker');
      const lets = reachOf(policy);
      expect([lets('10.20.3.4'), lets('fd00:20::7'), lets('10.21.0.1')]).toEqual([true, true, false]);
      const servers = policy.spec.egress.flatMap(({ to = [], ports = [] }) =>
        to.flatMap(({ ipBlock }) =>
          ipBlock && ports.length > 0 ? [[ipBlock.cidr, ports[0]?.port, ports.length]] : [],
        ),
      );
      expect(servers).toEqual([
        ['203.0.113.53/32', 53, 2],
        ['203.0.113.54/32', 5353, 2],
        ['2001:db8::53/128', 5353, 2],
        ['2001:db8::54/128', 53, 2],
      ]);
    });
    it('lets in whom networkPolicyFrom names, and out as extraEgress says', () => {
      const namespace = (name: string) => ({
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
      });
      const { spec: ofIngest } = policyOf(rendered(topologies.cluster!), 'ingest');
      const fromGateways = { ports: [{ port: 'http', protocol: 'TCP' }], from: [namespace('gateways')] };
      expect(ofIngest).toMatchObject({ ingress: expect.arrayContaining([fromGateways]) });
      const { egress } = policyOf(rendered(topologies.sentinel!), 'ingest').spec;
      expect(egress).toContainEqual({ to: [namespace('telemetry')], ports: [{ port: 4318, protocol: 'TCP' }] });
    });
  });

  it('lets a node be drained although its pods are not ready', () => {
    const budgets = ofKind<Manifest & { spec: object }>(rendered({}), 'PodDisruptionBudget');
    expect(budgets).toHaveLength(APPS.length);
    for (const { spec } of budgets)
      expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  });

  describe('a pod', () => {
    it('that callers reach goes on serving before it gets SIGTERM, and then has its grace', () => {
      const manifests = rendered({ settings: { SHUTDOWN_GRACE: '1500ms' }, ingest: { drainSeconds: 7 } });
      const times = APPS.map((app) => {
        const { terminationGracePeriodSeconds, containers } = deploymentOf(manifests, app)!.spec.template.spec;
        return [terminationGracePeriodSeconds, containers[0].lifecycle?.preStop.sleep.seconds];
      });
      expect(times).toEqual([
        [7 + 2 + 10, 7],
        [2 + 10, undefined],
        [5 + 2 + 10, 5],
      ]);
    });
    it('gives Node a heap in step with its memory', () => {
      const heapOf = (memory: string | null) =>
        envOf(containerOf(rendered({ worker: { resources: { limits: { memory } } } }), 'worker')).NODE_OPTIONS;
      expect(['1Gi', '512Mi', '1G', '1.5Gi'].map(heapOf)).toEqual([
        '--max-old-space-size=614',
        '--max-old-space-size=307',
        '--max-old-space-size=571',
        '--max-old-space-size=921',
      ]);
      expect(heapOf(null)).toBeUndefined();
    });
    it('accepts large events where workers have few slots', () => {
      const settings = { MAX_EVENT_BYTES: 8_388_608, WORKER_CONCURRENCY: 15 };
      expect(() => rendered({ settings })).not.toThrow();
    });
  });

  it('scaling of workers follows the age of the backlog, by metrics that workers have', () => {
    const manifests = rendered(topologies.cluster!);
    const [scaled] = ofKind<Manifest & { spec: { triggers: { name: string; metadata: Record<string, string> }[] } }>(
      manifests,
      'ScaledObject',
    );
    const { triggers } = scaled!.spec;
    expect(triggers.map(({ name, metadata }) => [name, metadata.query ?? metadata.value, metadata.threshold])).toEqual([
      ['backlog-age', 'max(posthorn_oldest_pending_age_seconds{namespace="payments"})', '30'],
      ['attempts-in-flight', 'sum(rate(posthorn_attempt_duration_seconds_sum{namespace="payments"}[2m]))', '120'],
      ['cpu', '80', undefined],
    ]);
    expect(deploymentOf(manifests, 'worker')!.spec.replicas).toBeUndefined();
    expect(deploymentOf(manifests, 'ingest')!.spec.replicas).toBeUndefined();
    const code = ['packages/runtime/src/metrics.ts', 'apps/worker/src/metrics.ts'].map((file) =>
      readFileSync(join(root, file), 'utf8'),
    );
    for (const name of ['posthorn_oldest_pending_age_seconds', 'posthorn_attempt_duration_seconds'])
      expect(code.join('\n')).toContain(`'${name}'`);
  });
  it('the alerts and the dashboard are those of deploy', () => {
    const manifests = rendered(topologies.cluster!);
    const [rules] = ofKind<Manifest & { spec: { groups: object[] } }>(manifests, 'PrometheusRule');
    const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8');
    expect(JSON.stringify(rules!.spec).match(/"alert":/g)).toHaveLength(alerts.match(/- alert:/g)!.length);
    const [dashboard] = ofKind<Manifest & { data: Record<string, string> }>(manifests, 'ConfigMap');
    expect(dashboard!.data['posthorn.json']).toBe(readFileSync(join(root, 'deploy/grafana/posthorn.json'), 'utf8'));
  });
  it('a package of the chart has everything in it, and renders the same', () => {
    const dir = ownDir();
    execFileSync(command, ['package', CHART, '--destination', dir], { encoding: 'utf8', stdio: 'pipe' });
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const args = (chart: string) => ['template', 'webhooks', chart, '-f', join(CHART, 'ci/cluster-values.yaml')];
    const of = (chart: string) => execFileSync(command, args(chart), { encoding: 'utf8', stdio: 'pipe' });
    expect(of(join(dir, `posthorn-${version}.tgz`))).toBe(of(CHART));
  });
}

if ('command' in found) describeChart(found.command);
else process.stderr.write(`SKIPPED: what renders the Helm chart. ${found.why}\n`);
