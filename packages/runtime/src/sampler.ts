/**
 * The samplers of OpenTelemetry by their standard names. The SDK's own make several objects for each decision, and need
 * a context object to read the parent from.
 */
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { SAMPLED_FLAG, type TraceContext } from '@posthorn/core';
import type { TracingSettings } from './tracing-settings.ts';

/** `ids.traceId` is read only if it decides, because a getter makes it. */
type Sampler = (ids: { readonly traceId: string }, parent: TraceContext | undefined) => boolean;

/** Returns the function that says whether a span is sampled. */
export function createSampler({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: Pick<TracingSettings, 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'>): Sampler {
  const isParentBased = name.startsWith('parentbased_');
  const isAlways = name.endsWith('always_on');
  const ofRatio = name.endsWith('traceidratio') ? new TraceIdRatioBasedSampler(Number(ratio)) : undefined;
  return (ids, parent) => {
    if (isParentBased && parent) return (parent.flags & SAMPLED_FLAG) !== 0;
    if (!ofRatio) return isAlways;
    return ofRatio.shouldSample(ROOT_CONTEXT, ids.traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  };
}
