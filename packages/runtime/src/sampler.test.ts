/** That the samplers decide as those of the SDK do. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import { createSampler } from './sampler.ts';

const on = new AlwaysOnSampler();
const off = new AlwaysOffSampler();
const third = new TraceIdRatioBasedSampler(0.3);

const traceIds = Array.from({ length: 200 }, (_, i) => createHash('md5').update(String(i)).digest('hex'));
const parentWith = (flags: number) => ({ traceId: '', spanId: 'b7ad6b7169203331', flags });

describe('the sampler', () => {
  it.each([
    ['always_on', on],
    ['always_off', off],
    ['traceidratio', third],
    ['parentbased_always_on', new ParentBasedSampler({ root: on })],
    ['parentbased_always_off', new ParentBasedSampler({ root: off })],
    ['parentbased_traceidratio', new ParentBasedSampler({ root: third })],
  ] as const)('%s decides as the one of the SDK does', (name, sdk) => {
    const isSampled = createSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: '0.3' });
    for (const traceId of traceIds) {
      for (const parent of [undefined, parentWith(0), parentWith(1), parentWith(2), parentWith(3)]) {
        const { spanId = '', flags = 0 } = parent ?? {};
        const remote = { traceId, spanId, traceFlags: flags, isRemote: true };
        const context = parent ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
        const { decision } = sdk.shouldSample(context, traceId, 'publish', SpanKind.PRODUCER, {}, []);
        expect(isSampled({ traceId }, parent && { ...parent, traceId })).toBe(
          decision === SamplingDecision.RECORD_AND_SAMPLED,
        );
      }
    }
  });

  it('takes about the share of the traces that the ratio says', () => {
    const isSampled = createSampler({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.3' });
    const share = traceIds.filter((traceId) => isSampled({ traceId }, undefined)).length / traceIds.length;
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.4);
  });
});
