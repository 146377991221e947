/** The packages that are published: as npm would deliver them, without anything of this repository. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from '@jest/globals';
import { signatureHeader } from '@posthorn/signing';
import { HUNG_MS } from '@posthorn/testing';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { PUBLISHED } from '../scripts/pack/build-package.ts';
import { oldestNode, provideRuntime } from '../scripts/programs/runtimes.ts';
import { installPackage } from './installed-package.ts';
import { ownReceiver } from './own.ts';

/** The Nodes that run the packages, with the options that they need. */
const NODES: [name: string, command: string, options: string[]][] = [
  [`Node ${process.versions.node}`, process.execPath, ['--no-experimental-strip-types']],
];
const oldest = await provideRuntime(oldestNode);
if ('command' in oldest) NODES.push([`Node ${oldestNode.version}`, oldest.command, ['--no-warnings']]);
else process.stderr.write(`SKIPPED: the packages in Node ${oldestNode.version}. ${oldest.why}\n`);

const folder = mkdtempSync(join(tmpdir(), 'posthorn-packages-'));
afterAll(() => rmSync(folder, { recursive: true }));
const projects = new Map<string, ReturnType<typeof installPackage>>();

/** Each package is installed once, since npm takes seconds; a test writes the files that it runs. */
function installed(name: string): ReturnType<typeof installPackage> {
  let one = projects.get(name);
  if (one === undefined) {
    mkdirSync(join(folder, name));
    one = installPackage(name, join(folder, name));
    projects.set(name, one);
  }
  return one;
}

it.each(PUBLISHED)(
  '%s has a valid manifest with the repository that provenance needs, and no dependency',
  async (name) => {
    const { built, project } = installed(name);
    const { messages, pkg } = await publint({ pkgDir: built, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg!))).toEqual([]);
    expect(pkg!.repository).toMatchObject({ url: 'git+https://github.com/owner/posthorn.git' });
    expect(Object.keys(pkg!)).not.toContain('dependencies');
    const files = execFileSync('npm', ['ls', '--all', '--parseable'], { cwd: project, encoding: 'utf8' });
    expect(files.trim().split('\n')).toHaveLength(2);
  },
);

it.each(NODES)('receiver runs in %s without type stripping', (_, node, options) => {
  const { project } = installed('receiver');
  const body =
    '{"id":"e","type":"session.expired","created_at":"2026-01-01T00:00:00.000Z","environment":"sandbox","data":{"id":"s","status":"x"}}';
  const header = signatureHeader(['secret'], Math.floor(Date.now() / 1000), body);
  writeFileSync(
    join(project, 'run.js'),
    `import { createReceiver, fetchHandler } from '@posthorn/receiver';
import { nodeHandler } from '@posthorn/receiver/node';
import { fastifyReceiver } from '@posthorn/receiver/fastify';
const receiver = createReceiver({ secrets: 'secret', onEvent: (event) => console.log(event.type) });
const request = new Request('http://localhost/', { method: 'POST', body: ${JSON.stringify(body)}, headers: { 'service-signature': ${JSON.stringify(header)} } });
console.log((await fetchHandler(receiver)(request)).status, typeof nodeHandler(receiver), typeof fastifyReceiver(receiver, '/'));
await receiver.idle();
`,
  );
  writeFileSync(join(project, 'run.cjs'), "console.log(typeof require('@posthorn/receiver/node').nodeHandler);");
  const run = (file: string) => execFileSync(node, [...options, file], { cwd: project, encoding: 'utf8' });
  expect(run('run.js')).toBe('200 function function\nsession.expired\n');
  expect(run('run.cjs')).toBe('function\n');
});

it('the types of receiver are complete', () => {
  const { project } = installed('receiver');
  writeFileSync(
    join(project, 'run.ts'),
    `import { createReceiver, fetchHandler, memoryStore, redisStore, type WebhookEvent } from '@posthorn/receiver';
// As Deno.serve and Bun.serve declare it.
const serve = (handler: (request: Request, runtime: { port: number }) => Promise<Response>) => handler;
const receiver = createReceiver({
  secrets: 'secret',
  onEvent(event: WebhookEvent) {
    const type: string = event.type;
    // @ts-expect-error there is no such type
    if (event.type === 'session.lost') return;
    return void type;
  },
});
serve(fetchHandler(receiver));
// Options as they come from an environment or a database.
declare const none: undefined;
createReceiver({ secrets: 's', onEvent() {}, onError: none, store: none, outdated: none, toleranceS: none, maxBodyBytes: none, maxInProgress: none, now: none });
memoryStore({ maxEntries: none });
redisStore(async () => null, { prefix: none, keepMs: none, leaseMs: none });
fetchHandler(receiver)(new Request('http://localhost/'), { waitUntil: (work: Promise<unknown>) => void work });
`,
  );
  checkTypes(project, 'run.ts');
});

