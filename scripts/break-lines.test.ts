/** Line breaks in code that has none: where a statement begins, and nowhere else. */
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { breakLines } from './break-lines.ts';

const CODE =
  'const f=a=>{if(a)return[a,"y"].join();else throw Error("a longer message than one would write")};class A{static async b(){return 1}get c(){label:for(let i=0;i<3;i++)continue label;return 2}}';

describe('line breaks', () => {
  it('are put between statements and methods, so that no line is much longer than it has to be', () => {
    const code = Array.from({ length: 100 }, (_, i) => `function f${i}(){let a=${i};return a*a}`).join(';');
    const lines = breakLines(code).split('\n');
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) expect(line.length).toBeLessThan(200);
    expect(lines.join('')).toBe(code);
  });
  it('leave the code what it does', () => {
    const code = Array.from({ length: 20 }, () => `{${CODE};globalThis.results.push(f(1),new A().c)}`).join('');
    const broken = breakLines(code);
    expect(broken.split('\n').length).toBeGreaterThan(10);
    const resultsOf = (text: string) => {
      const context = { results: [] as unknown[] };
      runInNewContext(`globalThis.results=[];${text}`, context);
      return context.results;
    };
    expect(resultsOf(broken)).toEqual(resultsOf(code));
    expect(resultsOf(broken)).toHaveLength(40);
  });
  it('are not put into texts', () => {
    const text = `const a="${'x;'.repeat(200)}";const b=\`${'y;'.repeat(200)}\`;c()`;
    expect(breakLines(text).split('\n')).toEqual([
      `const a="${'x;'.repeat(200)}";`,
      `const b=\`${'y;'.repeat(200)}\`;`,
      'c()',
    ]);
  });
  it('are not added to code that has them', () => {
    const code = 'a();\nb();\n'.repeat(100);
    expect(breakLines(code)).toBe(code);
  });
});
