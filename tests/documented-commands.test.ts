/**
 * The commands in the README and docs: each is run here, run by the test that is named here, or listed in
 * CONTRIBUTING.md as not run.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { deliveriesWith, eventually, isDelivery } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { openssl, redisCli } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import { ownDir, ownReceiver, ownWorld } from './own.ts';
import { BASE_ENV } from './processes.ts';
import { redisServer } from './redis-servers.ts';
import { POSTHORN } from './run-posthorn.ts';
import { OPERATOR_TOKEN, sampleEvent } from './world.ts';

const PROGRAMS =
  /^(?:[A-Z_]+=\S+ )?(?:npm|npx|node|posthorn|curl|docker|podman|helm|kubectl|redis-cli|redis-server|openssl|promtool|source|git|cosign)(?: |$)/;
/** Where another test, or CI, runs a command, and a text there that shows it. */
const RUN_ELSEWHERE: [command: RegExp, file: string, text: string][] = [
  [/^npm ci$|^npm test$|^npm ci && npm test$/, '.ci/run', 'npm ci\nnpm test'],
  [/^npm run check$|^npm run -s jest -- /, 'scripts/test.ts', 'jest'],
  [/^npm start$|^npm ci && npm start$/, 'tests/start.test.ts', "npmRun('start'"],
  [/^npm run start:(ingest|worker|console)$/, 'tests/start.test.ts', 'start:'],
  [/^npm run build$/, 'tests/setup/prepare-browser.ts', 'build'],
  [/^npm run bench -- --only=memory$/, 'tests/start.test.ts', "npmRun('bench', {}, ['--quick', '--only=memory'])"],
  [/^npm run pack$/, 'tests/installed-package.ts', 'buildPackage(name'],
  [/^npm run release -- --(check|version=\S+)$/, 'scripts/release/release.test.ts', 'checkRelease(root)'],
  [/^redis-cli --cluster (fix|add-node|rebalance) /, 'tests/growth.test.ts', "cluster('rebalance', address"],
  [/^npm run generate-docs$/, 'scripts/wire-files.test.ts', 'generate-docs'],
  [
    /^(npx posthorn (create|validate|test)|WEBHOOK_SECRET=|curl -sS) ?/,
    'tests/quickstart.test.ts',
    'docs/quickstart.md',
  ],
];

interface Documented {
  command: string;
  file: string;
}

/**
 * The commands in documents that tell users to do something, so not in decisions: lines of shell blocks, indented lines
 * and code spans that begin with the name of a program.
 */
