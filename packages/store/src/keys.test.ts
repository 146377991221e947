/** Each key of keys.ts is in the table of docs/architecture.md, and is checked at the start if its name is fixed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { checkKeys } from './check-keys.ts';
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

/** The keys of the table, without their prefixes, as patterns. */
function documented(): RegExp[] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/architecture.md'), 'utf8');
  const table = text.slice(text.indexOf('| Key '), text.indexOf('\n\n', text.indexOf('| Key ')));
  const names = table
    .split('\n')
    .flatMap((row) =>
      Array.from(row.split(' | ')[0]!.matchAll(/`(?:P0?|<KEY_PREFIX>)(:[^`]+)`/g), ([, name]) => name!),
    );
  return names.map((name) => new RegExp(`^${name.replaceAll(/<[^>]+>|\*/g, '.+')}$`));
}

it('are in the table of docs/architecture.md, which has no others', () => {
  const patterns = documented();
  expect(examples.filter((key) => !patterns.some((pattern) => pattern.test(key)))).toEqual([]);
  // The rate limits' keys are spelled where they are used.
  expect(patterns.filter((pattern) => ![...examples, ':limit:x'].some((key) => pattern.test(key)))).toEqual([]);
});

it('are checked at the start if their names are fixed', async () => {
  const checked = new Set<string>();
  const type = async (key: string) => {
    checked.add(key);
    return 'none';
  };
  await checkKeys({ prefix: 'test', partitions: 1, redis: { type } } as unknown as Store);
  const fixed = makers.filter(([, make]) => make.length === 1);
  const unchecked = fixed.filter(([, make]) => !['test:{0}', 'test'].some((prefix) => checked.has(make(prefix))));
  expect(unchecked.map(([name]) => name)).toEqual([]);
});
