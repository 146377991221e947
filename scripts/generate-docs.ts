/** `npm run generate-docs`: writes the documents that follow from the schemas, docs/settings.md and docs/wire. Tests fail if they are stale. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folder.ts';
import { settingsDocument } from './settings-document.ts';
import { wireFiles } from './wire-files.ts';

writeFileSync(join(root, 'docs/settings.md'), settingsDocument());
for (const [file, text] of Object.entries(wireFiles())) writeFileSync(join(root, 'docs/wire', file), text);
