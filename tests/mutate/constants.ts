/**
 * Mutations that Stryker does not make: numbers, the bounds of a regular expression's repetitions, elements of a list.
 */
import { parse } from '@babel/parser';
import type { Mutant } from './mutant.ts';

interface Node {
  type: string;
  start: number;
  end: number;
  value?: unknown;
  elements?: (Node | null)[];
  [key: string]: unknown;
}

/** Returns every such mutation of a TypeScript file. */
export function constantMutants(file: string, source: string): Mutant[] {
  const mutants: Mutant[] = [];
  const add = (kind: string, start: number, end: number, replacement: string) =>
    mutants.push({ file, kind, start, end, replacement });
  visit(parse(source, { sourceType: 'module', plugins: ['typescript'] }).program, (node) => {
    if (node.type === 'NumericLiteral') add('Number', node.start, node.end, String((node.value as number) + 1));
    if (node.type === 'RegExpLiteral') {
      for (const repetition of source.slice(node.start, node.end).matchAll(/\{(\d+)(?:,(\d+))?\}/g)) {
        const bounds = repetition.slice(1).filter((bound) => bound !== undefined);
        for (const i of bounds.keys()) {
          const changed = bounds.map((bound, j) => (i === j ? Number(bound) + 1 : bound));
          const start = node.start + repetition.index;
          add('Repetition', start, start + repetition[0].length, `{${changed.join(',')}}`);
        }
      }
    }
    if (node.type === 'ArrayExpression') {
      const elements = (node.elements ?? []).filter((element) => element !== null);
      // The numbers in a list of numbers are mutated anyway; a pair is usually a tuple and not a list.
      if (elements.length < 2 || elements.some(({ type }) => type === 'NumericLiteral')) return;
      for (const [i, element] of elements.entries()) {
        const next = elements[i + 1];
        if (next) add('Element', element.start, next.start, '');
        else add('Element', elements[i - 1]!.end, element.end, '');
      }
    }
  });
  return mutants;
}

function visit(node: unknown, see: (node: Node) => void): void {
  if (Array.isArray(node)) for (const child of node) visit(child, see);
  else if (node !== null && typeof node === 'object' && 'type' in node) {
    see(node as Node);
    for (const child of Object.values(node)) visit(child, see);
  }
}
