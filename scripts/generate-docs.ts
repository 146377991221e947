/**
 * `npm run generate-docs`: writes the files that follow from the schemas: docs/settings.md, docs/wire, two of the Helm
 * chart. Tests fail if they are stale.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHART, chartFiles } from './chart-files.ts';
import { root } from './folder.ts';
import { settingsDocument } from './settings-document.ts';
import { wireFiles } from './wire-files.ts';

writeFileSync(join(root, 'docs/settings.md'), settingsDocument());
for (const [file, text] of Object.entries(wireFiles())) writeFileSync(join(root, 'docs/wire', file), text);
for (const [file, text] of Object.entries(chartFiles())) writeFileSync(join(CHART, file), text);
