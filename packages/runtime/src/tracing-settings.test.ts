/** When tracing is on, and that its settings are checked only then. */
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createLogger } from './logger.ts';
import { loadSettings } from './settings.ts';
import { createTracing } from './tracing.ts';
import { tracingSettings, withoutUnusedTracing } from './tracing-settings.ts';

/** Whether tracing is on in this environment, and what was logged. */
function tracingIn(env: Record<string, string>) {
  const lines: string[] = [];
  const logger = createLogger({ app: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  const registry = new Registry();
  const settings = loadSettings(z.object(tracingSettings()), withoutUnusedTracing(env));
  return { isOn: createTracing({ app: 'test', settings, logger, registry }) !== undefined, lines };
}

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const bad = {
  OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
  OTEL_EXPORTER_OTLP_HEADERS_FILE: '/no/such/file',
  OTEL_TRACES_SAMPLER_ARG: '2',
};

describe('tracing', () => {
  it.each([
    ['disabled', { ...endpoint, OTEL_SDK_DISABLED: ' TRUE ' }],
    ['without an exporter', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }],
    ['without an endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
  ])('is off where it is %s, and its other settings may be bad', (_, env) => {
    expect(tracingIn({ ...env, ...bad })).toEqual({ isOn: false, lines: [] });
  });

  it.each([
    ['an endpoint', endpoint],
    ['an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }],
    ['an exporter', { OTEL_TRACES_EXPORTER: 'console' }],
    ['an endpoint, and is not disabled', { ...endpoint, OTEL_SDK_DISABLED: 'False' }],
  ])('is on where it has %s, and its settings must be good', (_, env) => {
    expect(tracingIn(env)).toEqual({ isOn: true, lines: [] });
    for (const name of Object.keys(bad)) expect(() => tracingIn({ ...env, ...bad })).toThrow(name);
  });

  it('is on if it is disabled with anything but true, as the specification says, and the log names that', () => {
    const { isOn, lines } = tracingIn({ ...endpoint, OTEL_SDK_DISABLED: '1' });
    expect(isOn).toBe(true);
    expect(lines).toEqual([expect.stringContaining('OTEL_SDK_DISABLED is neither true nor false')]);
  });
});
