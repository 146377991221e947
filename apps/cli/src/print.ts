/** The output of the command line: tables and single items for people, JSON for programs. */
import Table from 'cli-table3';

export interface Printer {
  /** Prints a table with these columns, or `none` if there are no items. */
  list<T>(items: T[], columns: Record<string, (item: T) => unknown>, none: string): void;
  /** Prints the fields of an item. For people, prints those of `summary` if there is one. */
  item(item: object, summary?: object): void;
  /** Prints a line for people. */
  say(line: string): void;
}

/** No borders, and two spaces between columns. */
const BORDERS =
  'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right left left-mid mid mid-mid right right-mid';
const BORDERLESS = { ...Object.fromEntries(BORDERS.split(' ').map((name) => [name, ''])), middle: '  ' };

/** Returns a printer to stdout. `isJson` is called when something is printed: only then are the global options known. */
export function createPrinter(isJson: () => boolean): Printer {
  const line = (text: string) => void process.stdout.write(`${text}\n`);
  return {
    list(items, columns, none) {
      if (isJson()) line(JSON.stringify({ data: items }, null, 2));
      else if (items.length === 0) line(none);
      else {
        const style = { head: [], border: [], 'padding-left': 0, 'padding-right': 0 };
        const table = new Table({ head: Object.keys(columns), chars: BORDERLESS, style });
        for (const item of items) table.push(Object.values(columns).map((column) => show(column(item))));
        line(table.toString());
      }
    },
    item(item, summary = item) {
      if (isJson()) {
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
      if (!isJson()) line(text);
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
