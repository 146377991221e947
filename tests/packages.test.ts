/** The packages that are published: as npm would deliver them, without anything of this repository. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { signatureHeader } from '@posthorn/signing';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { PUBLISHED } from '../scripts/pack/build-package.ts';
import { installPackage } from './installed-package.ts';

it.each(PUBLISHED)(
  '%s has a valid manifest with the repository that provenance needs, and no dependency',
  async (name) => {
    const { built, project } = installPackage(name);
    const { messages, pkg } = await publint({ pkgDir: built, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg!))).toEqual([]);
    expect(pkg!.repository).toMatchObject({ url: 'git+https://github.com/owner/posthorn.git' });
    expect(Object.keys(pkg!)).not.toContain('dependencies');
    const files = execFileSync('npm', ['ls', '--all', '--parseable'], { cwd: project, encoding: 'utf8' });
    expect(files.trim().split('\n')).toHaveLength(2);
  },
);

it('receiver runs without type stripping, and its types are complete', () => {
  const { project } = installPackage('receiver');
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
  const out = execFileSync(process.execPath, ['--no-experimental-strip-types', 'run.js'], {
    cwd: project,
    encoding: 'utf8',
  });
  expect(out).toBe('200 function function\nsession.expired\n');
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

it('client runs without type stripping, and its types are complete', () => {
  const { project } = installPackage('client');
  const program = (cast: string) => `import { createPublisher, NotConfirmed } from '@posthorn/client';
const publisher = createPublisher({ url: 'http://127.0.0.1:1', key: 'key', giveUpAfterMs: 1 });
const event = { type: 'session.approved'${cast}, environment: 'sandbox'${cast}, data: { id: 's', status: 'approved' } };
const error = await publisher.publish(event).catch((error) => error);
if (error instanceof NotConfirmed) console.log(error.event.type, error.cause instanceof Error);
`;
  writeFileSync(join(project, 'run.js'), program(''));
  const out = execFileSync(process.execPath, ['--no-experimental-strip-types', 'run.js'], {
    cwd: project,
    encoding: 'utf8',
  });
  expect(out).toBe('session.approved true\n');
  writeFileSync(
    join(project, 'check.ts'),
    `${program(' as const')}
// Options and fields as they come from an environment or a database.
declare const none: undefined;
createPublisher({ url: 'http://x', key: 'k', giveUpAfterMs: none, timeoutMs: none, maxEvents: none, maxBytes: none, concurrency: none, maxBatch: none, onFailure: none });
publisher.publish({ ...event, id: none, created_at: none, data: { ...event.data, reference: none, country: none, tier: none, achieved_tier: none, metadata: none } });
`,
  );
  checkTypes(project, 'check.ts');
});

/** Compiles a file of the project strictly, without the types of Node, as for an edge runtime. Throws for an error. */
function checkTypes(project: string, file: string): void {
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
    '--types',
    '',
  ];
  execFileSync(process.execPath, [tsc, ...options, file], { cwd: project, encoding: 'utf8' });
}
