/** The output of the command line: tables and single items for people, JSON for programs. */
import { styleText } from 'node:util';
import stringWidth from 'string-width';

type Columns<T> = Record<string, (item: T) => unknown>;

interface Rows<T> {
  add(item: T): void;
  /** Completes the JSON. */
  end(): void;
}

export interface Printer {
  /** Whether it prints for programs: what only people see need not be read. */
  isJson(): boolean;
  /**
   * Prints a table with these columns, or `none` if there are no items. Says on stderr that there may be more than
   * `limit` of them.
   */
  list<T>(items: T[], columns: Columns<T>, none: string, limit?: number): void;
  /** Returns a list whose items are printed as they come. The columns of its table are as wide as `expected` needs. */
  rows<T>(expected: T[], columns: Columns<T>): Rows<T>;
  /** Prints the fields of an item. For people, prints those of `summary` if there is one. */
  item(item: object, summary?: object): void;
  /** Prints a line for people. */
  say(line: string): void;
}

/**
 * Returns a printer to stdout. `isJson` is called when something is printed: only then are the global options known.
 */
export function createPrinter(isJson: () => boolean): Printer {
  const line = (text: string) => void process.stdout.write(`${text}\n`);
  return {
    isJson,
    list(items, columns, none, limit) {
      // As JSON it is written item by item: the whole may be longer than a string can be.
      if (items.length === 0 && !isJson()) line(none);
      const rows = this.rows(items, columns);
      for (const item of items) rows.add(item);
      rows.end();
      if (limit !== undefined && items.length >= limit)
        process.stderr.write(`There may be more than ${limit === 1 ? 'this one' : `these ${limit}`}: see --limit.\n`);
    },
    rows(expected, columns) {
      let widths: number[] | undefined;
      /** The JSON around the next item. */
      let [start, separator, end] = ['{\n  "data": [', '', ']\n}\n'];
      return {
        add(item) {
          if (!isJson()) {
            if (widths === undefined) {
              const head = Object.keys(columns).map((name) => cell(styleText('bold', name)));
              widths = widthsOf([head, ...expected.map((one) => cellsOf(columns, one))]);
              line(aligned(head, widths));
            }
            line(aligned(cellsOf(columns, item), widths));
            return;
          }
          process.stdout.write(`${start}${separator}\n    ${jsonText(item).replaceAll('\n', '\n    ')}`);
          [start, separator, end] = ['', ',', '\n  ]\n}\n'];
        },
        end() {
          if (isJson()) process.stdout.write(start + end);
        },
      };
    },
    item(item, summary = item) {
      if (isJson()) {
        line(jsonText(item));
        return;
      }
      for (const text of fieldLines(summary)) line(text);
    },
    say(text) {
      if (!isJson()) line(harmless(text));
    },
  };
}

interface Cell {
  text: string;
  width: number;
}
const cell = (text: string): Cell => ({ text, width: stringWidth(text) });

function cellsOf<T>(columns: Columns<T>, item: T): Cell[] {
  return Object.entries(columns).map(([name, column]) => cell(colored(name, show(column(item)))));
}

function widthsOf(rows: Cell[][]): number[] {
  const widths: number[] = [];
  for (const row of rows) for (const [i, { width }] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, width);
  return widths;
}

/** Joins the cells of a row, with two spaces between columns. The last one is as long as it is. */
function aligned(row: Cell[], widths: number[]): string {
  const padded = row.map(({ text, width }, i) => text + ' '.repeat(Math.max(0, widths[i]! - width)));
  return padded.join('  ').trimEnd();
}

/** How deep objects in objects have lines of their own; what is deeper is JSON. */
const MAX_DEPTH = 2;

/** One line for each field. Those of an object in a field follow its name, indented. */
function fieldLines(item: object, depth = 0): string[] {
  const indent = '  '.repeat(depth);
  const fields = Object.entries(item).map(([name, value]): [string, unknown] => [oneLine(name), value]);
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.flatMap(([name, value]) => {
    if (isObjects(value)) return [`${indent}${name}:`, ...value.map((row) => `${indent}  ${fieldsInLine(row)}`)];
    if (isFilled(value) && depth < MAX_DEPTH) return [`${indent}${name}:`, ...fieldLines(value, depth + 1)];
    return [`${indent}${styleText('bold', name.padEnd(width))}  ${colored(name, show(value))}`];
  });
}

/** Whether a value is an object, but no list, with fields. */
function isFilled(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}

/** Whether a value is a list of objects, of which each has a line. */
function isObjects(value: unknown): value is object[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFilled);
}

function fieldsInLine(row: object): string {
  return Object.entries(row)
    .map(([name, value]) => `${oneLine(name)}=${colored(name, show(value))}`)
    .join(' ');
}

/** The colors of statuses and outcomes, by their first word. Others have none. */
const COLORS = new Map<string, Parameters<typeof styleText>[0]>([
  ...['active', 'succeeded', 'done', 'yes'].map((word) => [word, 'green'] as const),
  ...['failed', 'refused', 'paused', 'no'].map((word) => [word, 'red'] as const),
  ...['held', 'waiting_for_retry', 'awaiting_validation', 'running'].map((word) => [word, 'yellow'] as const),
]);
const COLORED = new Set(['status', 'outcome', 'correct', 'answer']);

/** Colors a status, unless stdout is not a terminal or NO_COLOR is set. */
function colored(name: string, text: string): string {
  const color = COLORED.has(name) ? COLORS.get(text.split(' ', 1)[0] ?? '') : undefined;
  return color === undefined ? text : styleText(color, text);
}

function show(value: unknown): string {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '-';
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return value.map((item) => oneLine(String(item))).join(', ');
  if (typeof value !== 'object') return oneLine(String(value));
  return isFilled(value) || Array.isArray(value) ? jsonText(value, 0) : '-';
}

/** Text without control characters: a newline could imitate another row or field. */
function oneLine(text: string): string {
  return harmless(text).replaceAll('\n', '\\n');
}

/**
 * Control characters except newlines, which would control the terminal, and characters that reverse text, also what
 * follows on the line.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
export const HARMFUL = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Returns text in which harmful characters are spelled out. */
export function harmless(text: string): string {
  return text.replaceAll(HARMFUL, escaped);
}

/** Returns JSON, indented by `indent`, in which harmful characters are escaped too that JSON allows as they are. */
export function jsonText(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replaceAll(HARMFUL, escaped);
}

/** A character as JSON spells it, such as `\u001b`. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
