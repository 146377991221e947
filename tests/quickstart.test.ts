/**
 * docs/quickstart.md, followed by a test: its commands as they are written, with what each step printed put into the
 * next.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { eventually } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { freePort } from '../scripts/free-port.ts';
import { npmRun, searchPath } from './npm-run.ts';
import { atEnd, ownDir } from './own.ts';

const text = readFileSync(join(root, 'docs/quickstart.md'), 'utf8');
const blocks = Array.from(text.matchAll(/^```(sh|js)\n(.*?)^```$/gms), ([, kind = '', code = '']) => ({
  kind,
  code: code.trim(),
}));

/** Begins a request and closes the connection before the end of its body: the receiver must survive that. */
async function goAwayWithin(port: number): Promise<void> {
  const client = connect(port, '127.0.0.1');
  // The 100 says that the receiver reads the body.
  client.write('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n');
  await once(client, 'data');
  client.destroy();
}

it('takes a newcomer to a verified delivery', async () => {
  const [install, create, receiver, startReceiver, validate, test, publish] = blocks.map(({ code }) => code);
  expect(install).toBe('npm ci\nnpm start');
  const [dir, ingestPort, receiverPort] = [ownDir(), await freePort(), String(await freePort())];
  const env = { POSTHORN_DIR: dir, INGEST_PORT: String(ingestPort) };
  const posthorn = npmRun('start', env);
  await posthorn.said('Ctrl-C stops everything');

  const known: [RegExp | string, string][] = [
    [/\b9000\b/g, receiverPort],
    [/\b3000\b/g, String(ingestPort)],
  ];
  /** The command with ports of this test, and with what earlier commands printed. */
  const filled = (command = '') => known.reduce((all, [from, to]) => all.replaceAll(from, to), command);
  const run = (command: string | undefined) => {
    const path = [join(root, 'node_modules/.bin'), searchPath()].join(':');
    const shell = filled(command);
    const ran = spawnSync('sh', ['-c', shell], {
      cwd: root,
      encoding: 'utf8',
      env: { PATH: path, HOME: process.env.HOME ?? '', ...env },
    });
    if (ran.status !== 0) throw new Error(`${shell}: ${ran.stderr}`);
    return ran.stdout;
  };

  const created = run(create);
  const [id = ''] = /sub_[\w-]{22}/.exec(created) ?? [];
  const [secret = ''] = /whsec_\S+/.exec(created) ?? [];
  const key = /key {2}(\S+)/.exec(posthorn.output.join(''))?.[1] ?? '';
  known.push(['sub_…', id], ['whsec_…', secret], ['<publisher key>', key]);

  const file = join(dir, 'receiver.mjs');
  writeFileSync(file, filled(receiver).replace("'./packages", `'${root}/packages`));
  const [, assignment = ''] = /^(\S+) node receiver\.mjs$/.exec(filled(startReceiver)) ?? [];
  const [name = '', value = ''] = assignment.split('=');
  const child = spawn('node', [file], { env: { PATH: process.env.PATH ?? '', [name]: value } });
  atEnd(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await eventually('the receiver to listen', () => said.includes('listening'));
  await goAwayWithin(Number(receiverPort));

  expect(run(validate)).toContain('active');
  expect(run(test)).toContain('succeeded');
  await eventually('the test delivery', () => said.includes('verified: webhook.test'));
  expect(run(publish)).toMatch(/"deliveries":[1-9]/);
  await eventually('the event', () => said.includes('verified: session.approved'));
});
