/** Renders the Helm chart, and reads the rendered settings as the apps do. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { loadConsoleSettings } from '../../apps/console/src/config.ts';
import { loadIngestSettings } from '../../apps/ingest/src/config.ts';
import { loadWorkerSettings } from '../../apps/worker/src/config.ts';
import { CHART } from '../../scripts/chart-files.ts';
import { ownDir } from '../own.ts';
import type { Manifest } from './schemas.ts';

export const APPS = ['ingest', 'worker', 'console'] as const;
export type App = (typeof APPS)[number];
export type Values = Record<string, unknown>;

const load = { ingest: loadIngestSettings, worker: loadWorkerSettings, console: loadConsoleSettings };

/** The values of each topology that the chart shows. */
export const topologies: Record<string, Values> = {
  default: {},
  ...Object.fromEntries(
    readdirSync(join(CHART, 'ci')).map((file) => [
      basename(file, '-values.yaml'),
      parse(readFileSync(join(CHART, 'ci', file), 'utf8')),
    ]),
  ),
};

interface EnvVar {
  name: string;
  value?: string;
}
interface Probe {
  httpGet: { path: string; port: string };
}
export interface Container {
  name: string;
  image: string;
  command: string[];
  env: EnvVar[];
  ports: { name: string; containerPort: number }[];
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
  resources?: { limits?: { memory?: string } };
  securityContext: Record<string, unknown>;
  volumeMounts: { name: string; mountPath: string }[];
}
interface Source {
  secret: { name: string; items: { key: string; path: string }[] };
}
export interface PodSpec {
  automountServiceAccountToken: boolean;
  enableServiceLinks: boolean;
  serviceAccountName?: string;
  terminationGracePeriodSeconds: number;
  securityContext: Record<string, unknown>;
  containers: [Container];
  volumes: { name: string; projected?: { defaultMode: number; sources: Source[] } }[];
  topologySpreadConstraints?: { labelSelector: { matchLabels: Record<string, string> } }[];
}
export interface Deployment extends Manifest {
  spec: {
    replicas?: number;
    selector: { matchLabels: Record<string, string> };
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
}

/** Runs helm with values. */
export function helm(command: string, args: string[], values: Values) {
  const file = join(ownDir(), 'values.yaml');
  writeFileSync(file, JSON.stringify(values));
  return spawnSync(command, [...args, CHART, '--values', file], { encoding: 'utf8' });
}

const outputs = new Map<string, string>();

/** The manifests that the chart makes of values. Throws what helm says if it refuses them. */
export function render(command: string, values: Values): Manifest[] {
  const key = JSON.stringify(values);
  const output = outputs.get(key) ?? template(command, values);
  outputs.set(key, output);
  const documents = parseAllDocuments(output);
  for (const { errors } of documents) if (errors.length > 0) throw errors[0];
  return documents.map((document) => document.toJS() as Manifest | null).filter((manifest) => manifest !== null);
}

function template(command: string, values: Values): string {
  const args = ['template', 'webhooks', '--namespace', 'payments', '--kube-version', '1.36.0'];
  const { status, stdout, stderr } = helm(command, args, values);
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

export const ofKind = <T extends Manifest>(manifests: Manifest[], kind: string) =>
  manifests.filter((manifest) => manifest.kind === kind) as T[];

/** The Deployment of an app, if it has one. */
export const deploymentOf = (manifests: Manifest[], app: App) =>
  ofKind<Deployment>(manifests, 'Deployment').find(({ metadata }) => metadata.name.endsWith(`-${app}`));

/**
 * The settings that an app reads in its pod: its environment, with the files of Secrets mounted as Kubernetes would.
 * `secrets` has the text of each, by setting. Throws the app's error if it would not start.
 */
export function settingsIn(
  deployment: Deployment,
  app: App,
  secrets: Record<string, string>,
): Readonly<Record<string, unknown>> {
  const { containers, volumes } = deployment.spec.template.spec;
  const [container] = containers;
  const dir = ownDir();
  const mounts = new Map<string, string>();
  for (const { name, mountPath } of container.volumeMounts) {
    const sources = volumes.find((volume) => volume.name === name)?.projected?.sources;
    if (sources === undefined) continue;
    const folder = join(dir, name);
    mkdirSync(folder);
    mounts.set(`${mountPath}/`, `${folder}/`);
    for (const { secret } of sources) {
      for (const { path } of secret.items) writeFileSync(join(folder, path), secrets[path] ?? '');
    }
  }
  const located = ({ name, value = '' }: EnvVar) => {
    const mount = [...mounts].find(([mountPath]) => value.startsWith(mountPath));
    return [name, mount === undefined ? value : value.replace(...mount)] as const;
  };
  return load[app](Object.fromEntries(container.env.map(located)));
}
