/** The table of duties in docs/architecture.md is that of the code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { DutyContext } from './duty.ts';
import { createDuties } from './maintenance.ts';

const text = readFileSync(join(import.meta.dirname, '../../../../docs/architecture.md'), 'utf8');
const section = text.slice(text.indexOf('\n## Maintenance\n'), text.indexOf('\n## Operators\n'));
const rows = Array.from(section.matchAll(/^\| `(\w+)` +\| ([\d.]+) s +\|/gm), ([, name, seconds]) => ({
  name,
  everyMs: Number(seconds) * 1_000,
}));
const duties = createDuties({ store: {} } as DutyContext);

it('docs/architecture.md lists each duty with its interval, in the order of the code', () => {
  expect(rows).toEqual(duties.map(({ name, everyMs }) => ({ name, everyMs })));
});

it('docs/architecture.md names the duty from which on they run everywhere', () => {
  const [, first] = /The duties above `(\w+)` run only/.exec(section) ?? [];
  const at = duties.findIndex(({ name }) => name === first);
  expect(duties.map(({ onlyWithWork = false }) => onlyWithWork)).toEqual(duties.map((_, i) => i < at));
});
