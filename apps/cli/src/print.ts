/** The output of the command line: tables and single items for people, JSON for programs. */
import Table from 'cli-table3';

export interface Printer {
  /** Prints a table with these columns, or `none` if there are no items. */
  list<T>(items: T[], columns: Record<string, (item: T) => unknown>, none: string): void;
  /** Prints the fields of an item. For people, prints those of `summary` if there is one. */
  one(item: object, summary?: object): void;
  /** Prints a line for people. */
  say(line: string): void;
}

const EDGES = ['top', 'bottom', 'left', 'right', 'mid'] as const;
const CORNERS = [
  'top-mid',
  'top-left',
  'top-right',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
  'left-mid',
  'mid-mid',
  'right-mid',
] as const;
/** No borders, and two spaces between columns. */
const BORDERLESS = { ...Object.fromEntries([...EDGES, ...CORNERS].map((name) => [name, ''])), middle: '  ' };

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
    one(item, summary = item) {
      if (json) {
        line(JSON.stringify(item, null, 2));
        return;
      }
      const fields: [name: string, value: unknown][] = Object.entries(summary);
      const width = Math.max(...fields.map(([name]) => name.length));
      for (const [name, value] of fields) {
        if (isObjects(value)) {
          line(`${name}:`);
          for (const row of value) line(`  ${fieldsInLine(row)}`);
        } else line(`${name.padEnd(width)}  ${show(value)}`);
      }
    },
    say(text) {
      if (!json) line(text);
    },
  };
}

function isObjects(value: unknown): value is object[] {
  return Array.isArray(value) && value.some((item) => typeof item === 'object');
}

function fieldsInLine(row: object): string {
  return Object.entries(row)
    .map(([name, value]) => `${name}=${show(value)}`)
    .join(' ');
}

function show(value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
