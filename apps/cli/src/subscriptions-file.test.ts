/** What a file of `posthorn apply` may contain, and how its mistakes are reported. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readSubscriptionsFile } from './subscriptions-file.ts';

let file: string;
beforeAll(() => {
  file = join(mkdtempSync(join(tmpdir(), 'posthorn-file-')), 'f.yaml');
});
afterAll(() => rmSync(join(file, '..'), { recursive: true }));

function read(text: string) {
  writeFileSync(file, text);
  return readSubscriptionsFile(file);
}
/** Resolves with the message about a file, whose own name is `f`. */
const mistakeOf = (text: string) =>
  read(text).then(
    () => 'none',
    ({ message }: Error) => message.replaceAll(file, 'f'),
  );

/** Millions of words, once they are written out. */
const aliasBomb = [
  'a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]',
  ...Array.from({ length: 6 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join()}]`),
  'subscriptions: *a6',
].join('\n');

it.each([
  [
    'subscriptions:\n  - key: acme\n    url: https://a.example\n    environment: moon\n',
    'f:4: subscriptions.0.environment: ',
  ],
  ['subscriptions:\n  - url: https://a.example\n', 'f:2: subscriptions.0: Expected either key or id'],
  ['subscriptions:\n  - key: a\n    url: https://a.example\n    colour: red\n', 'colour'],
  [
    'subscriptions:\n  - {key: a, url: https://a.example}\n  - {key: a, url: https://b.example}\n',
    'f:3: a occurs twice',
  ],
  ['subscriptions: [', 'at line 1'],
  ['subscriptions: []\n---\nsubscriptions: []\n', 'Put all subscriptions into one.'],
  ['subscriptions: !env []\n', 'Unresolved tag: !env at line 1'],
  ['subscriptions: []\n? [a, b]\n: c\n', 'Unrecognized key'],
  ['subs: []\n', 'f:1: Unrecognized key: "subs"'],
  ['', 'f: subscriptions: Expected a list, which may be empty: []'],
  ['subscriptions:\n', 'f:1: subscriptions: Expected a list, which may be empty: []'],
  ['- url: https://a.example\n', 'f:1: Expected "subscriptions:", and a list below it'],
  ['subscriptions: *missing\n', 'f: Unresolved alias'],
  [aliasBomb, 'f: Excessive alias count'],
])('the mistake in %j is named with its line', async (text, message) => {
  expect(await mistakeOf(text)).toContain(message);
});

it('no more than the first mistakes of a file are named', async () => {
  const lines = (await mistakeOf(`subscriptions: [${Array(100).fill('{}').join()}]`)).trimEnd().split('\n');
  expect(lines).toHaveLength(21);
  expect(lines.at(-1)).toBe('... and 80 more.');
});

it('a file has at most 10,000 subscriptions', async () => {
  const message = 'subscriptions: Expected at most 10,000 subscriptions';
  expect(await mistakeOf(`subscriptions: [${Array(10_001).fill('0').join()}]`)).toContain(message);
});

it('many subscriptions may share an anchor', async () => {
  const entry = (i: number) => `  - {key: k${i}, url: 'https://a.example/${i}', event_types: *types}\n`;
  const first = `subscriptions:\n  - {key: a, url: 'https://a.example', event_types: &types [session.approved]}\n`;
  const found = await read(first + Array.from({ length: 300 }, (_, i) => entry(i)).join(''));
  expect(found).toHaveLength(301);
  expect(found[300]).toMatchObject({ key: 'k299', event_types: ['session.approved'] });
});
