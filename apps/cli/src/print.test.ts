/** What a publisher or receiver sent, as lines on the terminal of an operator. */
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createPrinter } from './print.ts';

let printed = '';
beforeEach(() => {
  printed = '';
  jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
});
afterEach(() => void jest.restoreAllMocks());

const print = createPrinter(() => false);
/** The lines of an item, without the bold of names. */
function linesOf(item: object): string[] {
  print.item(item);
  return stripVTControlCharacters(printed).trimEnd().split('\n');
}

it.each<[unknown[]]>([[[]], [[{ a: 1 }]], [['x', { a: [1, { b: 'c\nd' }], e: {}, f: [] }, null]]])(
  'a list for programs is JSON that is written item by item: %j',
  (items) => {
    createPrinter(() => true).list(items, {}, 'none');
    expect(printed).toBe(`${JSON.stringify({ data: items }, null, 2)}\n`);
    expect(process.stdout.write).toHaveBeenCalledTimes(items.length + 1);
  },
);

describe('an item', () => {
  it('has lists of values in a line, lists of objects in lines, and other lists as JSON', () => {
    const data = {
      plain: [1, 'a'],
      objects: [{ a: 1 }, { a: 2 }],
      mixed: ['a', { b: [1] }],
      nothing: [null],
      nested: [[1, 2]],
    };
    expect(linesOf({ data })).toEqual([
      'data:',
      '  plain    1, a',
      '  objects:',
      '    a=1',
      '    a=2',
      '  mixed    ["a",{"b":[1]}]',
      '  nothing  [null]',
      '  nested   [[1,2]]',
    ]);
  });
  it('has objects in objects in lines, and what is deeper as JSON', () => {
    const data = { metadata: { user: { id: 'u' } } };
    expect(linesOf({ data })).toEqual(['data:', '  metadata:', '    user  {"id":"u"}']);
  });
  it('has no line and no control character of its own making', () => {
    const text = 'x\nstatus  succeeded\u001b]0;';
    expect(linesOf({ [text]: text, list: [{ [text]: text }], texts: [text] })).toEqual([
      expect.stringMatching(/^x\\nstatus {2}succeeded\\u001b\]0; {2}x\\nstatus {2}succeeded\\u001b\]0;$/),
      'list:',
      '  x\\nstatus  succeeded\\u001b]0;=x\\nstatus  succeeded\\u001b]0;',
      expect.stringMatching(/^texts +x\\nstatus {2}succeeded\\u001b\]0;$/),
    ]);
  });
});

describe('a table', () => {
  const columns = { name: ([name]: string[]) => name, status: () => 'active', url: ([, url]: string[]) => url };
  it('has columns as wide as their longest text on a terminal, and no spaces at the end of a line', () => {
    print.list(
      [
        ['銀行', 'https://a.example/'],
        ['Åkerlund', null!],
      ],
      columns,
      'none',
    );
    expect(stripVTControlCharacters(printed).split('\n')).toEqual([
      'name      status  url',
      '銀行      active  https://a.example/',
      'Åkerlund  active  -',
      '',
    ]);
  });
  it('may have very many rows: each costs the same', () => {
    print.list(
      Array.from({ length: 100_000 }, (_, i) => [`row ${i}`, 'https://a.example/']),
      columns,
      'none',
    );
    expect(printed.split('\n')).toHaveLength(100_002);
  });
});

it('rows that come one by one have columns as wide as expected ones need', () => {
  const rows = print.rows([{ id: 'x'.repeat(6) }], { id: ({ id }) => id, status: () => 'active' });
  expect(printed).toBe('');
  rows.add({ id: 'a' });
  rows.add({ id: 'longer than expected' });
  rows.end();
  expect(stripVTControlCharacters(printed).split('\n')).toEqual([
    'id      status',
    'a       active',
    'longer than expected  active',
    '',
  ]);
});

it('nothing reverses the text after it', () => {
  expect(linesOf({ description: '\u202eevil', list: [['\u2067x']] })).toEqual([
    'description  \\u202eevil',
    'list         [["\\u2067x"]]',
  ]);
});

it('a long text in the last column makes no other row longer', () => {
  print.list(['x'.repeat(100), 'y'], { a: () => 1, text: (row) => row }, 'none');
  expect(printed.split('\n').map((line) => stripVTControlCharacters(line).trimEnd().length)).toEqual([7, 103, 4, 0]);
  expect(printed).not.toMatch(/ $/m);
});

it('a row of a list is one line', () => {
  print.list([{ session: 'a\nb' }], { session: (row) => row.session }, 'none');
  expect(printed).toContain('a\\nb');
});
