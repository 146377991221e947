/** `npm run build`: builds what the console serves. */
import { buildPage } from './build-page.ts';
import { endTreeOnSignals } from './process-tree.ts';

endTreeOnSignals();
try {
  await buildPage(console.log);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
