/** Loaded into a process before its app: says on stdout which modules of OpenTelemetry are loaded, imported or required. */
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    if (url.includes('@opentelemetry')) process.stdout.write(`{"msg":"module.loaded","url":"${url}"}\n`);
    return next(url, context);
  },
});
