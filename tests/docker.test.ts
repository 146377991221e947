/**
 * The container files, as far as they can be checked without a container engine: their structure, their paths, their
 * settings.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { loadConsoleSettings } from '../apps/console/src/config.ts';
import { loadIngestSettings } from '../apps/ingest/src/config.ts';
import { loadWorkerSettings } from '../apps/worker/src/config.ts';
import { imageEnvironment } from '../scripts/image/environment.ts';

interface Service {
  command: string[];
  environment: Record<string, string>;
  stop_grace_period: string;
  ports?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  cap_add?: string[];
  privileged?: boolean;
  security_opt?: string[];
  user?: string;
}
type Env = Record<string, string>;

const root = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const services: Record<string, Service> = parse(read('docker-compose.yml'), { merge: true }).services;
const load = { ingest: loadIngestSettings, worker: loadWorkerSettings, console: loadConsoleSettings };
const apps = ['ingest', 'worker', 'console'] as const;
const required: Env = {
  PUBLISHER_KEYS: `a:both:${'k'.repeat(32)}`,
  OPERATOR_TOKENS: `a:${'t'.repeat(32)}`,
  SECRET_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
  REDIS_PASSWORD: '0123456789abcdef',
};
/**
 * Interpolates `${NAME}`, `${NAME:-default}` and `${NAME:?message}` like compose, from the inside out. Throws what
 * compose prints.
 */
function interpolate(text: string, env: Env): string {
  const innermost = /\$\{(\w+)(?::([-?])([^{}]*))?\}/;
  let result = text;
  for (let match = innermost.exec(result); match; match = innermost.exec(result)) {
    const [whole, name = '', kind, rest = ''] = match;
    if (!env[name] && kind === '?') throw new Error(`required variable ${name} is missing a value: ${rest}`);
    result = result.replace(whole, () => env[name] || (kind === '-' ? rest : ''));
  }
  return result;
}

function environmentOf(service: string, env: Env): Env {
  return Object.fromEntries(
    Object.entries(services[service]!.environment).map(([name, value]) => [name, interpolate(value, env)]),
  );
}

/** The names of the settings that an app reads from its environment, without the `_FILE` variants of secrets. */
function namesRead(app: (typeof apps)[number]): string[] {
  const names = new Set<string>();
  // The settings of tracing are read only if it is on.
  const recorder = new Proxy({ ...required, OTEL_TRACES_EXPORTER: 'otlp' } as NodeJS.ProcessEnv, {
    get(env, name) {
      names.add(String(name));
      return env[String(name)];
    },
  });
  load[app](recorder);
  return [...names].filter((name) => !name.endsWith('_FILE')).sort();
}

