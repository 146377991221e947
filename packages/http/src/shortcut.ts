/**
 * Handles requests for the usual routes without express: its search for the handlers of a route, one layer after the
 * other, takes a tenth of a small call.
 */
import type { RequestListener } from 'node:http';
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';
import { listenerOf } from './http-service.ts';

/** The handlers of routes without parameters, by method and path, such as `POST /v1/events`. */
export type DirectRoutes = ReadonlyMap<string, readonly RequestHandler[]>;

interface Shortcuts {
  routes: DirectRoutes;
  /** All middleware that `app` runs before these routes. */
  before: readonly RequestHandler[];
  /** What `app` does with an error. */
  onError: ErrorRequestHandler;
}

/**
 * Returns a listener. If the URL of a request is just the path of one of the routes, it runs what `app` would run.
 * Anything else (another case, a query, a slash at the end) is for `app`. The handlers may not call `next('route')` or
 * `next('router')`. Requires a server whose requests and responses have the prototypes of `app` from the start.
 */
export function withShortcuts(app: Express, { routes, before, onError }: Shortcuts): RequestListener {
  const listener = listenerOf(app);
  const handlersOf = new Map(Array.from(routes, ([name, handlers]) => [name, [...before, ...handlers]]));
  return (incoming, outgoing) => {
    const handlers = handlersOf.get(`${incoming.method} ${incoming.url}`);
    if (handlers) run(handlers, incoming as Request, outgoing as Response, onError);
    else listener(incoming, outgoing);
  };
}

function run(
  handlers: readonly RequestHandler[],
  request: Request,
  response: Response,
  onError: ErrorRequestHandler,
): void {
  // Express would set these.
  request.res = response;
  request.originalUrl = request.url;
  request.baseUrl = '';
  request.params = {};
  response.locals = {};
  let position = 0;
  const fail = (error: unknown): void => {
    // If the response has begun, `onError` calls the last argument: the client must not take the response for complete.
    onError(error ?? new Error('A handler failed without an error'), request, response, () => request.socket.destroy());
  };
  const next = (error?: unknown): void => {
    const handler = handlers[position];
    position += 1;
    if (error) fail(error);
    else if (!handler) fail(new Error('No handler has responded'));
    else {
      try {
        const result: unknown = handler(request, response, next);
        if (result instanceof Promise) result.catch(fail);
      } catch (thrown) {
        fail(thrown);
      }
    }
  };
  next();
}
