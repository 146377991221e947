/** The published receiver in Deno, Bun and Cloudflare's workerd: each runs a server, which gets the same deliveries. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { deliveryHeaders } from '@posthorn/signing';
import { eventually } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { bun, deno, provideRuntime, type Runtime, workerd } from '../scripts/programs/runtimes.ts';
import { installPackage } from './installed-package.ts';

const SECRET = 'whsec_of_the_receiver';
const vectors = JSON.parse(readFileSync(join(root, 'packages/receiver/snippets/vectors.json'), 'utf8'));

/**
 * The same in each runtime: `handle` receives deliveries, and `GET /seen` and `GET /vectors` say what became of them.
 */
const app = (from: string) => `import { createReceiver, fetchHandler, verifySignature } from '${from}';
const seen = [];
const errors = [];
let active = 0;
let mostActive = 0;
const receiver = createReceiver({
  secrets: ${JSON.stringify(SECRET)},
  async onEvent(event) {
    active += 1;
    mostActive = Math.max(mostActive, active);
    await new Promise((resolve) => setTimeout(resolve, event.data.metadata?.ms ?? 0));
    active -= 1;
    seen.push(event.id);
  },
  onError: (error) => void errors.push(String(error)),
});
const handle = fetchHandler(receiver);
const vectors = ${JSON.stringify(vectors)};
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
async function verdicts() {
  const checks = vectors.map(({ header, secret, body, now }) => ({ header, secrets: [secret], body: bytes(body), nowS: now }));
  return await Promise.all(checks.map((check) => verifySignature(check).catch(() => false)));
}
async function serve(request, context) {
  const { pathname } = new URL(request.url);
  if (pathname === '/seen') return Response.json({ seen, errors, mostActive });
  if (pathname === '/vectors') return Response.json(await verdicts());
  return await handle(request, context);
}
`;

/** What `GET /seen` returns. */
interface Seen {
  seen: string[];
}

interface Server {
  /** How its module ends. */
  ending: string;
  /** Starts it in a project with the receiver, whose built files are in `built`. Resolves with the port. */
  start(command: string, project: string, built: string): Promise<number>;
}

const servers: ChildProcess[] = [];
afterAll(async () => {
  for (const server of servers) {
    if (server.exitCode !== null || server.signalCode !== null) continue;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  }
  rmSync(dir, { recursive: true, force: true });
});

/** The port of a server, which ends with the tests: the first one in a line of `output`. */
async function portFrom(child: ChildProcess, output: Readable): Promise<number> {
  servers.push(child);
  for await (const line of createInterface({ input: output })) {
    const port = /port"?[ :]*(\d+)/.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`${child.spawnfile} ended before it listened`);
}

function startScript(command: string, args: string[], project: string): Promise<number> {
  // Without the settings of this machine, such as proxies.
  const env = { PATH: process.env.PATH, HOME: project };
  const child = spawn(command, [...args, 'main.js'], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] });
  return portFrom(child, child.stdout);
}

