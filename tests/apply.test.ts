/** `posthorn apply`: subscriptions become what a file says, and a second run changes nothing. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, type Receiver } from '@posthorn/testing';
import { ownReceiver, ownWorld } from './own.ts';
import { ownPosthorn, runPosthorn } from './run-posthorn.ts';
import type { World } from './world.ts';

let on: World;
let to: Receiver;
beforeEach(async () => {
  on = await ownWorld();
  to = await ownReceiver();
});

const SECRET = 'a-secret-from-the-environment';
/** Applies a file; JSON is valid YAML. */
const apply = (subscriptions: unknown, ...options: string[]) => runPosthorn(...command(subscriptions, options));
const command = (subscriptions: unknown, options: string[]): Parameters<typeof ownPosthorn> => [
  on.consoleUrl,
  ['apply', '-f', '-', ...options],
  { ACME_SECRET: SECRET },
  text(subscriptions),
];
const text = (subscriptions: unknown) =>
  typeof subscriptions === 'string' || Buffer.isBuffer(subscriptions)
    ? subscriptions
    : JSON.stringify({ subscriptions });
const stored = async () => (await on.operate('GET', '/v1/subscriptions?sort=url')).body.data;
const audit = async () => (await on.operate('GET', '/v1/audit')).body.data;

it('creates, validates and changes what differs; a second run changes nothing', async () => {
  const file = [
    {
      key: 'acme',
      url: `${to.url}/a`,
      environment: 'sandbox',
      event_types: ['session.approved'],
      secret_env: 'ACME_SECRET',
    },
    { key: 'beta', url: `${to.url}/b` },
  ];
  const first = await apply(file, '--validate');
  expect([first.code, first.err]).toEqual([0, '']);
  expect(first.out).toMatch(/create +acme/);
  // Generated secrets are shown once; those of the environment never.
  expect(first.out).toMatch(/whsec_/);
  expect(first.out).not.toContain(SECRET);
  expect(await stored()).toMatchObject([
    { key: 'acme', environment: 'sandbox', event_types: ['session.approved'], description: '', status: 'active' },
    { key: 'beta', environment: 'both', event_types: 'all', status: 'active' },
  ]);
  const entries = (await audit()).length;
  const [url, args, , input] = command(file, []);
  // The secret of a subscription that exists need not be known.
  for (const env of [{ ACME_SECRET: SECRET }, {}])
    expect(await runPosthorn(url, args, env, input)).toEqual({ code: 0, out: 'Nothing to change.\n', err: '' });
  expect(await audit()).toHaveLength(entries);

  file[0]!.environment = 'both';
  const dry = await apply(file, '--dry-run');
  expect(dry.code).toBe(2);
  expect(dry.out).toMatch(/update +acme.*environment: "sandbox" → "both"/);
  expect(await audit()).toHaveLength(entries);
  expect((await apply(file)).code).toBe(0);
  expect(await stored()).toMatchObject([{ environment: 'both' }, {}]);
  expect((await apply(file, '--dry-run')).code).toBe(0);
});

it('deletes only what has a key that the file no longer has, only with --prune, and only after a confirmation', async () => {
  const { id } = await on.subscribe(`${to.url}/by-hand`);
  const [acme, beta] = ['acme', 'beta'].map((key) => ({ key, url: `${to.url}/${key}` }));
  await apply([acme, beta]);
  expect((await apply([acme])).out).toBe('Nothing to change.\n');
  expect(await apply([acme], '--prune')).toMatchObject({
    code: 1,
    err: expect.stringContaining('Delete 1 subscription? Not an interactive terminal; pass --yes.'),
  });
  expect(await stored()).toHaveLength(3);
  expect(await apply([acme], '--prune', '--yes')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/delete +beta/),
  });
  expect((await stored()).map((one: { id: string; key: string | null }) => one.key ?? one.id).sort()).toEqual(
    ['acme', id].sort(),
  );
});

