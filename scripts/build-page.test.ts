/** The build of the operators' page in a checkout whose path it can't be built in. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { root } from './folder.ts';

it('is refused where Vite cannot read the path, with the reason', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'posthorn-c#-'));
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(root, file), join(checkout, file));
    for (const file of ['build-page.ts', 'build-folder.ts', 'folder.ts'])
      cpSync(join(root, 'scripts', file), join(checkout, 'scripts', file));
    mkdirSync(join(checkout, 'apps/console/page'), { recursive: true });
    const { href } = pathToFileURL(join(checkout, 'scripts/build-page.ts'));
    const script = `import { buildPage } from '${href}'; await buildPage(console.log).catch((e) => console.log(e.message))`;
    expect(spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })).toMatchObject({
      stdout: `Building the operators' page ...\nThe operators' page can't be built in ${checkout}: Vite can't read paths with # or ?. Move the checkout.\n`,
      stderr: '',
    });
  } finally {
    rmSync(checkout, { recursive: true, force: true });
  }
});
