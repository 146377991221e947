/** The image: its files, run as they are; and where a container engine works, the image itself. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { eventually, isDelivery, type Receiver } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { freePort } from '../scripts/free-port.ts';
import { writeTree } from '../scripts/image/tree.ts';
import { type Engine, findEngine, startContainer } from './image/engine.ts';
import { atEnd, ownEnv, ownReceiver } from './own.ts';
import { apiClients, OPERATOR_TOKEN, sampleEvent } from './world.ts';

/** The image without its base: Node is 121 MiB of it. */
const MAX_TREE_MIB = 80;
const MAX_IMAGE_MIB = 240;
/** The code of each app, without what is loaded only where traces are exported: the files whose names begin so. */
const MAX_CODE_MB = { ingest: 2.2, worker: 3.2, console: 2.8 };
const TRACING = 'open-telemetry-';
/** A build downloads every package. */
jest.setTimeout(1_800_000);

const MIB = 1024 * 1024;
const APPS = ['ingest', 'worker', 'console'] as const;
let tree: string;
const found = await findEngine();

beforeAll(() => {
  // In a process of its own: the bundler can't use the objects of a test's realm.
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: root });
  tree = join(mkdtempSync(join(tmpdir(), 'posthorn-image-')), 'app');
  writeTree(tree);
});
afterAll(() => rmSync(join(tree, '..'), { recursive: true, force: true }));

