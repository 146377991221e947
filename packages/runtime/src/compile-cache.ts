/**
 * Enables Node's compile cache: a start reuses the code that an earlier one has stripped of types and compiled. It
 * works only for code that is loaded after this, so the apps and the command line import this file first and everything
 * else dynamically, and this file imports no package.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/**
 * The folder of the checkout that tests and `npm start` use too, or `NODE_COMPILE_CACHE`. Node does without a cache
 * that it can't read or write.
 */
const FOLDER = join(import.meta.dirname, '../../../.posthorn/compile-cache');

/** Enables the cache, unless `NODE_DISABLE_COMPILE_CACHE` is set. */
export function cacheCompiledCode(): void {
  enableCompileCache(FOLDER);
}
