/** The span of an attempt: an HTTP request to a receiver, and the sending of a message, in the terms of OpenTelemetry's conventions. */
import { type Attempt, type DeliveryJob, eventIdOf, type TraceContext } from '@posthorn/core';
import type { Span, Tracing } from '@posthorn/runtime';
import type { SendResult } from '@posthorn/sender';
import type { Begun } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

type BegunAttempt = Extract<Begun, { kind: 'attempt' }>;

/** Parsing a URL costs more than the rest of a span. */
const shown = new LRUCache<string, { url: string; address: string; port: number | undefined }>({
  max: 10_000,
  memoMethod(text) {
    const url = URL.parse(text);
    if (!url) return { url: '', address: '', port: undefined };
    const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
    // Without what may be a secret: user, password, query.
    return { url: `${url.origin}${url.pathname}`, address: url.hostname, port };
  },
});

/** Starts the span of an attempt within the trace of its event; undefined if it has none, is not sampled, or tracing is off. */
export function startAttemptSpan(
  tracing: Tracing | undefined,
  trace: TraceContext | undefined,
  { eventType }: BegunAttempt,
): Span | undefined {
  return tracing && trace && tracing.startSpan('client', `deliver ${eventType}`, trace);
}

/** Ends the span. `endedAt`: when the result was known, from `performance.now()`. `error`: of the attempt, or why it is not counted. */
export function endAttemptSpan(
  span: Span,
  job: DeliveryJob,
  begun: BegunAttempt,
  result: SendResult,
  error: Attempt['error'] | 'aborted' | 'outage',
  endedAt?: number,
): void {
  const { url, address, port } = shown.memo(begun.url);
  const statusCode = result.kind === 'responded' ? result.statusCode : undefined;
  span.end({
    attributes: {
      'messaging.system': 'posthorn',
      'messaging.operation.name': 'deliver',
      'messaging.operation.type': 'send',
      'messaging.destination.name': begun.eventType,
      'messaging.message.id': eventIdOf(begun.event),
      'http.request.method': 'POST',
      'url.full': url,
      'server.address': address,
      'server.port': port,
      'http.response.status_code': statusCode,
      'http.request.resend_count': begun.attemptNumber > 1 ? begun.attemptNumber - 1 : undefined,
      'network.peer.address': result.kind === 'aborted' ? undefined : (result.ip ?? undefined),
      'posthorn.environment': begun.environment,
      'posthorn.subscription.id': begun.subscriptionId,
      'posthorn.delivery.id': job.deliveryId,
      'posthorn.replay': begun.isReplay || undefined,
    },
    // As the HTTP conventions have it, the error of a response is its status.
    error: error === null ? undefined : error === 'status' ? String(statusCode) : error,
    endedAt,
  });
}