it('changes a subscription without a key by its id, and refuses to create a second one like it', async () => {
  const { id } = await on.subscribe(to.url, { environment: 'production', description: 'by hand' });
  expect(await apply([{ key: 'acme', url: to.url, environment: 'sandbox' }], '--dry-run')).toMatchObject({ code: 2 });
  const twin = await apply([
    { key: 'acme', url: to.url },
    { key: 'new', url: `${to.url}/new` },
  ]);
  expect(twin).toMatchObject({ code: 1, err: expect.stringContaining(`Write "id: ${id}" in place of the key`) });
  expect(await stored()).toHaveLength(1);
  expect((await apply([{ id, url: to.url, description: 'from the file' }])).code).toBe(0);
  expect(await stored()).toMatchObject([
    { id, key: null, environment: 'both', description: 'from the file', status: 'active' },
  ]);
});

it('warns if a new subscription duplicates one that the file no longer names, as after renaming a key', async () => {
  const entry = { url: to.url, event_types: ['session.approved', 'session.declined'] };
  await apply([{ key: 'old', ...entry }]);
  const renamed = [{ key: 'new', ...entry, event_types: ['session.declined'] }];
  const warning = expect.stringContaining('as old, which is not in the file');
  expect(await apply(renamed, '--dry-run')).toMatchObject({ code: 2, err: warning });
  for (const [file, ...options] of [
    [renamed, '--prune'],
    [[...renamed, { key: 'old', ...entry }]],
    [[{ ...renamed[0], url: `${to.url}/other` }]],
    [[{ ...renamed[0], event_types: ['session.expired'] }]],
  ] as const)
    expect(await apply(file, '--dry-run', ...options)).toMatchObject({ code: 2, err: '' });
  expect(await apply(renamed)).toMatchObject({ code: 0, err: warning });
});

it('names the line of each mistake and changes nothing', async () => {
  for (const [file, message] of [
    ['subscriptions:\n  - url: https://a.example\n', '-:2: subscriptions.0: Expected either key or id'],
    ['subscriptions:\n  - {key: a, url: https://a.example, secret_env: NOT_SET}\n', 'NOT_SET is not set'],
    ['subscriptions:\n  - {key: a, url: https://a.example, secret_env: constructor}\n', 'constructor is not set'],
    ['subscriptions:\n  - {id: sub_AAAAAAAAAAAAAAAAAAAAAA, url: https://a.example}\n', 'There is no subscription sub_'],
  ] as const) {
    const { code, err } = await apply(file);
    expect([code, err]).toEqual([1, expect.stringContaining(message)]);
  }
  expect(await stored()).toEqual([]);
});

it('refuses a secret of the environment before it changes anything, also in a dry run', async () => {
  const file = [
    { key: 'acme', url: to.url },
    { key: 'beta', url: to.url, secret_env: 'BETA_SECRET' },
  ];
  for (const options of [[], ['--dry-run']]) {
    const [url, args, , input] = command(file, options);
    const { code, err } = await runPosthorn(url, args, { BETA_SECRET: 'ends-with-a-line-break\n' }, input);
    expect([code, err]).toEqual([1, expect.stringMatching(/^BETA_SECRET, the secret_env of beta, .*\.\n$/)]);
    expect(err).not.toContain('line-break');
  }
  expect(await stored()).toEqual([]);
});

it('takes a subscription for deleted that another run has deleted meanwhile', async () => {
  await apply([
    { key: 'acme', url: `${to.url}/acme` },
    { key: 'beta', url: `${to.url}/beta` },
  ]);
  const [, { id }] = await stored();
  // The validation is made before the deletions.
  to.answerWith(async (_request, response) => {
    await on.operate('DELETE', `/v1/subscriptions/${id}`);
    response.end();
  });
  const { code, out } = await apply([{ key: 'acme', url: `${to.url}/acme` }], '--prune', '--validate', '--yes');
  expect([code, out]).toEqual([0, expect.stringMatching(/delete +beta/)]);
});

