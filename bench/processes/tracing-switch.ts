/**
 * Loaded into a built app before it starts: turns its tracer on and off while it runs, so that both are measured in one
 * process. While it is off, a span costs a function call. Each message of the parent, true or false, is answered with
 * the CPU time used so far, in microseconds.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The part of a build that has the tracer (packages/runtime/src/tracing.ts imports it). */
const TRACER = /\/open-telemetry[-\w]*\.cjs$/;

/** What is added to it. */
const SWITCH = `;{
  const open = exports.openTracer;
  let isOn = false;
  process.on('message', (message) => {
    isOn = message === true;
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  });
  exports.openTracer = (options) => {
    const tracer = open(options);
    return {
      startSpan: (parent) => (isOn ? tracer.startSpan(parent) : undefined),
      shutdown: () => tracer.shutdown(),
    };
  };
}`;

registerHooks({
  load(url, context, next) {
    if (!TRACER.test(url)) return next(url, context);
    return { format: 'commonjs', shortCircuit: true, source: readFileSync(fileURLToPath(url), 'utf8') + SWITCH };
  },
});
