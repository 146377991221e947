/** What the command line shows: tables, single things, and for programs JSON. */
import Table from 'cli-table3';
import type { Answer } from './client.ts';

export interface Printer {
  /** A list as a table of some of its fields. */
  list(items: Answer[], columns: Record<string, (item: Answer) => unknown>, none: string): void;
  /** One thing: all of its fields. */
  one(thing: Answer): void;
  /** Something to say; nothing where the output is for a program. */
  say(line: string): void;
}

const BORDERLESS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

export function createPrinter(options: { json: boolean; write: (text: string) => void }): Printer {
  const { json, write } = options;
  const line = (text: string) => write(`${text}\n`);
  return {
    list(items, columns, none) {
      if (json) line(JSON.stringify({ data: items }, null, 2));
      else if (items.length === 0) line(none);
      else {
        const table = new Table({
          head: Object.keys(columns),
          chars: BORDERLESS,
          style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
        });
        for (const item of items) table.push(Object.values(columns).map((column) => show(column(item))));
        line(table.toString());
      }
    },
    one(thing) {
      if (json) {
        line(JSON.stringify(thing, null, 2));
        return;
      }
      const width = Math.max(...Object.keys(thing).map((name) => name.length));
      for (const [name, value] of Object.entries(thing)) {
        if (Array.isArray(value) && value.some((item) => typeof item === 'object')) {
          line(`${name}:`);
          for (const item of value)
            line(
              `  ${Object.entries(item)
                .map(([field, of]) => `${field}=${show(of)}`)
                .join(' ')}`,
            );
        } else line(`${name.padEnd(width)}  ${show(value)}`);
      }
    },
    say(text) {
      if (!json) line(text);
    },
  };
}

function show(value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
