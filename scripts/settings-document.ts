/** The text of docs/settings.md, from the schemas of the apps' settings. */
import { documentedSettings, mayBeInFile, SETTING_GROUPS, type SettingDoc } from '@posthorn/runtime';
import type { z } from 'zod';
import { consoleSettings } from '../apps/console/src/config.ts';
import { ingestSettings } from '../apps/ingest/src/config.ts';
import { workerSettings } from '../apps/worker/src/config.ts';

/** The schema of each app. */
export const SETTINGS: Record<string, z.ZodObject> = {
  ingest: ingestSettings,
  worker: workerSettings,
  console: consoleSettings,
};

interface Row extends SettingDoc {
  name: string;
  apps: string[];
}

/** The text of docs/settings.md. */
export function settingsDocument(): string {
  const rows = new Map<string, Row>();
  for (const [app, schema] of Object.entries(SETTINGS)) {
    for (const [name, doc] of documentedSettings(schema)) {
      const row = rows.get(name);
      if (row) row.apps.push(app);
      else rows.set(name, { ...doc, name, apps: [app] });
    }
  }
  const sections = SETTING_GROUPS.map((group) => {
    const members = [...rows.values()].filter((row) => row.group === group);
    return `## ${group}\n\n${table(members.map(cells))}`;
  });
  return `${INTRODUCTION}\n${sections.join('\n\n')}\n`;
}

const INTRODUCTION = `<!-- Written by \`npm run generate-docs\` from the schemas in apps/*/src/config.ts. Change those. -->

# Settings

For operators. Every process reads its settings from the environment once, at its start. If one is invalid or missing,
the process ends with exit code 1 and a message that names each such variable. Durations are a number and \`ms\`, \`s\`,
\`m\`, \`h\` or \`d\`. A blank variable counts as not set. A setting marked with * may be in a file instead:
\`<NAME>_FILE\` is its path, and a list may then have one entry per line.
`;

function cells({ name, apps, default: shown, means }: Row): string[] {
  const where = apps.length === Object.keys(SETTINGS).length ? 'all' : apps.join(', ');
  return [`\`${name}\`${mayBeInFile(name) ? ' *' : ''}`, shown, where, means];
}

/** A Markdown table with aligned columns, as the formatter wants it. */
function table(rows: string[][]): string {
  const all = [['Setting', 'Default', 'Apps', ''], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[], fill = ' ') =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0, fill)).join(' | ')} |`;
  const [head = [], ...body] = all;
  return [head, widths.map(() => ''), ...body].map((row, i) => line(row, i === 1 ? '-' : ' ')).join('\n');
}
