/** Keeps ingest answering when more comes than it can take: what is too much is refused at once, before it costs anything. */
import { AppError } from '@posthorn/core';
import type { RequestHandler } from 'express';

/**
 * Events in hand at once, over all calls: a few seconds' work. With more, every answer would come too late, and publishers who repeat what
 * was not answered would make it worse.
 */
const MOST_EVENTS_IN_HAND = 10_000;

/** Room for events, shared by the routes of a process. A call that comes alone always finds some. */
export function createRoom() {
  let inHand = 0;
  return {
    /** A guard that gives a call room for as many events as `eventsIn` thinks are in that many bytes, until it is answered. */
    for(eventsIn: (bytes: number) => number): RequestHandler {
      return (request, response, next) => {
        const events = eventsIn(Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY));
        if (inHand > 0 && inHand + events > MOST_EVENTS_IN_HAND) {
          // Its body is not looked at; Node drops it as it comes, so that the caller gets to read this answer.
          throw new AppError('overloaded', 'There are more events in hand than can be answered soon. Try again.', {
            retryAfterS: 1,
          });
        }
        inHand += events;
        response.once('close', () => {
          inHand -= events;
        });
        next();
      };
    },
  };
}
