/** The metrics of the publisher API: how long calls took, and what became of events, by status. */
import { knownOrNew } from '@posthorn/core';
import type { RequestHandler } from 'express';
import { Counter, Histogram, type Registry } from 'prom-client';

/** Matched here, because express takes longer to match the path of a middleware and to strip it from the url. */
const PUBLISHER_API = /^\/v1(?:[/?]|$)/i;

/**
 * The statuses that an event may get. Each publisher has a sample of each from the first scrape on, so that `rate()`
 * sees its first event.
 */
const EVENT_STATUSES = [200, 202, 403, 409, 413, 422, 429, 500, 503];

/** Counts events of a publisher by the status that each got, on its own or in a batch. */
export type CountEvents = (publisher: string, status: number, count?: number) => void;

export function createEventCounts(registry: Registry, publishers: readonly string[]): CountEvents {
  const events = new Counter({
    name: 'posthorn_ingest_events_total',
    help: 'Events of known publishers, also those in batches, by publisher and by status of the response or of the result. Without those of calls that are refused before their events are looked at, for example since they are too large',
    labelNames: ['status', 'publisher'],
    registers: [registry],
  });
  const ofPublishers = new Map(
    publishers.map((publisher) => [publisher, byStatus((status) => events.labels({ status, publisher }))]),
  );
  for (const ofStatus of ofPublishers.values()) for (const status of EVENT_STATUSES) ofStatus(status).inc(0);
  return (publisher, status, count) => ofPublishers.get(publisher)?.(status).inc(count);
}

/** Measures each call from its headers to the end of the response. Express answers OPTIONS, for anybody. */
export function measureRequests(registry: Registry): RequestHandler {
  const duration = new Histogram({
    name: 'posthorn_ingest_request_duration_seconds',
    help: 'Calls of the publisher API, by status of the response',
    labelNames: ['status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  const ofStatus = byStatus((status) => duration.labels({ status }));
  return (request, response, next) => {
    if (request.method === 'OPTIONS' || !PUBLISHER_API.test(request.url)) {
      next();
      return;
    }
    const startedAt = performance.now();
    response.on('finish', () => ofStatus(response.statusCode).observe((performance.now() - startedAt) / 1000));
    next();
  };
}

/** Caches what `labels` returns for each status: prom-client takes longer to find a sample than to count. */
function byStatus<T extends object>(labels: (status: number) => T): (status: number) => T {
  const known = new Map<number, T>();
  return (status) => knownOrNew(known, status, labels);
}
