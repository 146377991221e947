/** docs/settings.md is what the schemas say, and the defaults that it shows are those that apply. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { documentedSettings } from '@posthorn/runtime';
import { root } from './folder.ts';
import { SETTINGS, settingsDocument } from './settings-document.ts';

it('docs/settings.md is up to date: npm run generate-docs', () => {
  expect(readFileSync(join(root, 'docs/settings.md'), 'utf8')).toBe(settingsDocument());
});

it.each(Object.keys(SETTINGS))('the defaults shown for %s are those of the schema', (app) => {
  const schema = SETTINGS[app]!;
  for (const [name, { default: shown }] of documentedSettings(schema)) {
    const setting = schema.shape[name]!;
    const withoutValue = setting.safeParse(undefined);
    const [, written] = new RegExp(`\`([^\`]+)\` ${app}`).exec(shown) ?? /^`([^`]+)`$/.exec(shown) ?? [];
    if (shown === 'required') expect([name, withoutValue.success]).toEqual([name, false]);
    else if (written === undefined) expect([name, withoutValue.data ?? []]).toEqual([name, []]);
    else expect([name, withoutValue.data]).toEqual([name, setting.parse(written)]);
  }
});
