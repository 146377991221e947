/** `npm run build`: builds the apps and what the console serves; `scripts/build.ts apps`: only the apps. */
import { buildApps } from './build-apps.ts';
import { buildPage } from './build-page.ts';
import { endTreeOnSignals } from './process-tree.ts';

endTreeOnSignals();
try {
  await buildApps(console.log);
  if (process.argv[2] !== 'apps') await buildPage(console.log);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
