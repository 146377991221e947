/** Reads the environment variables that the image sets, for processes that should run as in the image. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../folder.ts';

/** The variables of the Dockerfile that say how memory is allocated. */
export function imageEnvironment(): Record<string, string> {
  const variables = readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^ENV (MALLOC_.+)$/gm);
  const pairs = Array.from(variables, ([, line = '']) => line.split(' ')).flat();
  return Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]));
}
