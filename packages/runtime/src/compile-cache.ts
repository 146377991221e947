/**
 * Node's compile cache: what is compiled at one start (types stripped, too) need not be compiled at the next. It works
 * only for what is loaded after it is enabled, so the apps import this file first and everything else dynamically, and
 * this file imports no package.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/**
 * The folder of the checkout that tests and `npm start` use too, or `NODE_COMPILE_CACHE`. A cache that can't be read or
 * written is left out.
 */
const FOLDER = join(import.meta.dirname, '../../../.posthorn/compile-cache');

/** Enables the cache, unless `NODE_DISABLE_COMPILE_CACHE` is set. */
export function cacheCompiledCode(): void {
  enableCompileCache(FOLDER);
}