interface Bom {
  components: { name: string; version: string; type: string; 'bom-ref': string; purl: string; hashes?: object[] }[];
}
const bom = (): Bom => JSON.parse(readFileSync(join(tree, 'sbom.cdx.json'), 'utf8'));
const posthornVersion = (): string => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
const files = () => readdirSync(tree, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

describe('the files of the image', () => {
  it('have every package that is not for development only, as the lock file says, and no other', () => {
    type Locked = { dev?: boolean; devOptional?: boolean; optional?: boolean; link?: boolean; version: string };
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, Locked>;
    };
    const production = Object.entries(packages).filter(
      ([path, one]) => path.includes('node_modules/') && !(one.dev || one.devOptional || one.optional || one.link),
    );
    expect(production.length).toBeGreaterThan(100);
    const listed = new Map(bom().components.map((one) => [one['bom-ref'], one]));
    for (const [path, { version }] of production) {
      expect([path, listed.get(path)?.version]).toEqual([path, version]);
      expect(JSON.parse(readFileSync(join(tree, path, 'package.json'), 'utf8')).version).toBe(version);
    }
    const there = files()
      .filter(({ name, parentPath }) => name === 'package.json' && /node_modules\/(@[^/]+\/)?[^/]+$/.test(parentPath))
      .map(({ parentPath }) => parentPath.slice(tree.length + 1));
    // Workspaces are links, which the listing follows.
    expect(there.filter((path) => !path.includes('@posthorn/')).sort()).toEqual(
      production.map(([path]) => path).sort(),
    );
  });
  it('are the same for every architecture, small, and without tests, sources of the page and declarations', () => {
    const all = files();
    const unwanted = all.filter(({ name }) => /\.(node|map|d\.ts|test\.ts|tsx)$/.test(name));
    expect(unwanted.map(({ name }) => name)).toEqual([]);
    expect(all.some(({ parentPath }) => parentPath.endsWith('apps/console/page/dist'))).toBe(true);
    const bytes = Number(execFileSync('du', ['-sk', tree], { encoding: 'utf8' }).split('\t')[0]) * 1024;
    expect(bytes / MIB).toBeLessThan(MAX_TREE_MIB);
  });
  it.each(APPS)('have only the parts of packages that an app needs: %s', (app) => {
    const dir = join(tree, `apps/${app}/dist`);
    const modules = readFileSync(join(dir, 'modules.txt'), 'utf8')
      .split('\n')
      .filter((line) => !line.startsWith(TRACING))
      .map((line) => line.slice(line.indexOf(' ') + 1));
    const of = (name: string) => modules.filter((path) => path.startsWith(`node_modules/${name}/`));
    expect(of('ioredis').length).toBeGreaterThan(10);
    const limiter = 'node_modules/rate-limiter-flexible/lib/RateLimiterRedis.js';
    expect(of('rate-limiter-flexible')).toEqual(app === 'worker' ? [] : expect.arrayContaining([limiter]));
    expect(of('rate-limiter-flexible').join()).not.toMatch(/Mongo|MySQL|Postgres|Dynamo/);
    // A console sends with got, and only workers with undici, tracing aside.
    const client = 'node_modules/undici/lib/dispatcher/client.js';
    expect(of('undici')).toEqual(app === 'worker' ? expect.arrayContaining([client]) : []);
    expect(of('undici').join()).not.toMatch(/undici\/index|websocket|mock/);
    expect(of('bullmq')).toEqual(expect.arrayContaining(['node_modules/bullmq/dist/esm/classes/queue.js']));
    expect(of('bullmq').join()).not.toMatch(/postgres|flow-producer|sandbox|dist\/cjs/);
    // Only BullMQ's cron expressions would need these.
    expect([...of('cron-parser'), ...of('luxon')]).toEqual([]);
  });
  it.each(APPS)('have short code with short lines, since V8 keeps the text of what it loads: %s', (app) => {
    const dir = join(tree, `apps/${app}/dist`);
    const built = readdirSync(dir).filter((name) => name.endsWith('.cjs') && !name.startsWith(TRACING));
    const code = built.map((name) => readFileSync(join(dir, name), 'utf8')).join('\n');
    expect(code.length).toBeLessThan(MAX_CODE_MB[app] * 1e6);
    // Each of these loads megabytes of Node's tables of languages.
    expect(code).not.toMatch(/new Intl\./);
    // Some data are longer than a line.
    const long = code.split('\n').filter((line) => line.length > 2_000);
    expect(long.length).toBeLessThan(40);
  });
  it('can be read by every user, and written by none but their owner', () => {
    const modes = readdirSync(tree, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isSymbolicLink())
      .map((entry) => [entry.isDirectory(), statSync(join(entry.parentPath, entry.name)).mode & 0o777]);
    for (const [isDirectory, mode] of modes)
      expect([isDirectory, mode]).toEqual([isDirectory, isDirectory ? 0o755 : 0o644]);
  });
  it('have a bill of materials with Node, what the page was built from, and the hash of each package', () => {
    const { components } = bom();
    expect(components[0]).toMatchObject({ type: 'platform', name: 'node', version: process.versions.node });
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['react', '@mantine/core', 'bullmq', 'express']));
    expect(names.filter((name) => /^(jest|vite|typescript|@biomejs\/biome)$/.test(name))).toEqual([]);
    for (const { type, purl, hashes } of components) {
      if (type === 'library') expect([purl, hashes?.length]).toEqual([expect.stringMatching(/^pkg:npm\/.+@\d/), 1]);
    }
    expect(new Set(components.map((one) => one['bom-ref'])).size).toBe(components.length);
  });
  it('are enough to accept, deliver and show an event, and to run the command line', async () => {
    const env = ownEnv();
    const apps = Object.fromEntries(APPS.map((app) => [app, startFromTree(app, env)]));
    await expectDelivery(async (app) => (await apps[app]!.ready).url);
    for (const { stop } of Object.values(apps)) expect(await stop()).toBe(0);
    const said = execFileSync(process.execPath, ['apps/cli/src/main.ts', '--version'], { cwd: tree, encoding: 'utf8' });
    expect(said.trim()).toBe(posthornVersion());
  });
});

describe('a built app', () => {
  it.each(APPS)('loads nothing of Node that only sources or ESM need: %s', async (app) => {
    const probe = join(root, 'tests/image/loaded.cjs');
    const { ready, kill, said } = startFromTree(app, ownEnv({ NODE_OPTIONS: `--require=${probe}` }));
    await ready;
    kill('SIGUSR2');
    await eventually('the list', () => said('"msg":"loaded"') !== undefined);
    const { modules } = JSON.parse(said('"msg":"loaded"') ?? '') as { modules: string[] };
    expect(modules).toEqual(expect.arrayContaining(['NativeModule http']));
    // What removes types, and fetch, which an `import` of node:http loads too: 25 and 12 MB.
    expect(modules.filter((name) => /deps\/(amaro|undici)/.test(name))).toEqual([]);
  });
});

