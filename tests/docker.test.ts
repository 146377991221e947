/** The container files, as far as they can be checked without an engine: their shape, their paths, their settings. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { loadConsoleSettings } from '../apps/console/src/config.ts';
import { loadIngestSettings } from '../apps/ingest/src/config.ts';
import { loadWorkerSettings } from '../apps/worker/src/config.ts';

const root = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const compose = parse(read('docker-compose.yml'), { merge: true });
const load = { ingest: loadIngestSettings, worker: loadWorkerSettings, console: loadConsoleSettings };
const given: Record<string, string> = {
  PUBLISHER_KEYS: 'a:both:key',
  OPERATOR_TOKENS: 'a:token',
  SECRET_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
};

describe('docker-compose.yml', () => {
  it.each(['ingest', 'worker', 'console'] as const)('%s starts its app with settings that the app accepts', (app) => {
    const { command, environment, stop_grace_period } = compose.services[app];
    expect(command).toEqual(['node', `apps/${app}/src/main.ts`]);
    expect(existsSync(join(root, command[1]))).toBe(true);
    const env = Object.fromEntries(
      Object.entries(environment as Record<string, string>).map(([name, value]) => {
        const required = /^\$\{(\w+):\?.+\}$/.exec(value)?.[1];
        return [name, required === undefined ? value : given[required]];
      }),
    );
    const settings = load[app](env as NodeJS.ProcessEnv);
    for (const name of Object.keys(env)) expect(settings).toHaveProperty(name);
    expect(Number.parseInt(stop_grace_period, 10) * 1000).toBeGreaterThan(settings.SHUTDOWN_GRACE);
  });
  it('Redis persists and never evicts, there are two workers, and nothing is open to the network', () => {
    expect(compose.services.redis.command.join(' ')).toMatch(
      /--appendonly yes --appendfsync always .*--maxmemory-policy noeviction/,
    );
    expect(compose.services.worker.deploy.replicas).toBe(2);
    for (const { ports = [] } of Object.values(compose.services) as { ports?: string[] }[]) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });
});

describe('Dockerfile', () => {
  it('copies paths that exist, and the manifest of every workspace', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap((match) =>
      match[1]!.split(' '),
    );
    for (const path of copied) expect([path, existsSync(join(root, path))]).toEqual([path, true]);
    for (const folder of ['apps', 'packages']) {
      for (const name of readdirSync(join(root, folder))) expect(copied).toContain(`${folder}/${name}/package.json`);
    }
  });
  it('builds the page where everything is there, and serves it from where the console looks for it', () => {
    const [build = '', image = ''] = read('Dockerfile')
      .split(/^FROM /m)
      .slice(1);
    expect(build).toContain('npm run build');
    expect(image).toContain('COPY --from=page /app/apps/console/page/dist apps/console/page/dist');
    expect(read('.dockerignore')).not.toMatch(/^(apps|scripts|packages)\/?$/m);
  });
});
