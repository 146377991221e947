/** Mutations of the Lua scripts. */
import type { Mutant } from './mutant.ts';

const SWAPS: Record<string, string> = {
  '==': '~=',
  '~=': '==',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  and: 'or',
  or: 'and',
};
/** One token: a comment, a string, a number, an operator, `..`, or a word. A word in capitals is a constant. */
const TOKEN = /--[^\n]*|'[^'\n]*'|\.\.\.?|\d+|[=~<>]=|[<>+\-*/]|[A-Za-z_]\w*/g;
/** A line that is only one command or call. */
const STATEMENT = /^[ \t]*(?:call|append|audit|notify|move|fail)\(.*\)[ \t]*$/gm;
const CONDITION = /\b(?:if|elseif) (.+?) then\b/g;
const COMMENT = /--[^\n]*/g;
const blank = (text: string) => ' '.repeat(text.length);

/** Returns every mutation of a Lua file. */
export function luaMutants(file: string, source: string): Mutant[] {
  const mutants: Mutant[] = [];
  const add = (kind: string, start: number, original: string, replacement: string) =>
    mutants.push({ file, kind, start, end: start + original.length, replacement });
  let previous = '';
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (token.startsWith('--')) continue;
    // A minus before a number is its sign only after an operator or a bracket; in these files all are differences or
    // -1.
    if (token in SWAPS) add('Operator', index, token, SWAPS[token]!);
    else if (token === 'not') add('Not', index, source.slice(index, index + 4), '');
    else if (/^\d/.test(token)) add('Number', index, token, String(Number(token) + 1));
    else if (token.startsWith("'") && previous !== '..') add('String', index, token, token === "''" ? "'x'" : "''");
    else if (/^[A-Z][A-Z_]+$/.test(token)) add('Constant', index, token, "''");
    previous = token;
  }
  for (const { 0: line, index } of source.matchAll(STATEMENT)) add('Statement', index, line, '');
  for (const match of source.replaceAll(COMMENT, blank).matchAll(CONDITION)) {
    const start = match.index + match[0].indexOf(match[1]!);
    for (const value of ['true', 'false']) add('Condition', start, match[1]!, value);
  }
  return mutants;
}