function documentedCommands(): Documented[] {
  const files = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'deploy/**/*.md'], { cwd: root });
  return files
    .filter((file) => !file.includes('node_modules') && file !== 'CHANGELOG.md' && !file.startsWith('docs/decisions'))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const blocks = Array.from(text.matchAll(/^```(?:sh|bash)\n(.*?)^```$/gms), ([, code = '']) => code);
      const prose = text.replaceAll(/^```.*?^```$/gms, '');
      const indented = Array.from(prose.matchAll(/^ {4}(\S.*)$/gm), ([, line = '']) => line.replace(/\s+#.*$/, ''));
      const lines = blocks.flatMap((code) => code.replaceAll('\\\n', '').split('\n'));
      const spans = Array.from(prose.matchAll(/`([^`\n]+)`/g), ([, span = '']) => span.replaceAll('\\|', '|'));
      const commands = [...lines, ...indented, ...spans].map((command) => command.replaceAll(/\s+/g, ' ').trim());
      return commands.filter((command) => PROGRAMS.test(command)).map((command) => ({ command, file }));
    });
}

/** What CONTRIBUTING.md lists under its heading about commands that no test runs. */
function listedAsNotRun(): string[] {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const [, section = ''] = /^## Commands that no test runs\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(text) ?? [];
  return Array.from(section.matchAll(/^- `([^`]+)`/gm), ([, command = '']) => command);
}

const isOfPosthorn = (command: string) => /^(npx )?posthorn\b|^source <\(posthorn/.test(command);
/** Without arguments it is named, not used. */
const isNamed = (command: string) => /^(npx )?posthorn [a-z][\w-]*$/.test(command);
const isOfRedis = (command: string) => /^(redis-cli|openssl) /.test(command);
/** A name alone, such as `npm`, `helm rollback` or `node --cpu-prof`, is no command. */
const isName = (command: string) => /^\S+$|^(helm|podman|node) \S+$/.test(command);

const commands = new Map(documentedCommands().map(({ command, file }) => [command, file]));
const notRun = listedAsNotRun();
const elsewhere = (command: string) => RUN_ELSEWHERE.find(([pattern]) => pattern.test(command));
const here = [...commands.keys()].filter(
  (command) => !isName(command) && !elsewhere(command) && !notRun.includes(command),
);

describe('a command in the documentation', () => {
  it('is run by a test, or listed as not run', () => {
    expect(here.filter((command) => !isOfPosthorn(command) && !isOfRedis(command))).toEqual([]);
  });

  it('is not listed as not run if no document has it any more', () => {
    expect(notRun.filter((command) => !commands.has(command))).toEqual([]);
  });

  it('is where this test says it is run', () => {
    for (const [pattern, file, text] of RUN_ELSEWHERE) {
      expect([pattern, [...commands.keys()].some((command) => pattern.test(command))]).toEqual([pattern, true]);
      expect([file, readFileSync(join(root, file), 'utf8').includes(text)]).toEqual([file, true]);
    }
  });

  it('of posthorn works as it is written', async () => {
    const on = await ownWorld();
    const [to, failing, local] = [await ownReceiver(), await ownReceiver(deliveriesWith(400)), await ownReceiver()];
    const { id } = await on.subscribe(failing.url);
    const other = (await on.subscribe(to.url)).id;
    const inFile = (await on.subscribe(to.url)).id;
    const { body: event } = await on.publish(sampleEvent());
    const [request] = await to.received(1, isDelivery);
    await failing.received(1, isDelivery);
    const [delivery] = (await on.operate('GET', `/v1/deliveries?subscription_id=${id}`)).body.data;
    await eventually('the attempt to be recorded', async () => (await on.delivery(delivery.id)).attempt_count === 1);
    // Its retry may be due before the commands have ended.
    failing.answerWith(deliveriesWith(200));

    const dir = ownDir();
    writeFileSync(join(dir, 'body.json'), request!.body);
    const [, yaml = ''] = /^```yaml\n(.*?)^```$/ms.exec(readFileSync(join(root, 'docs/cli.md'), 'utf8')) ?? [];
    writeFileSync(join(dir, 'subscriptions.yaml'), yaml.replace(/sub_\w+/, inFile));
    const signed = (await on.operate('GET', `/v1/deliveries/${delivery.id}/request`)).body;
    const filled = (command: string) =>
      command
        .replace(/subscriptions\/<id>/, `subscriptions/${id}`)
        .replace('--address <subscription> --address', `--address ${other} --address`)
        .replaceAll(/<subscription>|sub_…/g, id)
        .replaceAll('<event>', event.id)
        .replaceAll('<session>', 's-1')
        .replaceAll(/<delivery>|dlv_…/g, delivery.id)
        .replace(/--(session|user|reference) <id>/, '--$1 s-1')
        .replace('<command>', 'list')
        .replace('t=…,v1=…', signed.headers['Service-Signature'])
        .replace('localhost:3000/webhooks', local.url);
    writeFileSync(join(dir, 'body.json'), signed.body);
    const shell = (command: string) => {
      const cli = `posthorn() { ${process.execPath} ${POSTHORN} "$@"; }`;
      const env = {
        ...BASE_ENV,
        POSTHORN_URL: on.consoleUrl,
        POSTHORN_TOKEN: OPERATOR_TOKEN,
        ACME_SECRET: 'whsec_0123456789012345678901234567890123456789012',
      };
      return spawn('bash', ['-c', `${cli}\n${filled(command).replace(/^npx /, '')}`], {
        cwd: dir,
        env,
        detached: true,
      });
    };

    const results: [string, unknown][] = [];
    for (const command of here.filter((command) => isOfPosthorn(command) && !isNamed(command))) {
      if (/^posthorn resume </.test(command)) await on.operate('POST', `/v1/subscriptions/${id}/pause`);
      if (/ (tail|listen) -/.test(command)) results.push([command, await saidSomething(shell(command))]);
      else results.push([command, await ended(shell(command))]);
      const isActive = async () => (await on.operate('GET', `/v1/subscriptions/${id}`)).body.status === 'active';
      if (/^posthorn resume </.test(command)) await eventually('the address to be active', isActive);
    }
    expect(results.filter(([, result]) => result !== 0)).toEqual([]);
    expect(results.length).toBeGreaterThan(10);
  });

  it('of posthorn that is named without arguments is one of its help', () => {
    const { stdout } = spawnSync(process.execPath, [POSTHORN, '--help'], {
      encoding: 'utf8',
    });
    const existing = Array.from(stdout.matchAll(/^ {2}([a-z][\w-]*)/gm), ([, name]) => name);
    const named = here.filter(isNamed).map((command) => command.split(' ').at(-1));
    expect(existing).toEqual(expect.arrayContaining(named));
    expect(named.length).toBeGreaterThan(10);
  });

  it('of Redis and OpenSSL works as it is written', async () => {
    const dir = ownDir();
    const redis = await redisServer([], { dir });
    const programs = await providePrograms([redisCli, openssl], { say: () => undefined });
    const path = [...Object.values(programs).map((program) => dirname(program)), process.env.PATH].join(':');
    // With Valkey it is valkey-cli.
    const cli = basename(programs[redisCli.name]!);
    const results = [];
    for (const command of here.filter(isOfRedis)) {
      const filled = command
        .replace(/^redis-cli /, `${cli} -e -p ${redis.port} `)
        .replace('<KEY_PREFIX>', 'posthorn')
        .replace(' …', ' 1gb');
      results.push([command, await ended(spawn('bash', ['-c', filled], { cwd: dir, env: { PATH: path } }))]);
    }
    expect(results.filter(([, result]) => result !== 0)).toEqual([]);
    expect(results).not.toEqual([]);
  });
});

/** Resolves with 0, or with the output of a command that failed. */
async function ended(child: ChildProcess): Promise<unknown> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data) => {
      output += data;
    });
  }
  const code = await new Promise((resolve) => child.once('close', resolve));
  return code === 0 ? 0 : `${code}: ${output}`;
}

/**
 * Resolves with 0 once a command that runs until Ctrl-C has said something, or with the output of one that ended by
 * itself.
 */
async function saidSomething(child: ChildProcess): Promise<unknown> {
  const end = ended(child);
  const said = new Promise<number>((resolve) => {
    child.stderr?.once('data', () => resolve(0));
    child.stdout?.once('data', () => resolve(0));
  });
  const result = await Promise.race([end.then((failure) => failure || 'It ended by itself.'), said]);
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
  await end;
  return result;
}
