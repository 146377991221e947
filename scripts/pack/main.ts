/** `npm run pack`: builds the packages that are published, and says how to publish them. */
import { relative } from 'node:path';
import { root } from '../folder.ts';
import { buildPackage, PUBLISHED } from './build-package.ts';

for (const name of PUBLISHED) console.log(`npm publish ${relative(root, buildPackage(name))}`);
