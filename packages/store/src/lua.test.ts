/** Lints the Lua: what luaparse understands is valid, every name is declared, and nothing is left over. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { type Chunk, type Identifier, parse } from 'luaparse';
import { CONSTANTS } from './constants.ts';
import { composeScript } from './script.ts';
import { scripts } from './scripts.ts';

const folder = `${import.meta.dirname}/lua`;
const files = globSync('**/*.lua', { cwd: folder });
const sources = new Map(files.map((file) => [file, readFileSync(`${folder}/${file}`, 'utf8')]));
const allSources = [...sources.values()].join('\n');
/** The words of a text that are not in its comments. */
const wordsOf = (lua = '') => new Set(lua.replace(/--.*/g, '').match(/\w+/g));
/** What Redis gives to a script and the scripts use. */
const REDIS_GLOBALS = [
  'ARGV',
  'KEYS',
  'cjson',
  'error',
  'ipairs',
  'math',
  'pcall',
  'redis',
  'string',
  'table',
  'tonumber',
  'tostring',
  'type',
  'unpack',
];

function globalsOf(lua: string): string[] {
  const { globals = [] } = parse(lua, { luaVersion: '5.1', scope: true }) as Chunk & { globals?: Identifier[] };
  return globals.map(({ name }) => name);
}

describe.each(Object.entries(scripts))('script %s', (name, script) => {
  it('is valid Lua 5.1 and uses no undeclared name', () => {
    const unknown = globalsOf(composeScript(name, script)).filter((global) => !REDIS_GLOBALS.includes(global));
    expect(unknown).toEqual([]);
  });
  it('uses each of its arguments', () => {
    const file = `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`;
    const words = wordsOf(sources.get(file));
    const { single, rests } = script;
    const names = [
      ...single.map(({ name: arg }) => arg),
      ...rests.flatMap(({ name: rest, group }) => [rest, ...group]),
    ];
    expect(names.filter((arg) => !words.has(arg))).toEqual([]);
  });
});

it('an undeclared name is noticed', () => {
  expect(globalsOf('local a = b')).toEqual(['b']);
});

it.each(files)('%s begins with its job, belongs to a script, and reads no argument by number', (file) => {
  expect(sources.get(file)).toMatch(/^-- /);
  const [, part, name] = /^(lib\/)?(.+)\.lua$/.exec(file) ?? [];
  const camelCase = name?.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  if (part === undefined) expect(Object.keys(scripts)).toContain(camelCase);
  else expect(allSources).toContain(`--@include ${name}\n`);
  expect(sources.get(file)).not.toMatch(/\b(ARGV|KEYS)\b/);
});

/** The names that a part declares for those that include it. */
function declaredBy(part: string): string[] {
  const lists = sources.get(`lib/${part}.lua`)?.matchAll(/^local (?:function )?(\w+(?:, \w+)*)/gm) ?? [];
  return Array.from(lists, ([, names = '']) => names.split(', ')).flat();
}

it.each(files)('%s includes the parts that it uses, and no other', (file) => {
  const code = sources.get(file)?.replace(/--.*/g, '') ?? '';
  const own = new Set(code.match(/(?<=local function )\w+/g));
  const calls = new Set(code.match(/\b\w+(?=\()/g));
  const words = new Set(code.match(/\w+/g));
  for (const part of files.flatMap((other) => /^lib\/(.+)\.lua$/.exec(other)?.[1] ?? [])) {
    const names = declaredBy(part).filter((name) => !own.has(name));
    const isIncluded = sources.get(file)?.includes(`--@include ${part}\n`) ?? false;
    if (isIncluded) expect([part, names.some((name) => words.has(name))]).toEqual([part, true]);
    else expect(names.filter((name) => calls.has(name))).toEqual([]);
  }
});

it.each(files)('%s reads sorted sets from a score or a rank on: Redis walks to an offset entry by entry', (file) => {
  expect(sources.get(file)).not.toMatch(/'LIMIT', (?!0\b)/);
});

it('each constant is used', () => {
  const words = wordsOf(allSources);
  expect(Object.keys(CONSTANTS).filter((name) => !words.has(name))).toEqual([]);
});