const SERVERS: [Runtime, Server][] = [
  [
    deno,
    {
      ending:
        "Deno.serve({ port: 0, hostname: '127.0.0.1', onListen: ({ port }) => console.log('port', port) }, serve);",
      start: (command, project) =>
        startScript(command, ['run', '--no-remote', '--node-modules-dir=manual', '--allow-net'], project),
    },
  ],
  [
    bun,
    {
      ending: "console.log('port', Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: serve }).port);",
      start: (command, project) => startScript(command, ['run'], project),
    },
  ],
  [
    workerd,
    {
      ending: 'export default { fetch: (request, env, context) => serve(request, context) };',
      start(command, project, built) {
        const files = readdirSync(built, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
        const modules = [
          `(name = "main.js", esModule = embed "main.js")`,
          ...files.map(
            (file) => `(name = "receiver/${file}", esModule = embed "node_modules/@posthorn/receiver/${file}")`,
          ),
        ];
        const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (modules = [${modules.join(', ')}], compatibilityDate = "2026-11-01"))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`;
        writeFileSync(join(project, 'config.capnp'), config);
        const child = spawn(command, ['serve', '--control-fd=3', 'config.capnp'], {
          cwd: project,
          stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
        });
        return portFrom(child, child.stdio[3] as Readable);
      },
    },
  ],
];

const dir = mkdtempSync(join(tmpdir(), 'posthorn-runtimes-'));
let installed: ReturnType<typeof installPackage>;
beforeAll(() => {
  installed = installPackage('receiver', dir);
});

let made = 0;
function eventOf(session: string, fields: object = {}, ms = 0) {
  made += 1;
  return {
    id: `evt_${made}`,
    type: 'session.approved',
    created_at: '2026-11-20T10:00:00.000Z',
    environment: 'sandbox',
    data: { id: session, status: 'approved', metadata: { ms } },
    ...fields,
  };
}

function delivery(event: ReturnType<typeof eventOf>, secret = SECRET) {
  const body = JSON.stringify(event);
  const of = { id: `dlv_${event.id}`, eventId: event.id, eventType: event.type };
  return { method: 'POST', headers: deliveryHeaders(of, body, [secret], Math.floor(Date.now() / 1000)), body };
}

function describeServer({ name }: Runtime, { ending, start }: Server, command: string): void {
  describe(`the receiver in ${name}`, () => {
    let url = '';
    beforeAll(async () => {
      const { project, built } = installed;
      const from = name === 'workerd' ? './receiver/index.js' : '@posthorn/receiver';
      writeFileSync(join(project, 'main.js'), app(from) + ending);
      url = `http://127.0.0.1:${await start(command, project, built)}`;
    });
    const read = async (path: string) => (await (await fetch(url + path)).json()) as Seen;
    const send = async (init: object) => (await fetch(`${url}/webhooks`, init)).status;
    const deliver = (...of: Parameters<typeof delivery>) => send(delivery(...of));
    /** Resolves with what was processed since the last call, once these are. */
    let known = 0;
    const processed = async (...ids: string[]) => {
      const { seen } = await eventually('the events are processed', async () => {
        const now = await read('/seen');
        return ids.every((id) => now.seen.includes(id)) && now;
      });
      const fresh = seen.slice(known);
      known = seen.length;
      return fresh;
    };

    it('verifies signatures as everywhere else', async () => {
      const valid = vectors.map((vector: { valid: boolean }) => vector.valid);
      expect(await read('/vectors')).toEqual(valid);
    });
    it('processes each event once, and none that is older than the newest of its session', async () => {
      const event = eventOf('one');
      expect(await deliver(event)).toBe(200);
      expect(await processed(event.id)).toEqual([event.id]);
      const [older, last] = [eventOf('one', { created_at: '2026-11-20T09:00:00.000Z' }), eventOf('two')];
      expect([await deliver(event), await deliver(older), await deliver(last)]).toEqual([200, 200, 200]);
      expect(await processed(last.id)).toEqual([last.id]);
    });
    it('refuses what is not signed, too large or no POST, and accepts a validation', async () => {
      expect(await deliver(eventOf('one'), 'another secret')).toBe(400);
      expect(await send({ method: 'POST', body: '{"a":1}' })).toBe(400);
      expect(await send({ method: 'POST', body: '{}' })).toBe(200);
      expect(await send({})).toBe(405);
      expect(await send({ method: 'POST', body: new Uint8Array(1024 * 1024 + 1) })).toBe(413);
      const chunks = Array.from({ length: 17 }, () => new Uint8Array(64 * 1024));
      expect(await send({ method: 'POST', body: ReadableStream.from(chunks), duplex: 'half' })).toBe(413);
      expect(await processed()).toEqual([]);
    });
    it('processes the events of a session one after the other, after the responses', async () => {
      const events = Array.from({ length: 5 }, () => eventOf('three', {}, 20));
      expect(await Promise.all(events.map((event) => deliver(event)))).toEqual(events.map(() => 200));
      const ids = events.map(({ id }) => id);
      expect((await processed(...ids)).sort()).toEqual(ids.sort());
      expect(await read('/seen')).toMatchObject({ mostActive: 1 });
    });
    it('goes on with a session after a caller has left', async () => {
      const [left, next] = [eventOf('four', {}, 200), eventOf('four')];
      const { body, ...init } = delivery(left);
      // The connection ends as soon as the response begins, while the event is processed.
      const sent = request(`${url}/webhooks`, { ...init, agent: false });
      sent.end(body);
      const [response] = await once(sent, 'response');
      response.destroy();
      expect(await deliver(next)).toBe(200);
      expect(await processed(left.id, next.id)).toEqual([left.id, next.id]);
      expect(await read('/seen')).toMatchObject({ errors: [] });
    });
  });
}

it('is installed from its package, without another one', () => {
  const modules = readdirSync(join(installed.project, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(modules).toEqual(['@posthorn']);
});

for (const [runtime, server] of SERVERS) {
  const found = await provideRuntime(runtime);
  if ('command' in found) describeServer(runtime, server, found.command);
  else process.stderr.write(`SKIPPED: the receiver in ${runtime.name}. ${found.why}\n`);
}