it('takes a file on its standard input that comes in many parts, and the mark with which Windows begins one', async () => {
  const file = `\ufeff${'# a comment\n'.repeat(100_000)}subscriptions: [{key: acme, url: '${to.url}'}]\n`;
  expect(await apply(file, '--dry-run')).toMatchObject({
    code: 2,
    err: '',
    out: expect.stringMatching(/^create +acme/m),
  });
});

it('refuses a file that is not UTF-8, whose characters would be replaced', async () => {
  const file = Buffer.from(`subscriptions: [{key: acme, url: '${to.url}', description: Löwe}]`, 'latin1');
  expect(await apply(file)).toEqual({ code: 1, out: '', err: 'The standard input is not UTF-8.\n' });
});

it('refuses a subscription that the file names by its key and by its id', async () => {
  await apply([{ key: 'acme', url: to.url }]);
  const [{ id }] = await stored();
  const twice = await apply([
    { key: 'acme', url: to.url },
    { id, url: `${to.url}/other` },
  ]);
  expect(twice).toMatchObject({ code: 1, err: expect.stringContaining(`${id} is also in the file as acme.`) });
  expect(await stored()).toMatchObject([{ url: to.url }]);
});

it('shows the secret of a new one whose validation is refused', async () => {
  // The validation finds another url than the one that it examined.
  to.answerWith(async (_request, response) => {
    const [{ id }] = await stored();
    await on.operate('PATCH', `/v1/subscriptions/${id}`, { url: `${to.url}/moved` });
    response.end();
  });
  const { code, out, err } = await apply([{ key: 'acme', url: to.url }], '--validate');
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/\nEvery change was made; the next run with --validate validates the rest\.\n$/),
  ]);
  expect(out).toMatch(/whsec_/);
});

it('validates with --validate also what no run before has validated', async () => {
  const file = [{ key: 'acme', url: to.url }];
  to.answerWith((_request, response) => response.destroy());
  expect((await apply(file, '--validate')).out).toMatch(/create +acme .* awaiting_validation /);
  expect((await apply(file)).out).toBe('Nothing to change.\n');
  to.answerWith(200);
  expect((await apply(file, '--validate')).out).toMatch(/validate +acme .* active /);
  expect((await apply(file, '--validate')).out).toBe('Nothing to change.\n');
});

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'prints at %s the secrets of the subscriptions that it has created',
  async (signal) => {
    const file = [
      { key: 'first', url: `${to.url}/first` },
      { key: 'second', url: `${to.url}/second` },
    ];
    const run = ownPosthorn(...command(file, ['--validate']));
    to.answerWith(async (_request, response) => {
      run.child.kill(signal);
      await eventually('it to say so', () => run.ran.err !== '');
      response.end();
    });
    const { code, out, err } = await run.ended;
    expect([code, err]).toEqual([1, expect.stringContaining('1 of 2 changes made; the next run makes the rest.')]);
    expect(out).toMatch(/create +first.*whsec_/);
    expect(await stored()).toMatchObject([{ key: 'first', status: 'active' }]);
  },
);

it('prints each change when it is made, so that even one that is killed has printed the secrets before', async () => {
  const file = ['first', 'second'].map((key) => ({ key, url: `${to.url}/${key}` }));
  const run = ownPosthorn(...command(file, ['--validate']));
  to.answerWith(async ({ path }, response) => {
    if (path.endsWith('/second')) {
      await eventually('the secret of the first', () => run.ran.out.includes('whsec_'));
      run.child.kill('SIGKILL');
    }
    response.end();
  });
  const { code, out } = await run.ended;
  expect([code, out]).toEqual([null, expect.stringMatching(/^change +key +id .*\ncreate +first .* active +whsec_/)]);
});

it('ends when its output is closed, before it makes a secret that nobody sees', async () => {
  const file = ['first', 'second'].map((key) => ({ key, url: `${to.url}/${key}` }));
  const run = ownPosthorn(...command(file, []));
  run.child.stdout.destroy();
  const { code, err } = await run.ended;
  expect([code, err]).toEqual([1, expect.stringMatching(/^Cannot write the output: .*1 of 2 changes made;/)]);
  expect(await stored()).toMatchObject([{ key: 'first' }]);
});

