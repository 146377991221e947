/** `npm run wire-documents`: writes docs/wire: the AsyncAPI document and a JSON Schema for each event type. A test fails if they are stale. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folder.ts';
import { wireFiles } from './wire-files.ts';

for (const [file, text] of Object.entries(wireFiles())) writeFileSync(join(root, 'docs/wire', file), text);
