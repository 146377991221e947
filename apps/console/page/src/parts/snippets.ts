/**
 * Code that verifies a delivery, for receivers to copy: the files of packages/receiver/snippets, which
 * tests/snippets.test.ts runs.
 */
import csharp from '../../../../../packages/receiver/snippets/Verify.cs?raw';
import java from '../../../../../packages/receiver/snippets/Verify.java?raw';
import go from '../../../../../packages/receiver/snippets/verify.go?raw';
import node from '../../../../../packages/receiver/snippets/verify.mjs?raw';
import php from '../../../../../packages/receiver/snippets/verify.php?raw';
import python from '../../../../../packages/receiver/snippets/verify.py?raw';
import ruby from '../../../../../packages/receiver/snippets/verify.rb?raw';

export const SNIPPETS: [language: string, code: string][] = [
  ['Node.js', node],
  ['Python', python],
  ['Go', go],
  ['Java', java],
  ['PHP', php],
  ['Ruby', ruby],
  ['C#', csharp],
];