const clientProgram = (cast: string) => `import { createPublisher, NotConfirmed } from '@posthorn/client';
const publisher = createPublisher({ url: 'http://127.0.0.1:1', key: 'key', giveUpAfterMs: 1 });
const event = { type: 'session.approved'${cast}, environment: 'sandbox'${cast}, data: { id: 's', status: 'approved' } };
const error = await publisher.publish(event).catch((error) => error);
if (error instanceof NotConfirmed) console.log(error.event.type, error.cause instanceof Error);
`;

it.each(NODES)('client runs in %s without type stripping', (_, node, options) => {
  const { project } = installed('client');
  writeFileSync(join(project, 'run.js'), clientProgram(''));
  writeFileSync(join(project, 'run.cjs'), "console.log(typeof require('@posthorn/client').createPublisher);");
  const run = (file: string) => execFileSync(node, [...options, file], { cwd: project, encoding: 'utf8' });
  expect(run('run.js')).toBe('session.approved true\n');
  expect(run('run.cjs')).toBe('function\n');
});

it.each(NODES)(
  'client ends in %s a call whose response stops in the middle, and repeats it',
  async (_, node, options) => {
    const { project } = installed('client');
    const to = await ownReceiver((_request, response) => {
      // A response that stops leaves time for a garbage collection. Up to Node 22, that makes fetch forget its signal.
      if (to.requests.length === 1) response.write('{');
      else response.end('{"id":"e","duplicate":false,"deliveries":0}');
    });
    writeFileSync(
      join(project, 'run.js'),
      `import { createPublisher } from '@posthorn/client';
setInterval(gc, 10).unref();
const publisher = createPublisher({ url: ${JSON.stringify(to.url)}, key: 'key', timeoutMs: 200 });
console.log(await publisher.publish({ type: 'session.approved', environment: 'sandbox', data: { id: 's', status: 'approved' } }));
await publisher.close();
`,
    );
    const run = promisify(execFile)(node, [...options, '--expose-gc', 'run.js'], { cwd: project, timeout: HUNG_MS });
    expect((await run).stdout).toContain("id: 'e'");
  },
);

it('the types of client are complete', () => {
  const { project } = installed('client');
  writeFileSync(
    join(project, 'check.ts'),
    `${clientProgram(' as const')}
// Options and fields as they come from an environment or a database.
declare const none: undefined;
createPublisher({ url: 'http://x', key: 'k', giveUpAfterMs: none, timeoutMs: none, maxEvents: none, maxBytes: none, concurrency: none, maxBatch: none, onFailure: none });
publisher.publish({ ...event, id: none, created_at: none, data: { ...event.data, reference: none, country: none, tier: none, achieved_tier: none, metadata: none } });
`,
  );
  checkTypes(project, 'check.ts');
});

it.each(PUBLISHED)('the examples in the README of %s compile in strict TypeScript', (name) => {
  const { built, project } = installed(name);
  const examples = [...readFileSync(join(built, 'README.md'), 'utf8').matchAll(/```js\n(.*?)```/gs)];
  expect(examples).not.toEqual([]);
  for (const [, example] of examples) {
    writeFileSync(
      join(project, 'example.ts'),
      `${example}
declare const session: { id: string; userId: string };
declare const request: Request;
declare function unlock(userId: string | undefined): Promise<void>;
`,
    );
    checkTypes(project, 'example.ts', 'node');
  }
});

/**
 * Compiles a file of the project strictly, by default without the types of Node, as for an edge runtime. Throws for an
 * error.
 */
function checkTypes(project: string, file: string, types = ''): void {
  const tsc = join(import.meta.dirname, '../node_modules/typescript/bin/tsc');
  const options = [
    '--noEmit',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--lib',
    'es2022,dom,dom.iterable',
    '--typeRoots',
    join(import.meta.dirname, '../node_modules/@types'),
    '--types',
    types,
  ];
  execFileSync(process.execPath, [tsc, ...options, file], { cwd: project, encoding: 'utf8' });
}
