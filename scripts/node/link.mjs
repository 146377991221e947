/**
 * Links the Node of the development packages to node_modules/.bin, where npm 10 leaves it out: that npm removes the
 * commands of the package for the other processor, and thereby the one of the same name. Plain JavaScript, because it
 * must also run on Node 20.
 */
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const program = `node-linux-${process.arch}/bin/node`;
const modules = new URL('../../node_modules/', import.meta.url);
const command = fileURLToPath(new URL('.bin/node', modules));

if (existsSync(new URL(program, modules)) && !existsSync(command)) {
  // A link that leads nowhere, for example to the package for another processor.
  rmSync(command, { force: true });
  symlinkSync(`../${program}`, command);
}
