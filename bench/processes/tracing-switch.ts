/**
 * Loaded into an app before it starts: turns its tracer on and off while it runs, so that both are measured in one process. While it is
 * off, a span costs a function call. Each message of the parent, true or false, is answered with the CPU time used so far, in microseconds.
 */
import { registerHooks } from 'node:module';

/** The module of the tracer, as `createTracing` imports it: a source or a part of a build. */
const TRACER = /^\.\/open-telemetry[-\w]*\.[jt]s$/;
const SWITCHED = '?switched';

/** A module in its place. */
const switched = (tracer: string) => `
  import { openTracer as open } from ${JSON.stringify(tracer)};
  let isOn = false;
  process.on('message', (message) => {
    isOn = message === true;
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  });
  export function openTracer(options) {
    const tracer = open(options);
    return {
      startSpan: (kind, name, parent) => (isOn ? tracer.startSpan(kind, name, parent) : undefined),
      shutdown: () => tracer.shutdown(),
    };
  }`;

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    return TRACER.test(specifier) ? { ...resolved, url: resolved.url + SWITCHED } : resolved;
  },
  load(url, context, next) {
    if (!url.endsWith(SWITCHED)) return next(url, context);
    return { format: 'module', shortCircuit: true, source: switched(url.slice(0, -SWITCHED.length)) };
  },
});
