/** Each key of keys.ts is in the table of docs/architecture.md, and is checked at the start if its name is fixed. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { checkKeys } from './check-keys.ts';
import { constantOf } from './constants.ts';
import * as keys from './keys.ts';
import type { Store } from './store.ts';

/** The key that only release 0.1.0 wrote. */
const OLD = 'openReplaysKey';

type MakesKey = (...parts: string[]) => string;
/** The functions that return a key, by name. */
const makers = Object.entries(keys).filter(([name]) => name.endsWith('Key') && name !== OLD) as [string, MakesKey][];

/** What the functions are called with whose arguments have a form; the others take any text. */
const FORMS: Record<string, string[][]> = {
  eventKey: [['x/s'], ['/x']],
  eventSucceededKey: [['x/s']],
  laneKey: keys.LANES.map((lane) => [lane, 'x']),
  laneIndexKey: keys.LANES.map((lane) => [lane]),
  leaseKey: [['maintenance'], ['notifier']],
  rankingKey: [
    ['failing', '1'],
    ['slow', '1'],
  ],
  searchKey: [['slice:bucket']],
  statsKey: [
    ['minute', '1'],
    ['hour', '1'],
  ],
  topicKey: [['sandbox:all']],
};
/** Examples of each key, without its prefix. */
const examples = makers.flatMap(([name, make]) =>
  (FORMS[name] ?? [['x', 'x', 'x']]).map((parts) => make('', ...parts)),
);

/**
 * A key of the table: its prefix (`P`, `P0` or `<KEY_PREFIX>`), how the rest begins and a pattern of it, its type as
 * Redis says it.
 */
interface Documented {
  prefix: string;
  begin: string;
  rest: RegExp;
  type: string;
}

/** The keys of the table. Where a row names fewer types than keys, the last one is that of the others. */
function documented(): Documented[] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/architecture.md'), 'utf8');
  const table = text.slice(text.indexOf('| Key '), text.indexOf('\n\n', text.indexOf('| Key ')));
  return table.split('\n').flatMap((row) => {
    const [names = '', words = ''] = row.slice(1).split(' | ');
    const types = words.split(',').map((word) => word.trim().replace(/s$/, '').replace('sorted set', 'zset'));
    return Array.from(names.matchAll(/`(P0?|<KEY_PREFIX>)(:[^`]+)`/g), ([, prefix, name], i) => ({
      prefix: prefix!,
      begin: name!.replace(/[<*].*/, ''),
      rest: new RegExp(`^${name!.replaceAll(/<[^>]+>|\*/g, '.+')}$`),
      type: types[i] ?? types.at(-1)!,
    }));
  });
}

it('are in the table of docs/architecture.md, which has no others', () => {
  const patterns = documented().map(({ rest }) => rest);
  expect(examples.filter((key) => !patterns.some((pattern) => pattern.test(key)))).toEqual([]);
  // The rate limits' keys are spelled where they are used.
  expect(patterns.filter((pattern) => ![...examples, ':limit:x'].some((key) => pattern.test(key)))).toEqual([]);
});

it('begin like one of a partition where a script names them: not as one of another prefix, or of more parts', () => {
  const begins = documented().flatMap(({ prefix, begin }) => (prefix === '<KEY_PREFIX>' ? [] : `prefix .. '${begin}'`));
  const known = [...begins, constantOf('KEY_OPEN_REPLAYS')];
  const isKnown = (word: string) => known.includes(constantOf(word));
  const files = globSync('lua/**/*.lua', { cwd: import.meta.dirname });
  const lua = files.map((file) => readFileSync(join(import.meta.dirname, file), 'utf8')).join('\n');
  const words = lua.replace(/--.*/g, '').match(/\bKEY_\w+/g) ?? [];
  expect(words.filter((word) => !isKnown(word))).toEqual([]);
  expect(['KEY_SESSION', 'KEY_STATS', 'KEY_LEASE'].filter(isKnown)).toEqual([]);
});

it('are checked at the start if their names are fixed, in the partitions and for the type that the table says', async () => {
  const prefixes: Record<string, string[]> = {
    P: ['test:{0}', 'test:{1}'],
    P0: ['test:{0}'],
    '<KEY_PREFIX>': ['test'],
  };
  const table = documented();
  const checked = new Set<string>();
  const type = async (key: string) => {
    checked.add(key);
    const found = table.find(({ prefix, rest }) =>
      prefixes[prefix]!.some((start) => key.startsWith(start) && rest.test(key.slice(start.length))),
    );
    // BullMQ's own have no types in the table.
    return found ? found.type || 'none' : 'key of another partition';
  };
  await checkKeys({ prefix: 'test', partitions: 2, redis: { type } } as unknown as Store);
  const fixed = makers.filter(([, make]) => make.length === 1).map(([, make]) => make(''));
  const expected = fixed.flatMap((name) =>
    prefixes[table.find(({ rest }) => rest.test(name))!.prefix]!.map((start) => start + name),
  );
  expect(expected.filter((key) => !checked.has(key))).toEqual([]);
});
