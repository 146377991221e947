/**
 * Puts line breaks between the statements of code that has none. So an error's stack names a useful line, and for an
 * uncaught error Node prints a short one. Not every statement gets its own line, because V8 keeps 8 bytes for each line
 * of a file once it has printed a stack.
 */
import { parseAst } from 'rolldown/parseAst';

/** The first statement after this many characters begins a new line. */
const LINE_LENGTH = 120;

/** Returns the code of a script with line breaks before some of its statements. */
export function breakLines(code: string): string {
  const starts = new Set<number>();
  collect(parseAst(code, { sourceType: 'script' }), starts);
  const parts: string[] = [];
  let done = 0;
  for (const start of [...starts].sort((a, b) => a - b)) {
    if (start - done < LINE_LENGTH || code.slice(start - LINE_LENGTH, start).includes('\n')) continue;
    parts.push(code.slice(done, start));
    done = start;
  }
  return [...parts, code.slice(done)].join('\n');
}

/** Adds where the statements and methods begin, anywhere in the tree: a line may end before each of them. */
function collect(tree: unknown, starts: Set<number>): void {
  if (typeof tree !== 'object' || tree === null) return;
  if ('type' in tree && 'start' in tree && /(Statement|Declaration|^MethodDefinition)$/.test(String(tree.type)))
    starts.add(Number(tree.start));
  for (const child of Object.values(tree)) collect(child, starts);
}
