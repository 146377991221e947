/**
 * How a Lua script is declared, put together from its files, and given its arguments. The scripts themselves are
 * declared in scripts.ts.
 *
 * In a file of lua/:
 * - Each argument is a local with the name that its declaration gives it.
 * - `for subscriptionId, deliveryId in deliveries do` reads the groups of a rest argument, once; `deliveries()` reads
 *   the next one.
 * - `storedFormat` is the stored format to write (formats.ts), as a number; only files that name it are sent it.
 * - `call` is `redis.call`; `prefix` is the partition's prefix, the one declared key.
 * - A word in capitals is a constant of constants.ts. Its value is written in its place, so it costs nothing at run
 *   time.
 * - `--@include name` puts lua/lib/name.lua in its place, once. Comments have lines of their own.
 */
import { readFileSync } from 'node:fs';
import type { AuditEntry } from '@posthorn/core';
import { constantOf } from './constants.ts';

type Words<S> = S extends `${infer Head} ${infer Tail}` ? Head | Words<Tail> : S;
type NameOf<Word> = Word extends `${infer Name}:${string}` ? Name : Word extends `${infer Name}?` ? Name : Word;
type ValueOf<Word> = Word extends `${string}:number`
  ? number
  : Word extends `${string}:flag`
    ? boolean
    : Word extends `${string}:audit` | `${string}:audit?`
      ? AuditEntry | (Word extends `${string}?` ? undefined : never)
      : string | number | (Word extends `${string}?` ? undefined : never);
type Named<S> = { readonly [Word in Exclude<Words<S>, ''> as NameOf<Word> & string]: ValueOf<Word> };

type Groups<S> = S extends `...${infer Name}(${infer Group}) ${infer More}`
  ? { readonly [Rest in Name]: readonly Named<Group>[] } & Groups<More>
  : S extends `...${infer Name}(${infer Group})`
    ? { readonly [Rest in Name]: readonly Named<Group>[] }
    : never;

/** What a caller passes for a declaration. */
export type Values<S> = S extends `${infer Single}...${infer Rests}` ? Named<Single> & Groups<`...${Rests}`> : Named<S>;

export interface Script<S, T> {
  declaration: S;
  single: { name: string; kind: string }[];
  rests: { name: string; group: string[] }[];
  /** Turns what Lua returns into the script's result. */
  decode: (reply: unknown) => T;
}

/**
 * Declares a script. `declaration` names its arguments in the order in which they are sent, such as
 * `'id nowMs:number isLast:flag reason? entry:audit ...deliveries(subscriptionId deliveryId)'`:
 * - `id`: text, or a number that Lua only passes on
 * - `nowMs:number`: a number that Lua calculates with
 * - `isLast:flag`: true or false
 * - `reason?`: text, empty in Lua if the caller passes undefined
 * - `entry:audit`: an entry of the audit trail, sent as JSON
 * - `...deliveries(subscriptionId deliveryId)`: any number of groups of text. There may be several of these rest
 *   arguments, separated by a space. For each but the last, the number of groups is sent before them.
 */
export function script<S extends string, T>(declaration: S, decode: (reply: unknown) => T): Script<S, T> {
  const [single = '', ...rests] = declaration.split('...');
  const words = single.matchAll(/(\w+)(\S*)/g);
  return {
    declaration,
    single: Array.from(words, ([, name = '', kind = '']) => ({ name, kind })),
    rests: rests.map((rest) => {
      const [name = '', ...group] = rest.match(/\w+/g) ?? [];
      return { name, group };
    }),
    decode,
  };
}

type AnyScript = Pick<Script<string, unknown>, 'single' | 'rests'>;

/** The text of a script as Redis gets it. */
export function composeScript(name: string, script: AnyScript): string {
  const file = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const body = readLua(file, new Set()).replace(/'[^'\n]*'|\b[A-Z][A-Z_]+\b/g, (word) => constantOf(word) ?? word);
  return preambleOf(script, takesFormat(body)) + body;
}

/** Whether a script, or what it includes, names `storedFormat`: then that is its first argument. */
export function takesFormat(lua: string): boolean {
  return /\bstoredFormat\b/.test(lua);
}

function readLua(path: string, included: Set<string>): string {
  if (included.has(path)) return '';
  included.add(path);
  return readFileSync(new URL(`lua/${path}.lua`, import.meta.url), 'utf8')
    .replace(/^--@include (\S+)$/gm, (_, part: string) => readLua(`lib/${part}`, included))
    .replace(/^ *(--.*)?\n/gm, '');
}

/** Binds the names of the arguments. */
function preambleOf({ single, rests }: AnyScript, takesFormat: boolean): string {
  // A local table is faster to read than a global one.
  const lines = ['local call, prefix, argv = redis.call, KEYS[1], ARGV'];
  const first = takesFormat ? 2 : 1;
  if (takesFormat) lines.push('local storedFormat = tonumber(argv[1])');
  for (const [i, { name, kind }] of single.entries()) {
    const value = `argv[${i + first}]`;
    lines.push(
      `local ${name} = ${kind === ':number' ? `tonumber(${value})` : kind === ':flag' ? `${value} == '1'` : value}`,
    );
  }
  // Where the last group that was read ends. The groups of all follow the numbers of groups.
  let end = String(single.length + first + rests.length - 2);
  for (const [i, { name, group }] of rests.entries()) {
    const at = `${name}At`;
    const values = group.map((_, j) => `argv[${at} + ${j + 1 - group.length}]`).join(', ');
    lines.push(`local ${at} = ${end}`);
    const isLast = i === rests.length - 1;
    end = `${name}End`;
    if (!isLast) lines.push(`local ${end} = ${at} + argv[${single.length + first + i}] * ${group.length}`);
    const stop = isLast ? '' : `if ${at} == ${end} then return nil end `;
    lines.push(`local function ${name}() ${stop}${at} = ${at} + ${group.length} return ${values} end`);
  }
  return `${lines.join('\n')}\n`;
}

/** The arguments in the order and form in which they are sent. */
export function encodeArguments<S>({ single, rests }: Script<S, unknown>, values: Values<S>): (string | number)[] {
  const named = values as Record<string, unknown>;
  const encoded = single.map(({ name }) => encode(named[name]));
  const lists = rests.map(({ name }) => named[name] as Record<string, unknown>[]);
  for (const list of lists.slice(0, -1)) encoded.push(list.length);
  for (const [i, { group }] of rests.entries()) {
    for (const values of lists[i] ?? []) for (const name of group) encoded.push(encode(values[name]));
  }
  return encoded;
}

function encode(value: unknown): string | number {
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (typeof value === 'object') return JSON.stringify(value);
  return value === true ? '1' : '';
}
