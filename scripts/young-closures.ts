/**
 * Rewrites `object.property = () => …` to `object.property = (0, () => …)`, which does the same. V8 allocates a
 * function that is assigned directly to a property in the old generation, since it assumes a long-lived method. ioredis
 * and others make such functions for each command. Each of them then keeps all objects that it can reach alive until
 * the next major garbage collection (docs/decisions, 58).
 */
import { parseAst } from 'rolldown/parseAst';

interface Node {
  type: string;
  start: number;
  end: number;
}

/** Returns the code of a script with all such assignments rewritten. */
export function youngClosures(code: string): string {
  const functions: Node[] = [];
  collect(parseAst(code, { sourceType: 'script' }), functions);
  const edits = functions.flatMap(({ start, end }) => [
    { at: start, text: '(0, ' },
    { at: end, text: ')' },
  ]);
  edits.sort((a, b) => a.at - b.at);
  const parts: string[] = [];
  let done = 0;
  for (const { at, text } of edits) {
    parts.push(code.slice(done, at), text);
    done = at;
  }
  return parts.join('') + code.slice(done);
}

/** Adds the functions that are assigned to properties, anywhere in the tree. */
function collect(tree: unknown, functions: Node[]): void {
  if (typeof tree !== 'object' || tree === null) return;
  if (isNode(tree) && tree.type === 'AssignmentExpression') {
    const { left, right } = tree as Node & { left: Node; right: Node };
    if (left.type === 'MemberExpression' && /^(ArrowFunction|Function)Expression$/.test(right.type))
      functions.push(right);
  }
  for (const child of Object.values(tree)) collect(child, functions);
}

function isNode(tree: object): tree is Node {
  return 'type' in tree && 'start' in tree;
}
