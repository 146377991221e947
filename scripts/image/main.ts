/**
 * `node scripts/image/main.ts <folder>`: writes the files of the image into an empty folder. The Dockerfile calls it.
 */
import { resolve } from 'node:path';
import { writeTree } from './tree.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error('Say into which folder.');
  process.exitCode = 1;
} else writeTree(resolve(folder));
