/** The metric of the publisher API: how long calls took, by status. */
import type { RequestHandler } from 'express';
import { Histogram, type Registry } from 'prom-client';

/** Matched here, because express takes longer to match the path of a middleware and to cut it off. */
const PUBLISHER_API = /^\/v1(?:[/?]|$)/i;

/** Measures each call from its headers to the end of the response. */
export function measureRequests(registry: Registry): RequestHandler {
  const duration = new Histogram({
    name: 'posthorn_ingest_request_duration_seconds',
    help: 'Calls of the publisher API, by status of the response',
    labelNames: ['status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  // Finding the values of a label takes longer than counting one.
  const ofStatus = new Map<number, ReturnType<typeof duration.labels>>();
  const observe = (status: number, seconds: number) => {
    const known = ofStatus.get(status) ?? duration.labels({ status });
    ofStatus.set(status, known);
    known.observe(seconds);
  };
  return (request, response, next) => {
    if (!PUBLISHER_API.test(request.url)) {
      next();
      return;
    }
    const startedAt = performance.now();
    response.on('finish', () => observe(response.statusCode, (performance.now() - startedAt) / 1000));
    next();
  };
}
