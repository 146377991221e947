/** docs/settings.md is what the schemas say, its defaults are those that apply, and each setting is used. */
import { globSync, readFileSync } from 'node:fs';
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

it.each(Object.keys(SETTINGS))('the code of %s reads each of its settings', (app) => {
  const sources = [`apps/${app}/src/**/*.ts`, 'packages/*/src/**/*.ts'];
  const files = globSync(sources, { cwd: root, exclude: ['**/*.test.ts'] });
  const code = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  // As a property, where an object is taken apart, or by its name in a call; not where it is declared.
  const isRead = (name: string) => new RegExp(`(\\.|[{,]\\s*|\\(')${name}\\b(?!: setting\\()`).test(code);
  expect(Object.keys(SETTINGS[app]!.shape).filter((name) => !isRead(name))).toEqual([]);
});