it('prints JSON also where it ends early', async () => {
  const file = [
    { key: 'good', url: `${to.url}/good` },
    { key: 'bad', url: 'http://10.0.0.1/' },
  ];
  const { code, out } = await apply(file, '--json');
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({ data: [{ change: 'create', key: 'good', secret: expect.any(String) }] });
});

describe('a second signal', () => {
  const file = () => ['first', 'second'].map((key) => ({ key, url: `${to.url}/${key}` }));

  it('is ignored if it follows at once, as the one that npm sends', async () => {
    const [url, args, env, input] = command(file(), ['--validate']);
    // For the command line, no time passes.
    const run = ownPosthorn(
      url,
      args,
      { ...env, NODE_OPTIONS: '--import=data:text/javascript,performance.now=()=>0' },
      input,
    );
    to.answerWith(async (_request, response) => {
      run.child.kill('SIGINT');
      await eventually('it to say so', () => run.ran.err !== '');
      run.child.kill('SIGINT');
      response.end();
    });
    const { code, out, err } = await run.ended;
    expect([code, err]).toEqual([1, expect.stringMatching(/^Ends after .*\nInterrupted\.\n1 of 2 changes made/)]);
    expect(out).toMatch(/create +first.*active.*whsec_/);
  });

  it('ends it at once, with the secrets of what it has created', async () => {
    const run = ownPosthorn(...command(file(), ['--validate']));
    to.answerWith(async () => {
      await eventually('its end', () => !run.child.kill('SIGINT'));
    });
    const { code, out, err } = await run.ended;
    expect([code, err]).toEqual([1, expect.stringMatching(/may have been made\.\n1 of 2 changes made/)]);
    expect(out).toMatch(/create +first.*whsec_/);
  });
});

it('makes in the next run what a failed run has left out', async () => {
  const [good, bad] = [
    { key: 'good', url: `${to.url}/good` },
    { key: 'bad', url: 'http://10.0.0.1/' },
  ];
  const stopped = await apply([good, bad]);
  expect(stopped).toMatchObject({ code: 1, err: expect.stringMatching(/^bad: .*refused.*1 of 2 changes made/s) });
  expect(stopped.out).toContain('whsec_');
  expect(await stored()).toMatchObject([{ key: 'good' }]);
  const next = await apply([good, { ...bad, url: `${to.url}/bad` }]);
  expect(next.out).toMatch(/create +bad/);
  expect(next.out).not.toMatch(/create +good/);
});

it('says how to get a secret if the answer to a creation is lost, but not after a refusal', async () => {
  to.answerWith(({ method }, response) => {
    if (method === 'GET') response.end('{"data":[],"next_cursor":null,"total":0}');
    else response.destroy();
  });
  const run = async (entry: object) => {
    const [, args, env, input] = command([entry], []);
    return (await runPosthorn(to.url, args, env, input)).err;
  };
  const entry = { key: 'acme', url: 'https://acme.example/' };
  const hint = 'its secret was not shown: see "posthorn list https://acme.example/", then "posthorn rotate".';
  expect(await run(entry)).toContain(hint);
  expect(await run({ ...entry, secret_env: 'ACME_SECRET' })).not.toContain('its secret');
  expect((await apply([{ key: 'bad', url: 'http://10.0.0.1/' }])).err).not.toContain('its secret');
});

it('a key belongs to one subscription', async () => {
  const create = () =>
    on.operate('POST', '/v1/subscriptions', { key: 'acme', url: to.url, event_types: 'all', environment: 'both' });
  const [first, second] = await Promise.all([create(), create()]);
  expect([first.status, second.status].sort()).toEqual([201, 409]);
  const [{ id }] = await stored();
  expect((await on.operate('PATCH', `/v1/subscriptions/${id}`, { key: 'other' })).status).toBe(422);
  expect((await on.operate('DELETE', `/v1/subscriptions/${id}`)).status).toBe(204);
});