describe('docker-compose.yml', () => {
  it.each(apps)('starts %s with every setting of the app', (app) => {
    const { command, environment } = services[app]!;
    expect(command).toEqual(['node', `apps/${app}/dist/main.cjs`]);
    expect(Object.keys(environment).sort()).toEqual(namesRead(app));
  });
  it.each(apps)('leaves %s its defaults if .env has only what is required', (app) => {
    const fixed = { HOST: '0.0.0.0', REDIS_URL: `redis://:${required.REDIS_PASSWORD}@redis:6379` };
    const port = { PORT: services[app]!.environment.PORT! };
    expect(load[app](environmentOf(app, required))).toEqual(load[app]({ ...required, ...fixed, ...port }));
  });
  it.each(apps)('gives %s each setting from the variable of the same name', (app) => {
    const { HOST, PORT, ...fromEnv } = services[app]!.environment;
    expect([HOST, PORT]).toEqual(['0.0.0.0', expect.stringMatching(/^300[0-2]$/)]);
    const env = Object.fromEntries(Object.keys(fromEnv).map((name) => [name, `value of ${name}`]));
    expect(environmentOf(app, env)).toEqual({ ...env, HOST, PORT });
  });
  it('names missing variables, and gives no app the secrets of another', () => {
    const text = read('docker-compose.yml');
    for (const name of Object.keys(required)) {
      expect(() => interpolate(text, { ...required, [name]: '' })).toThrow(`required variable ${name} is missing`);
    }
    expect(Object.keys(services.worker!.environment)).not.toContain('OPERATOR_TOKENS');
    expect(Object.keys(services.ingest!.environment)).not.toContain('SECRET_ENCRYPTION_KEY');
  });
  it('has a Redis that persists, never evicts, expires without a pause, has a memory limit and requires a password, two workers, and no port open to the network', () => {
    const { command, environment } = services.redis!;
    expect(command.join(' ')).toMatch(
      /--appendonly yes --appendfsync always .*--maxmemory-policy noeviction --lazyfree-lazy-expire yes/,
    );
    expect(interpolate(command[command.indexOf('--requirepass') + 1]!, required)).toBe(required.REDIS_PASSWORD);
    const limit = command[command.indexOf('--maxmemory') + 1]!;
    expect([interpolate(limit, {}), interpolate(limit, { REDIS_MAXMEMORY: '4gb' })]).toEqual(['1gb', '4gb']);
    expect(interpolate(environment.REDISCLI_AUTH!, required)).toBe(required.REDIS_PASSWORD);
    expect(services.worker).toMatchObject({ deploy: { replicas: 2 } });
    for (const { ports = [] } of Object.values(services)) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });
  it.each(Object.keys(services))('runs %s read-only, without capabilities and without new privileges', (name) => {
    const service = services[name]!;
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    for (const key of ['cap_add', 'privileged'] as const) expect(service[key]).toBeUndefined();
    // The Dockerfile of the apps sets its user (see below).
    if (name === 'redis') expect(service.user).toBe('redis');
    else expect(service.user).toBeUndefined();
  });
  it('waits longer for an app to exit than the app takes', () => {
    for (const app of apps) {
      const [, minutes] = /^(\d+)m$/.exec(services[app]!.stop_grace_period) ?? [];
      expect(Number(minutes) * 60_000).toBeGreaterThan(load[app](required).SHUTDOWN_GRACE);
    }
  });
});

describe('Dockerfile', () => {
  const text = read('Dockerfile');
  const [, build = '', node = '', image = ''] = text.split(/^FROM /m);

  it('builds on the machine that builds, whatever the architecture of the image is', () => {
    expect(build).toMatch(/^--platform=\$BUILDPLATFORM \$\{NODE_IMAGE\} AS build$/m);
    expect(build).toContain('npm run build && node scripts/image/main.ts /image');
    expect(read('.dockerignore')).not.toMatch(/^(apps|scripts|packages)\/?$/m);
    // What is for the other architecture is only copied: running it would need an emulator.
    expect(node + image).not.toMatch(/^RUN /m);
  });
  it('makes an image from what the build has put together, without a shell, for a user that is not root', () => {
    expect(image).toMatch(/^\$\{BASE_IMAGE\}$/m);
    expect(text).toMatch(/^ARG BASE_IMAGE=gcr\.io\/distroless\/.+:nonroot$/m);
    expect(image.match(/^COPY .*$/gm)).toEqual([
      'COPY --from=node /usr/local/bin/node /usr/local/bin/node',
      'COPY --from=build /image ./',
    ]);
    expect(image).toMatch(/^USER 65532:65532$/m);
    const commands = image.match(/^ *CMD .*$/gm) ?? [];
    expect(commands).toHaveLength(2);
    for (const command of commands) expect(JSON.parse(command.trim().replace('CMD ', ''))[0]).toBe('node');
  });
  it('lets glibc keep little of what is freed, in the benches too', () => {
    expect(imageEnvironment()).toEqual({ MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '16384' });
  });
  it('says which version it has', () => {
    expect(image).toMatch(new RegExp(`^ARG VERSION=${JSON.parse(read('package.json')).version}$`, 'm'));
    for (const label of ['title', 'description', 'licenses', 'version', 'revision'])
      expect(image).toContain(`org.opencontainers.image.${label}=`);
  });
  it('keeps secrets and installed packages of this machine out of the build', () => {
    expect(read('.dockerignore').split('\n')).toEqual(expect.arrayContaining(['.env', '.env.*', '**/node_modules']));
    expect(read('.gitignore').split('\n')).toContain('.env');
  });
});
