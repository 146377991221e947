/** Mutations of the Lua scripts, which are template literals in TypeScript. */
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
/** One token: a comment, a string, a number, an operator, `..`, or a word. */
const TOKEN = /--[^\n]*|\$\{[^}]*\}|'[^'\n]*'|\.\.\.?|\d+|[=~<>]=|[<>+\-*/]|[A-Za-z_]\w*/g;
/** A line that is nothing but one command or call. */
const STATEMENT = /^[ \t]*(?:(?:redis\.)?call|append|audit|notify|move|fail)\(.*\)[ \t]*$/gm;
const CONDITION = /\b(?:if|elseif) (.+?) then\b/g;

/** Every mutation of the Lua in a file of scripts. */
export function luaMutants(file: string, source: string): Mutant[] {
  const mutants: Mutant[] = [];
  for (const [literal, start] of templateLiterals(source)) {
    // Longer texts than the scripts are none: the template literals of this file hold Lua alone.
    const add = (kind: string, at: number, original: string, replacement: string) =>
      mutants.push({ file, kind, start: start + at, end: start + at + original.length, replacement });
    let previous = '';
    for (const { 0: token, index } of literal.matchAll(TOKEN)) {
      if (token.startsWith('--') || token.startsWith('${')) continue;
      // A minus in front of a number is its sign only after an operator or a bracket; here all are differences or -1.
      if (token in SWAPS) add('Operator', index, token, SWAPS[token]!);
      else if (token === 'not') add('Not', index, literal.slice(index, index + 4), '');
      else if (/^\d/.test(token)) add('Number', index, token, String(Number(token) + 1));
      else if (token.startsWith("'") && previous !== '..') add('String', index, token, token === "''" ? "'x'" : "''");
      previous = token;
    }
    for (const { 0: line, index } of literal.matchAll(STATEMENT)) add('Statement', index, line, '');
    for (const match of literal.matchAll(CONDITION)) {
      const at = match.index + match[0].indexOf(match[1]!);
      for (const value of ['true', 'false']) add('Condition', at, match[1]!, value);
    }
  }
  return mutants;
}

/** The texts between backticks, outside comments, and where they begin. */
function templateLiterals(source: string): [string, number][] {
  const found: [string, number][] = [];
  for (const match of source.matchAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'[^'\n]*'|`([^`]*)`/g)) {
    if (match[1] !== undefined) found.push([match[1], match.index + 1]);
  }
  return found;
}
