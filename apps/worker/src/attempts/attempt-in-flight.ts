/** An attempt in flight, which its stages pass on: send, record, report. */
import type { DeliveryJob, TraceContext } from '@posthorn/core';
import type { EndDeliveryJob } from '@posthorn/dispatch';
import type { Claim } from '@posthorn/queue';
import type { Span } from '@posthorn/runtime';
import type { BegunAttempt, FoundJob } from '@posthorn/store';
import type { Slot } from '../slots/slots.ts';
import type { EventToSend } from './event-bodies.ts';

/** What the consumer hands over with a job. */
export interface TakenJob {
  /** What was read from Redis when the job was taken; undefined: it has to be read again. */
  found: FoundJob | undefined;
  /** Ends the job in the same step in which a success is recorded, or its delivery parked. */
  end: EndDeliveryJob;
  /** Tells whether the job is still this worker's: a worker that was suspended may have lost it. */
  claim: Claim;
}

export interface AttemptInFlight {
  job: DeliveryJob;
  taken: TakenJob;
  slot: Slot;
  begun: BegunAttempt;
  event: EventToSend;
  startedAtMs: number;
  /** Undefined if tracing is off, or the event has no trace that is sampled. */
  span: Span | undefined;
}

/** The trace context of the attempt: its own span if it has one, otherwise the trace of its event. */
export function traceOf({ span, event }: Pick<AttemptInFlight, 'span' | 'event'>): TraceContext | undefined {
  return span ?? event.trace;
}
