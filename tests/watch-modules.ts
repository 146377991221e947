/** Loaded into a process before its app: says on stdout which modules are loaded, imported or required. */
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    process.stdout.write(`{"msg":"module.loaded","url":"${url}"}\n`);
    return next(url, context);
  },
});