/** Starts an app from the tree. */
function startFromTree(app: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [`apps/${app}/dist/main.cjs`], {
    cwd: tree,
    env: { NODE_ENV: 'production', ...env },
  });
  const ready = Promise.withResolvers<{ url: string }>();
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      if (line.includes('"msg":"ready"')) ready.resolve(JSON.parse(line) as { url: string });
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  void ended.then((code) => ready.reject(new Error(`${app} ended with ${code}: ${lines.join('\n')}`)));
  ready.promise.catch(() => undefined);
  atEnd(() => child.kill('SIGKILL'));
  return {
    ready: ready.promise,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** The first line of output that has these words. */
    said: (words: string) => lines.find((line) => line.includes(words)),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** Publishes an event to apps and waits for it at a receiver; the console shows its page and the delivery. */
async function expectDelivery(urlOf: (app: string) => Promise<string>): Promise<Receiver> {
  const consoleUrl = await urlOf('console');
  const { publish, subscribe } = apiClients(await urlOf('ingest'), consoleUrl);
  await urlOf('worker');
  const to = await ownReceiver();
  await subscribe(to.url);
  expect((await publish(sampleEvent())).status).toBe(202);
  await to.received(1, isDelivery);
  expect(await (await fetch(consoleUrl, { headers: { accept: 'text/html' } })).text()).toContain('<div id="root">');
  const deliveries = await fetch(`${consoleUrl}/v1/deliveries`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  expect(((await deliveries.json()) as { data: object[] }).data).toHaveLength(1);
  return to;
}

function describeImage(engine: Engine): void {
  describe('the image', () => {
    const tag = `posthorn-test:${process.pid}`;
    beforeAll(async () => {
      await engine.build(tag);
    });
    afterAll(async () => {
      await engine.call('rmi', '-f', tag);
    });
    /** What the engine knows of the image; podman has some of it elsewhere than docker. */
    const inspect = async () => {
      const [image] = JSON.parse(await engine.call('image', 'inspect', tag));
      return { ...image.Config, Size: image.Size, Healthcheck: image.Config.Healthcheck ?? image.Healthcheck };
    };

    it('runs as a user that is not root, has labels, and is small', async () => {
      const { User, Labels, Size } = await inspect();
      expect(User).toBe('65532:65532');
      expect(Labels).toMatchObject({
        'org.opencontainers.image.title': 'Posthorn',
        'org.opencontainers.image.licenses': 'MIT',
        'org.opencontainers.image.version': posthornVersion(),
      });
      expect(Size / MIB).toBeLessThan(MAX_IMAGE_MIB);
    });
    it('has no shell and no npm', async () => {
      for (const command of ['sh', 'bash', 'npm', 'apt-get'])
        await expect(engine.call('run', '--rm', '--network=none', '--entrypoint', command, tag)).rejects.toThrow();
      const version = await engine.call('run', '--rm', '--network=none', tag, 'node', '--version');
      expect(version.trim()).toMatch(/^v24\./);
    });
    it('delivers an event with a read-only file system and without capabilities, and ends with 0 on SIGTERM', async () => {
      const env = ownEnv({ HOST: '127.0.0.1' });
      const ports = { ingest: await freePort(), worker: await freePort(), console: await freePort() };
      const [, ...healthCheck] = (await inspect()).Healthcheck.Test as string[];
      const containers = Object.fromEntries(
        APPS.map((app) => {
          const name = `posthorn-test-${process.pid}-${app}`;
          atEnd(() => engine.call('rm', '-f', name).catch(() => undefined));
          const own = { ...env, PORT: String(ports[app]) };
          return [app, { name, ...startContainer(engine, { tag, name, app, env: own }) }];
        }),
      );
      await expectDelivery(async (app) => (await containers[app]!.ready).url);
      for (const { name, ended } of Object.values(containers)) {
        await engine.call('exec', name, ...healthCheck);
        const write = `require('node:fs').writeFileSync('/app/x', '')`;
        await expect(engine.call('exec', name, 'node', '-e', write)).rejects.toThrow(/EROFS|EACCES/);
        expect((await engine.call('exec', name, 'node', '-p', 'process.getuid()')).trim()).toBe('65532');
        await engine.call('kill', '--signal=TERM', name);
        expect(await ended).toBe(0);
      }
    });
  });
}

if ('why' in found) process.stderr.write(`SKIPPED: building and starting the image: ${found.why}\n`);
else describeImage(found);
