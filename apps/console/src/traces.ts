/**
 * Traces operators' actions. An action on one event belongs to the trace of that event, any other to the trace of the
 * call.
 */
import { eventIdOf, parseTraceparent, type TraceContext } from '@posthorn/core';
import { toAppError } from '@posthorn/http';
import { loadEvent, type StoredDelivery } from '@posthorn/store';
import type { Request } from 'express';
import type { ConsoleContext } from './context.ts';

interface Action {
  /** The operation, such as `replay`. */
  name: string;
  /** Whether it makes a delivery. */
  isSending: boolean;
  trace: TraceContext | undefined;
  /** The trace of the call, if the action belongs to another one. */
  link?: TraceContext | undefined;
  eventType?: string | undefined;
  attributes?: Record<string, string>;
}

/** The fields of log lines. */
interface TraceFields {
  trace_id: string | undefined;
  span_id: string | undefined;
}

/** The action of a call that concerns a delivery: it is within the trace of its event, if that has one. */
export async function actionOn(
  { store }: ConsoleContext,
  delivery: StoredDelivery,
  request: Request,
  name: string,
  isSending: boolean,
): Promise<Action> {
  const own = parseTraceparent(request.headers.traceparent);
  const trace = (await loadEvent(store, delivery.event))?.trace;
  return {
    name,
    isSending,
    trace: trace ?? own,
    link: trace && own,
    eventType: delivery.eventType,
    attributes: {
      'messaging.message.id': eventIdOf(delivery.event),
      'posthorn.environment': delivery.environment,
      'posthorn.subscription.id': delivery.subscriptionId,
      'posthorn.delivery.id': delivery.id,
    },
  };
}

/** The action of a call that continues the caller's trace, or begins one. */
export function actionOf({ headers }: Request, name: string, isSending: boolean, eventType?: string): Action {
  return { name, isSending, trace: parseTraceparent(headers.traceparent), eventType };
}

/** Runs an action within a span, if tracing is on. `run` gets its trace, and fields for its log line. */
export async function traced<T>(
  { tracing }: Pick<ConsoleContext, 'tracing'>,
  { name, isSending, trace, link, eventType, attributes }: Action,
  run: (trace: TraceContext | undefined, fields: TraceFields) => Promise<T>,
): Promise<T> {
  const fullName = eventType === undefined ? name : `${name} ${eventType}`;
  const span = tracing?.startSpan(trace);
  const within = span ?? trace;
  const end = (error?: string) =>
    span?.end({
      shape: {
        kind: isSending ? 'producer' : 'internal',
        name: fullName,
        attributes: {
          'messaging.system': 'posthorn',
          'messaging.operation.name': name,
          'messaging.operation.type': isSending ? 'send' : undefined,
          'messaging.destination.name': eventType,
          ...attributes,
        },
        varying: [],
      },
      values: [],
      error,
      link,
    });
  try {
    const result = await run(within, { trace_id: within?.traceId, span_id: span?.spanId });
    end();
    return result;
  } catch (error) {
    end(toAppError(error).code);
    throw error;
  }
}
