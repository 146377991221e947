/** JSON as the formatter of this repository writes it, so that a generated file passes lint. */
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { root } from './folder.ts';

const BIOME = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome');

export function jsonText(content: unknown): string {
  const format = [BIOME, 'format', '--stdin-file-path=generated.json'];
  return execFileSync(process.execPath, format, {
    cwd: root,
    input: JSON.stringify(content, null, 2),
    encoding: 'utf8',
  });
}
