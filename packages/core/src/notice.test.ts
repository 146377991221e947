/** The table of docs/notices.md has every type of notice. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { NOTICE_TYPES } from './notice.ts';

it('docs/notices.md lists each type of notice', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/notices.md'), 'utf8');
  const rows = Array.from(text.matchAll(/^\| `([\w.]+)` /gm), ([, type]) => type);
  expect(rows.sort()).toEqual([...NOTICE_TYPES].sort());
});
