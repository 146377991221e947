/** `npm run settings-doc`: writes docs/settings.md from the schemas of the apps' settings. A test fails if it is stale. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folder.ts';
import { settingsDocument } from './settings-document.ts';

writeFileSync(join(root, 'docs/settings.md'), settingsDocument());
