/** Expectations that the manifests of every topology must meet. */
import { expect } from '@jest/globals';
import { type App, type Deployment, ofKind, type PodSpec } from './chart.ts';
import type { Manifest } from './schemas.ts';

/** Selectors select the pods of one app, ports and volumes exist, and nothing is scaled or called that is not there. */
export function expectReferences(manifests: Manifest[]): void {
  const deployments = ofKind<Deployment>(manifests, 'Deployment');
  const names = (kind: string) => ofKind(manifests, kind).map(({ metadata }) => metadata.name);
  const selected = (selector: Record<string, string>) =>
    deployments.filter(({ spec }) =>
      Object.entries(selector).every(([label, value]) => spec.template.metadata.labels[label] === value),
    );
  for (const deployment of deployments) {
    const { spec } = deployment.spec.template;
    const [container] = spec.containers;
    expect(selected(deployment.spec.selector.matchLabels)).toEqual([deployment]);
    const ports = container.ports.map(({ name }) => name);
    expect(new Set(container.ports.map(({ containerPort }) => containerPort)).size).toBe(ports.length);
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
      expect(container[probe].httpGet).toEqual({
        path: probe === 'readinessProbe' ? '/readyz' : '/healthz',
        port: 'operations',
      });
      expect(ports).toContain('operations');
    }
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(spec.volumes.map(({ name }) => name).sort());
    const variables = container.env.map(({ name }) => name);
    expect(new Set(variables).size).toBe(variables.length);
    for (const { labelSelector } of spec.topologySpreadConstraints ?? [])
      expect(selected(labelSelector.matchLabels)).toEqual([deployment]);
    if (spec.serviceAccountName !== undefined) expect(names('ServiceAccount')).toContain(spec.serviceAccountName);
  }
  for (const kind of ['PodDisruptionBudget', 'NetworkPolicy', 'Service', 'PodMonitor']) {
    for (const { spec } of ofKind<Manifest & { spec: Record<string, never> }>(manifests, kind)) {
      const selector =
        kind === 'Service'
          ? spec.selector
          : (spec[kind === 'NetworkPolicy' ? 'podSelector' : 'selector'] as never as { matchLabels: object })
              .matchLabels;
      expect([kind, selected(selector as never).length]).toEqual([
        kind,
        kind === 'PodMonitor' ? deployments.length : 1,
      ]);
    }
  }
  for (const kind of ['ScaledObject', 'HorizontalPodAutoscaler']) {
    for (const { spec } of ofKind<Manifest & { spec: { scaleTargetRef: { name: string } } }>(manifests, kind))
      expect(names('Deployment')).toContain(spec.scaleTargetRef.name);
  }
  const backends = JSON.stringify([...ofKind(manifests, 'Ingress'), ...ofKind(manifests, 'HTTPRoute')]).matchAll(
    /"(?:service":\{"name|backendRefs":\[\{"name)":"([^"]+)"/g,
  );
  const called = [...backends].map(([, name]) => name);
  expect(called).toHaveLength(names('Ingress').length + names('HTTPRoute').length);
  for (const name of called) expect(names('Service')).toContain(name);
  expectPorts(manifests);
}

/** Callers reach what an app serves, and Prometheus its metrics. */
function expectPorts(manifests: Manifest[]): void {
  for (const { spec } of ofKind<Manifest & { spec: { ports: object[] } }>(manifests, 'Service'))
    expect(spec.ports).toMatchObject([{ targetPort: 'http' }]);
  for (const { spec } of ofKind<Manifest & { spec: { podMetricsEndpoints: object[] } }>(manifests, 'PodMonitor'))
    expect(spec.podMetricsEndpoints).toMatchObject([{ port: 'operations', path: '/metrics' }]);
}

/** What the restricted profile of Kubernetes demands, and more: see docs/kubernetes.md. */
export function expectHardened(app: App, deployment: Deployment, settings: Readonly<Record<string, unknown>>): void {
  const spec: PodSpec = deployment.spec.template.spec;
  const [container] = spec.containers;
  expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  // The group of the process may read the files of Secrets, and nobody else.
  for (const { projected } of spec.volumes) if (projected) expect(projected.defaultMode).toBe(0o440);
  const drainSeconds = container.lifecycle?.preStop.sleep.seconds ?? 0;
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
    drainSeconds + Number(settings.SHUTDOWN_GRACE) / 1000 + 5,
  );
  expect(container.command).toEqual(['node', `apps/${app}/dist/main.cjs`]);
  const ports = Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]));
  expect(ports).toEqual(
    app === 'worker' ? { operations: settings.PORT } : { http: settings.PORT, operations: settings.OPERATIONS_PORT },
  );
  expect(settings.HOST).toBe('0.0.0.0');
}
